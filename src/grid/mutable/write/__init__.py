"""Writing a mutable file: where a new version goes, test-and-set, and rival writers. Plans only."""
