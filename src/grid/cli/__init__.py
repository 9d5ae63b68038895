"""The command line. Only this package and node use the reactor."""
