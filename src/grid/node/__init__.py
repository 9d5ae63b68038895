"""Nodes: their directories, configuration and services. Only this package and cli use the reactor."""
