"""Hashes, ciphers and signatures: thin, typed, without policy."""
