"""Directories: files that contain names and caps. Their bytes, their changes, and walks over trees of them."""
