"""One server that can be reached over two protocols, seen as one StorageServer."""
