"""Decides what a transfer sends, what it skips, and when it retries. Pure.

Times are arguments; nothing here reads a clock or a disk.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, overload

from grid.errors import (
    AuthorityError,
    CapError,
    ConfigError,
    FormatError,
    GridError,
    NoServersError,
    NoSpaceError,
    NotHappyError,
    PeerError,
    PeerRefusedError,
)
from grid.transfer.ends import EndError, Entry, PassingError
from grid.values import frozen

Comparison = Literal["time", "size", "checksum", "update"]
"""How to compare a file with the target's: by size and time, size alone, tags, or whether the target's is older."""

Mode = Literal["auto", "stream", "chunked", "chunked-stream"]

CLOCK_NS = 2 * 10**9
"""The tolerance for equal times: servers keep whole seconds, some of them only even ones."""

EXACT_NS = 10**6
"""The same if both ends preserve times."""

MIB = 2**20
RANGES = 16
LEAST_CHUNK, MOST_CHUNK = 5 * MIB, 64 * MIB
"""Bounds of automatic chunk sizes: shorter ranges take longer to request than to send, and several longer ones fill the
memory.
"""

STREAMS = 4
"""Ranges of one file fetched in parallel by default."""

FIRST_PAUSE_S = 0.5
LONGEST_PAUSE_S = 60.0


def is_same(source: Entry, there: Entry, comparison: Comparison, tolerance_ns: int = CLOCK_NS) -> bool:
    """Whether the target's file can stay. Unknown values count as different, except sizes."""
    sizes_agree = source.size is not None and source.size == there.size
    if comparison == "size":
        return sizes_agree
    if comparison == "checksum":
        return sizes_agree and bool(source.tag) and source.tag == there.tag
    if source.mtime_ns is None or there.mtime_ns is None:
        return False
    if comparison == "update" and there.mtime_ns > source.mtime_ns + tolerance_ns:
        return True
    return sizes_agree and abs(source.mtime_ns - there.mtime_ns) < tolerance_ns


def choose_chunk_size(size: int) -> int:
    """The default size of a range in bytes: a sixteenth of the file, so all streams have work nearly to its end."""
    return min(max(-(-size // (RANGES * MIB)) * MIB, LEAST_CHUNK), MOST_CHUNK)


@frozen
class Ranges(Sequence[tuple[int, int]]):
    """The ranges of a file, (offset, length) of each, which take no memory: a size is only announced."""

    size: int
    chunk_size: int

    def __len__(self) -> int:
        return len(range(0, self.size, self.chunk_size))

    @overload
    def __getitem__(self, index: int) -> tuple[int, int]: ...
    @overload
    def __getitem__(self, index: slice) -> list[tuple[int, int]]: ...
    def __getitem__(self, index: int | slice) -> tuple[int, int] | list[tuple[int, int]]:
        offsets = range(0, self.size, self.chunk_size)
        if isinstance(index, slice):
            return [self._at(offset) for offset in offsets[index]]
        return self._at(offsets[index])

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return map(self._at, range(0, self.size, self.chunk_size))

    def _at(self, offset: int) -> tuple[int, int]:
        return offset, min(self.chunk_size, self.size - offset)


def choose_ranges(mode: Mode, size: int, chunk_size: int) -> Sequence[tuple[int, int]]:
    """The ranges of a file to fetch in parallel; empty if it is sent as one stream."""
    if mode == "stream" or size <= chunk_size or (mode == "auto" and size < 2 * chunk_size):
        return []
    return Ranges(size, chunk_size)


def may_pass(error: BaseException | None) -> bool:
    """Whether retrying can help. None: it did not fail."""
    match error:
        case PassingError():
            return True
        case EndError() | AuthorityError() | CapError() | ConfigError() | FormatError() | NoSpaceError():
            return False
        case PeerRefusedError():
            return error.kind != "NoSpace"
        case NotHappyError():
            return not any(isinstance(cause, NoSpaceError) for cause in error.causes)
        case PeerError() | NoServersError():
            return True
        case GridError():
            return True
        case ConnectionError() | TimeoutError():
            return True
        case _:
            return False


def pause_before(attempt: int, draw: float) -> float:
    """Seconds to wait before an attempt after the first. draw: 0 <= draw < 1, spreads simultaneous retries."""
    longest = min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2.0 ** (attempt - 1))
    return float(longest * (0.5 + draw / 2))
