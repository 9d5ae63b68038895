"""Reading an immutable file: finding its shares, choosing among them, fetching and checking them. Plans only."""
