"""Reports and plots made from records."""
