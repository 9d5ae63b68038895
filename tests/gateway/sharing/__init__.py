"""Tests of share links at the gateway."""
