"""Paths and directories at the gateway: entries, checks, and operations over whole trees."""
