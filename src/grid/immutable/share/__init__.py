"""Shares of an immutable file: sizes, layout, encoding, proofs, and the kernels that read and write them. Pure."""
