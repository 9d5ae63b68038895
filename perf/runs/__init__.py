"""Runs: carries out campaigns, sample by sample, on real systems."""
