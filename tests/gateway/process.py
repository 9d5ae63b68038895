"""A gateway over in-memory servers as a separate process: tests inspect its memory and log from outside.

    python -m tests.gateway.process FOLDER [NAME]

With a NAME it may be called that and any address, as one that listens to others than this machine.
"""

from __future__ import annotations

import sys
from pathlib import Path

from grid.gateway.shared.services import LOOPBACK_HOSTS, AllowedHosts
from grid.node.share_file import ShareFile
from tests.gateway.rig import running_gateway
from tests.support.served import serve_until_stdin_ends


def main() -> None:
    """Run until stdin ends."""
    names = frozenset(sys.argv[2:])
    hosts = AllowedHosts(names, any_address=True) if names else LOOPBACK_HOSTS
    folder = Path(sys.argv[1])
    links = ShareFile(folder / "private")
    serve_until_stdin_ends(lambda: running_gateway(folder, hosts=hosts, share_links=links))


if __name__ == "__main__":
    main()
