"""Connections to a server: how many it accepts, how fast clients must be, and what the kernel reports about them."""
