"""The faults campaign: what silent and missing servers cost each operation, on a grid of real processes."""
