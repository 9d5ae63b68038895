"""`python -m grid.cli`: the same as the `grid` command."""

from __future__ import annotations

import sys

from grid.cli.main import run

if __name__ == "__main__":
    sys.exit(run())
