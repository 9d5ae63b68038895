"""Shares of a mutable file: sizes, both layouts, keys, proofs, and the kernels that read and write them. Pure."""
