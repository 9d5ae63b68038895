"""Which ranged requests serve a set of ranges, and the ranges cut out of their answers. Pure.

Neighbouring ranges become one request when the gap between them costs less to send than another request.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from grid.ports import Buffer, Range

MERGE_GAP = 2048
"""Bytes worth reading in vain to save a request of some 500 us."""


def plan_fetches(ranges: Sequence[Range]) -> list[Range]:
    """Disjoint ranges, ascending, that cover the ranges asked for; empty ones need none."""
    fetches: list[Range] = []
    for offset, length in sorted(item for item in ranges if item[1]):
        if fetches:
            start, size = fetches[-1]
            if offset <= start + size + MERGE_GAP:
                fetches[-1] = (start, max(size, offset + length - start))
                continue
        fetches.append((offset, length))
    return fetches


def cut_ranges(ranges: Sequence[Range], fetched: Mapping[Range, Buffer]) -> list[Buffer]:
    """The ranges asked for, cut short where the answers are; fetched: by the ranges of plan_fetches."""
    pieces: list[Buffer] = []
    starts = sorted(fetched)
    for offset, length in ranges:
        piece: Buffer = b""
        for start, size in starts if length else ():
            if start <= offset < start + size:
                data = fetched[start, size]
                exact = (start, size) == (offset, length)
                piece = data if exact else memoryview(data)[offset - start : offset - start + length]
                break
        pieces.append(piece)
    return pieces
