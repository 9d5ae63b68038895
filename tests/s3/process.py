"""An S3 door over servers in memory as a process of its own: `python -m tests.s3.process FOLDER`."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.s3.rig import running_door
from tests.support.served import serve_until_stdin_ends


def main() -> None:
    """Run until stdin ends."""
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    serve_until_stdin_ends(lambda: running_door(folder))


if __name__ == "__main__":
    main()
