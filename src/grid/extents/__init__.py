"""Packs of many small files, and files made of other files: writing and reading them. [spec extents]"""
