"""Systems under test: real grids of server processes and their clients, behind a common interface."""
