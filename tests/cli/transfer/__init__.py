"""Tests of the code under cp, backup and restore."""
