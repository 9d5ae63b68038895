"""Transports: how the ports of this project travel between processes."""
