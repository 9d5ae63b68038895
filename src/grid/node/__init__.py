"""Nodes: their directories, their configuration, and what runs in them. With cli, the only user of the reactor."""
