"""Tests of the machinery of cp, backup and restore."""
