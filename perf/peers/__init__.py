"""Programs that Grid is compared with: the list, where they are installed, and how to run them."""
