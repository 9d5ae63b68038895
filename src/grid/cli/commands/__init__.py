"""The commands of `grid`, one per module. A module is imported only when its command runs."""
