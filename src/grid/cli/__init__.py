"""The command line: one file per group of commands. With node, the only user of the reactor."""
