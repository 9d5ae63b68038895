"""Workloads: the same work for grids and peers, many files by many clients at a time, and what was found."""
