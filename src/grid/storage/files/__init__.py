"""Shares as files on a disk: containers and leases, and writes and changes that survive a crash."""
