"""Systems under test: real grids of server processes, and their clients, all driven in the same way."""
