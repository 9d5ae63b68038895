"""Tests of the journal of changes, and of undoing them."""
