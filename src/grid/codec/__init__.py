"""Encodings of bytes as other bytes: base32, netstrings, Merkle trees, the erasure code. Pure."""
