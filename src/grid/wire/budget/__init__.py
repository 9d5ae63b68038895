"""The memory of a storage server: what answers and long requests may hold together, and who waits."""
