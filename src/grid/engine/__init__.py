"""The engine under immutable and mutable files: requests, plans, server speed, lateness, hedging, and the memory of servers."""
