"""A Foolscap storage server as a StorageServer."""
