"""Runs: campaigns carried out, sample by sample, on real systems."""
