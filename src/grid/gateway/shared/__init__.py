"""What all requests of a gateway share: the grid, settings, open files, the upload spool, turns, and traffic."""
