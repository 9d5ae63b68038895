"""What clients ask of a storage server: the service, its locks and limits, uploads in progress, and reports of corruption."""
