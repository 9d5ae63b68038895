"""Snapshots that backups keep: finding them, choosing which ones stay, and comparing two trees."""
