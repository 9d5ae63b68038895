"""Real grids of operating system processes: node directories, nodes, and clients driven from outside."""
