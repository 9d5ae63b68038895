"""The doors with third-party programs: real clients, pinned, on a real grid. `make doors`."""
