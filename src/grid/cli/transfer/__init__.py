"""Copies trees between this machine and the grid; used by cp, backup and restore."""
