"""Shares as files on a disk: their containers and leases, writing them, and changing them so that a crash loses nothing."""
