"""Writes a mutable file: where a new version goes, test-and-set, and other writers. Plans only."""
