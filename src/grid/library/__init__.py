"""The library: a grid in Python programs, for scripts, asyncio and Twisted. Like node and cli, it uses the reactor."""
