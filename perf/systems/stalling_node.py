"""A storage node of Grid that does not answer those kinds of messages that its file `stalled` names.

`python -m perf.systems.stalling_node DIR` replaces `grid run DIR`. A stalled call is carried out once the file no
longer names it, so the server recovers after its fault; all others are served at once. Names are those of the port's
methods, one per line, or `*`.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, cast

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.internet.task import deferLater

from grid.cli.main import main
from grid.storage.calls.service import StorageService
from grid.storage.calls.uploads import ShareUpload

STALLED_FILE = "stalled"
EVERYTHING = "*"
LOOK_EVERY_S = 0.1

SERVER_KINDS = (
    "get_version", "find_shares", "find_each", "read_shares", "allocate", "store_shares", "add_lease",
    "read_slot", "test_and_write",
)  # fmt: skip
UPLOAD_KINDS = ("write", "close")


def stall(owner: type, name: str, names: Path) -> None:
    """Make this method wait while the file names it."""
    method = getattr(owner, name)

    async def stalling(self: object, *arguments: Any, **named: Any) -> Any:  # noqa: ANN401 - whatever the method takes
        while _is_stalled(name, names):
            await _pause()
        return await method(self, *arguments, **named)

    setattr(owner, name, stalling)


def _is_stalled(name: str, names: Path) -> bool:
    try:
        stalled = names.read_text().split()
    except FileNotFoundError:
        return False
    return name in stalled or EVERYTHING in stalled


def _pause() -> Deferred[None]:
    from twisted.internet import reactor

    return deferLater(cast(IReactorTime, reactor), LOOK_EVERY_S, lambda: None)


def run(directory: str) -> int:
    """Run the node; return its exit code."""
    names = Path(directory) / STALLED_FILE
    for kind in SERVER_KINDS:
        stall(StorageService, kind, names)
    for kind in UPLOAD_KINDS:
        stall(ShareUpload, kind, names)
    return main(["run", directory])


if __name__ == "__main__":
    sys.exit(run(sys.argv[1]))
