"""Runs the code that is its only argument, as `python -c` does: a module, so that it can start warm."""

import sys

exec(compile(sys.argv.pop(), "<string>", "exec"), {"__name__": "__main__"})
