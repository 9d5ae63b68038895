"""Terminal output and endings of commands: messages, progress, questions and exit codes."""
