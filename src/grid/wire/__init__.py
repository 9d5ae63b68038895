"""Transports: how calls on this project's ports travel between processes."""
