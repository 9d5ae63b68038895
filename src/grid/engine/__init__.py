"""The engine under immutable and mutable files: requests, plans, the speed of servers, lateness, hedging, and memory of servers."""
