"""How much of a range a share has, found by looking at single bytes of it: for ranges too long to be read at once."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from grid.ports import Buffer, Range

PROBES = 64


async def clipped_length(
    read: Callable[[Sequence[Range]], Awaitable[Sequence[Buffer]]], offset: int, length: int
) -> int:
    """How many of those bytes the share has: found by looking at single ones, PROBES at a time."""
    (last,) = await read([(offset + length - 1, 1)])
    if last:
        return length
    low, high = 0, length - 1  # At least and at most that many are there.
    while low < high:
        step = -(-(high - low) // PROBES)
        counts = sorted({min(high, low + step * (i + 1)) for i in range(PROBES)})
        answers = await read([(offset + count - 1, 1) for count in counts])
        there = sum(1 for byte in answers if byte)
        low, high = (counts[there - 1] if there else low), (counts[there] - 1 if there < len(counts) else high)
    return low
