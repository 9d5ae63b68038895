"""The calls of clients on a storage server: the service, its locks and limits, uploads in progress, and corruption reports."""
