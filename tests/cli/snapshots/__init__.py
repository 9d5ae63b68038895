"""Tests of what finds, keeps and compares snapshots."""
