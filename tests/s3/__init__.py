"""Tests of the S3 door."""
