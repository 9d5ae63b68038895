"""Snapshots of backups: finds them, decides which to keep, and compares two trees."""
