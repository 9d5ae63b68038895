"""A storage node of Grid that does not answer those kinds of messages that its file `stalled` names, is slow, or lies.

`python -m perf.systems.stalling_node DIR` replaces `grid run DIR`. A stalled call is carried out once the file no
longer names it, so the server recovers after its fault; all others are served at once. Names are those of the port's
methods, one per line, or `*`. With the word SLOW in the file, all data goes through a narrow line; with LYING, every
byte read is a wrong one.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any, cast

from attrs import evolve
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.internet.task import deferLater

from grid.cli.main import main
from grid.ports import NewShares, ShareWrite, SlotAnswer, TestWrite
from grid.storage.calls.service import StorageService
from grid.storage.calls.uploads import ShareUpload

STALLED_FILE = "stalled"
EVERYTHING = "*"
SLOW = "slow"
LYING = "lying"
SLOW_BYTES_PER_S = 1_000_000
"""A hundredth of what a server sends over loopback."""

LOOK_EVERY_S = 0.1
_OTHER_BYTES = bytes(range(255, -1, -1))

SERVER_KINDS = (
    "get_version", "find_shares", "find_each", "read_shares", "allocate", "store_shares", "add_lease",
    "read_slot", "read_slots", "test_and_write",
)  # fmt: skip
UPLOAD_KINDS = ("write", "close")


class Line:
    """A line of SLOW_BYTES_PER_S that all data of a server shares."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._free_at = 0.0

    def wait_s(self, size: int) -> float:
        """Seconds until this many more bytes are through."""
        now = self._now()
        self._free_at = max(now, self._free_at) + size / SLOW_BYTES_PER_S
        return self._free_at - now


def stall(owner: type, name: str, names: Path, line: Line) -> None:
    """Make this method wait while the file names it, and slow or wrong if the file says so."""
    method = getattr(owner, name)

    async def stalling(self: object, *arguments: Any, **named: Any) -> Any:  # noqa: ANN401 - whatever the method takes
        while not {name, EVERYTHING}.isdisjoint(_words(names)):
            await _pause(LOOK_EVERY_S)
        answer = await method(self, *arguments, **named)
        words = _words(names)
        if LYING in words:
            answer = falsified(answer)
        if SLOW in words:
            await _pause(line.wait_s(data_size((arguments, named, answer))))
        return answer

    setattr(owner, name, stalling)


def falsified(answer: Any) -> Any:  # noqa: ANN401 - as above
    """The answer with other bytes in place of all that were read; numbers and sizes stay."""
    match answer:
        case bytes() | bytearray() | memoryview():
            return bytes(answer).translate(_OTHER_BYTES)
        case Mapping():
            return {key: falsified(value) for key, value in answer.items()}
        case list() | tuple():
            return [falsified(one) for one in answer]
        case SlotAnswer():
            return evolve(answer, data=falsified(answer.data))
        case _:
            return answer


def data_size(value: Any) -> int:  # noqa: ANN401 - as above
    """The bytes of contents within the arguments or the answer of a method."""
    match value:
        case bytes() | bytearray():
            return len(value)
        case memoryview():
            return value.nbytes
        case Mapping():
            return sum(map(data_size, value.values()))
        case list() | tuple():
            return sum(map(data_size, value))
        case NewShares():
            return data_size(value.shares)
        case ShareWrite():
            return data_size(value.pieces)
        case TestWrite():
            return data_size([data for _, data in value.writes])
        case SlotAnswer():
            return data_size(value.data)
        case _:
            return 0


def _words(names: Path) -> Collection[str]:
    try:
        return names.read_text().split()
    except FileNotFoundError:
        return ()


def _pause(seconds: float) -> Deferred[None]:
    from twisted.internet import reactor

    return deferLater(cast(IReactorTime, reactor), seconds, lambda: None)


def run(directory: str) -> int:
    """Run the node; return its exit code."""
    names, line = Path(directory) / STALLED_FILE, Line()
    for kind in SERVER_KINDS:
        stall(StorageService, kind, names, line)
    for kind in UPLOAD_KINDS:
        stall(ShareUpload, kind, names, line)
    return main(["run", directory])


if __name__ == "__main__":
    sys.exit(run(sys.argv[1]))
