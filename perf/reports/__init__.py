"""Reports, plots, and verdicts on targets, made from records."""
