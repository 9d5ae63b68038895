"""Nodes: their directories, configuration and services. Like cli and library, it uses the reactor."""
