"""Immutable files: their sizes, shares and proofs, and putting, getting, checking and repairing them."""
