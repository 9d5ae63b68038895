"""`grid undo`: the journal of changes that commands made, and how to revert them."""
