"""Tests of grid.directory."""
