"""Sampling: takes samples, and records the machine's and processes' state meanwhile."""
