"""State shared by a gateway's requests: the grid, settings, open files, the upload spool, store turns and traffic."""
