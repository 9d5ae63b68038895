"""The S3 door: serves a grid's directories as buckets and objects over Amazon's S3 protocol."""
