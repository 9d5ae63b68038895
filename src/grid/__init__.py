"""Grid: a secure, erasure-coded, distributed storage grid."""

__version__ = "0.1.0"
