"""`grid undo`: the journal of what commands unlinked, replaced and moved, and how a change is undone."""
