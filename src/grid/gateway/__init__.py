"""The web gateway: a grid over plain HTTP, for programs and for people. [spec webapi]"""
