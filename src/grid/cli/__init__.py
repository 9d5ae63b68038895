"""The command line. Like node and library, it uses the reactor."""
