"""The server of the HTTP storage protocol: connections, routes, and the answers to requests."""
