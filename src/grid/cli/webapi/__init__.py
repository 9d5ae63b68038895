"""Access to the grid through a gateway's web API: the parts of a file store that commands use. [spec webapi]"""
