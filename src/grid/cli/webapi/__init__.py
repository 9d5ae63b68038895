"""The grid through the web API of a gateway: what commands use of a file store, over HTTP. [spec webapi]"""
