"""Which bytes of an unfinished share have come: a set of half-open spans. Pure."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator

Span = tuple[int, int]
"""(begin, end), end exclusive."""


class Spans:
    """Disjoint spans that do not touch, in order; all operations are logarithmic but for moving list items."""

    __slots__ = ("_begins", "_ends")

    def __init__(self) -> None:
        self._begins: list[int] = []
        self._ends: list[int] = []

    def __len__(self) -> int:
        return len(self._begins)

    def __iter__(self) -> Iterator[Span]:
        return iter(zip(self._begins, self._ends, strict=True))

    def overlap(self, begin: int, end: int) -> list[Span]:
        """The parts of [begin, end) that are in the set, ascending."""
        first = bisect_right(self._ends, begin)
        last = bisect_left(self._begins, end)
        return [(max(begin, self._begins[i]), min(end, self._ends[i])) for i in range(first, last)]

    def add(self, begin: int, end: int) -> None:
        """Put [begin, end) into the set; nothing if it is empty."""
        if begin >= end:
            return
        first = bisect_left(self._ends, begin)
        last = bisect_right(self._begins, end)
        if first < last:
            begin, end = min(begin, self._begins[first]), max(end, self._ends[last - 1])
        self._begins[first:last] = [begin]
        self._ends[first:last] = [end]

    def missing(self, size: int) -> list[Span]:
        """The parts of [0, size) that are not in the set, ascending."""
        edges = [0, *(edge for span in zip(self._begins, self._ends, strict=True) for edge in span), size]
        pairs = zip(edges[::2], edges[1::2], strict=True)
        return [(begin, end) for begin, end in pairs if begin < end]
