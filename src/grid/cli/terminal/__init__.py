"""What the command line shows and how it ends: messages, progress, questions, and exit codes."""
