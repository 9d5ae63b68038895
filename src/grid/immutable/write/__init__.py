"""Writes an immutable file: finds room for its shares and sends them. Plans only."""
