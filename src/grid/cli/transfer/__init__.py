"""Copying trees between this machine and the grid: what cp, backup and restore are made of."""
