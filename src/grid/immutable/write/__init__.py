"""Writing an immutable file: finding room for its shares and sending them. Plans only."""
