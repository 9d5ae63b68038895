"""Samples: how one is taken, and what the machine and its processes say meanwhile."""
