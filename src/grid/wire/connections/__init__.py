"""Connections to a server: limits, how fast clients must be, what the kernel reports, records of TLS without vain copies."""
