"""Tests of code that finds, keeps and compares snapshots."""
