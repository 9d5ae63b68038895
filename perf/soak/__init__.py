"""The soak: random use of a real grid for a long time while servers are killed."""
