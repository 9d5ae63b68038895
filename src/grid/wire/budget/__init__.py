"""The memory of a storage server: limits on what answers and long requests hold together, and the order of those that wait."""
