"""The client of the HTTP storage protocol: connections, requests, and a server as a StorageServer."""
