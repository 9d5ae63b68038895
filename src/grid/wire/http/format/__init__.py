"""The messages of the HTTP storage protocol, packed and parsed by both ends."""
