"""The HTTP storage protocol, server and client. [spec wire C]"""
