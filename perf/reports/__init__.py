"""Reports, plots and the verdict on each target, made from records."""
