"""Workloads: the same work for grids and peers, with many files and clients at a time."""
