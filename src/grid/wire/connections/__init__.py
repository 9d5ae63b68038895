"""Connections to a server: how many it accepts, how fast a client has to be, and what the kernel tells of them."""
