"""Campaigns: what is measured, how often, in which order, and what it must reach."""
