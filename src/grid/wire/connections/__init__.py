"""Connections to a server: who gets a place, how fast a client has to be, and what the kernel tells of them."""
