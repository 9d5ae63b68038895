"""What the arguments of commands mean: aliases, paths, capabilities, sources, and targets."""
