"""The library: a grid in Python programs, for scripts, for asyncio, and for Twisted. With node and cli, a user of the reactor."""
