"""The S3 door: buckets and objects of a grid over the protocol of Amazon's S3, for programs that speak it."""
