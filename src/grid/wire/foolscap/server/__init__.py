"""A StorageServer offered to Foolscap clients."""
