"""Byte ranges: the headers for them, and the set of bytes written so far. [spec wire 16, 17] Pure."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right

from grid.errors import FormatError
from grid.ports import Range

_RANGE = re.compile(rb"[bB][yY][tT][eE][sS]=[ \t]*([0-9]{1,19})[ \t]*-[ \t]*([0-9]{1,19})[ \t]*")
_CONTENT_RANGE = re.compile(rb"[bB][yY][tT][eE][sS][ \t]+([0-9]{1,19})-([0-9]{1,19})/(?:[0-9]{1,19}|\*)")


def parse_range(value: bytes) -> Range:
    """Parse a Range header with one closed range; FormatError for any other kind."""
    return _closed(_RANGE.fullmatch(value))


def parse_content_range(value: bytes) -> Range:
    """Parse a Content-Range header, which says where a request's body belongs; FormatError unless it is a non-empty range of bytes."""
    return _closed(_CONTENT_RANGE.fullmatch(value))


def pack_range(offset: int, length: int) -> bytes:
    """The value of a Range header; length > 0."""
    return b"bytes=%d-%d" % (offset, offset + length - 1)


def pack_content_range(offset: int, length: int) -> bytes:
    """The value of a Content-Range header; length > 0."""
    return b"bytes %d-%d/*" % (offset, offset + length - 1)


def _closed(match: re.Match[bytes] | None) -> Range:
    if match is None:
        raise FormatError("not one closed range of bytes")
    first, last = int(match[1]), int(match[2])
    if last < first:
        raise FormatError("a range of bytes that ends before it starts")
    return first, last - first + 1


class Coverage:
    """Which of the bytes 0 .. size - 1 are present: disjoint ascending spans, with adjacent ones merged."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._starts: list[int] = []
        self._ends: list[int] = []

    def add(self, start: int, end: int) -> None:
        """Note that the bytes start .. end - 1 are present."""
        if start >= end:
            return
        low = bisect_left(self._ends, start)
        high = bisect_right(self._starts, end)
        if low < high:
            start, end = min(start, self._starts[low]), max(end, self._ends[high - 1])
        self._starts[low:high] = [start]
        self._ends[low:high] = [end]

    def overlap(self, start: int, end: int) -> list[tuple[int, int]]:
        """(begin, end) of the present bytes among start .. end - 1, ascending."""
        touched = range(bisect_right(self._ends, start), bisect_left(self._starts, end))
        return [(max(start, self._starts[index]), min(end, self._ends[index])) for index in touched]

    @property
    def complete(self) -> bool:
        """Whether nothing is missing. An empty share is never complete. [spec wire 17]"""
        return self.size > 0 and len(self._starts) == 1 and self._starts[0] == 0 and self._ends[0] >= self.size

    @property
    def span_count(self) -> int:
        """Number of separate spans, which is the cost in memory."""
        return len(self._starts)

    def missing(self) -> list[tuple[int, int]]:
        """(begin, end) of every gap, ascending."""
        gaps, position = [], 0
        for start, end in zip(self._starts, self._ends, strict=True):
            if start > position:
                gaps.append((position, start))
            position = end
        if position < self.size:
            gaps.append((position, self.size))
        return gaps
