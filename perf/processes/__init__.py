"""Real grids of operating system processes: node directories, nodes, and clients controlled from outside."""
