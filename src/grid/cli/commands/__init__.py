"""The commands of `grid`, one module for each. A module is imported only when its command runs."""
