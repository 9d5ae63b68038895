"""State shared by all requests of a gateway: the grid, settings, open files, the upload spool, store turns and traffic.
"""
