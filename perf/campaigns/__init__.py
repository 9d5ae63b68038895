"""Definitions of campaigns: what is measured, how often, and in which order. perf.runs carries them out."""
