"""Programs that Grid is measured beside: which ones there are, where they are installed, and how to install them."""
