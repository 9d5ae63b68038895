"""The doors as programs of others find them: real clients, pinned, on a real grid. `make doors`."""
