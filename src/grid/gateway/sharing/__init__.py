"""Share links: what visitors see of them, and how their owner makes them and takes them back."""
