"""Directories: files that hold names and caps. Their octets, their changes, and walks over trees of them."""
