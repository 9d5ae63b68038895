"""Campaigns: what is measured, how often, and in which order. Definitions only; perf.runs carries them out."""
