"""How much of a long body one request reads and writes at once, and how a batched read is cut into pieces. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import TracebackType

from grid.ports import Range, ShareNumber
from grid.values import frozen

LARGEST_PIECE = 1024 * 1024
SMALLEST_PIECE = 64 * 1024
LEAST_HELD = 16 * 1024
"""Bytes that every request may hold, however much the others do."""


class PieceSizer:
    """Divides a number of bytes among the current requests. Each holds at most one piece of its body."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._active = 0
        self._free = total

    @property
    def active(self) -> int:
        """Number of current requests."""
        return self._active

    @property
    def piece_size(self) -> int:
        """Bytes that one request should read or write now, never so few that the calls cost more than the bytes."""
        return max(SMALLEST_PIECE, min(LARGEST_PIECE, self._total // max(1, self._active)))

    @contextmanager
    def held(self) -> Iterator[int]:
        """Hold a piece of a body, of at most the size returned, until the block ends."""
        size = max(LEAST_HELD, min(self.piece_size, self._free // 2))
        self._free -= size
        try:
            yield size
        finally:
            self._free += size

    def __enter__(self) -> None:
        self._active += 1

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._active -= 1


@frozen
class Part:
    """Part of one range of one share. begins_share: whether it is the first part of the share."""

    share_number: ShareNumber
    offset: int
    length: int
    begins_share: bool
    ends_range: bool


def partition(
    wants: Mapping[ShareNumber, Sequence[Range]], group_size: Callable[[], int]
) -> Iterator[tuple[list[Part], bool]]:
    """Groups of parts in the order of the request, each with whether it is the last. No group exceeds its size in bytes.

    group_size is called when a group begins. There is at least one group, possibly empty.
    """
    group: list[Part] = []
    room = group_size()
    for share_number, ranges in wants.items():
        begins = True
        for offset, length in ranges:
            position = 0
            while True:
                if not room:
                    yield group, False
                    group, room = [], group_size()
                taken = min(room, length - position)
                position += taken
                group.append(Part(share_number, offset + position - taken, taken, begins, position == length))
                room -= taken
                begins = False
                if position == length:
                    break
    yield group, True
