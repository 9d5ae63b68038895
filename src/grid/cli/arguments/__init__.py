"""Interprets the arguments of commands: aliases, paths, capabilities, sources and targets."""
