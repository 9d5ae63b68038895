"""The web gateway: serves a grid over HTTP to programs and browsers. [spec webapi]"""
