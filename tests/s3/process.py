"""An S3 door over an in-memory server as a separate process: `python -m tests.s3.process FOLDER`."""

from __future__ import annotations

import sys
from pathlib import Path

from grid.engine.grid import Encoding
from tests.s3.rig import running_door
from tests.support.served import serve_until_stdin_ends

DISK_BYTES = 2**33
"""What the server may keep: suites store more than a gigabyte, and nothing is collected."""


def main() -> None:
    """Run until stdin ends."""
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    encoding = Encoding(k=1, n=1, happy=1, max_segment_size=2**17)
    serve_until_stdin_ends(lambda: running_door(folder, server_count=1, disk_bytes=DISK_BYTES, encoding=encoding))


if __name__ == "__main__":
    main()
