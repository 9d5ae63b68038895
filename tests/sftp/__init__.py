"""Tests of the SFTP door."""
