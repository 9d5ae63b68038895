"""How much of a large file is read ahead of a client: as much as the client takes in a moment. Pure.

A read has up to 32 MiB under way, which is right for one that is fast and far too much for two hundred that are slow. So a
file is read in portions, each begun when the client has taken the one before it. Only the client's own slowness makes
them small: a grid that is slow or far away is given long ones, as each begins with a round trip.
"""

from __future__ import annotations

MOMENT_S = 0.25
"""Seconds in which the client is to take a portion."""

BOLD_SIZE = 16 * 2**20
"""Bytes of the first portion, while few others read."""

LARGEST_SIZE = 64 * 2**20
"""Bytes of a portion at most: what the next one costs at its beginning is nothing to it."""

TOGETHER_SIZE = 64 * 2**20
"""Bytes that all reads under way may be ahead of their clients together. What the system's sockets take in at once looks
like a fast client, and two hundred of those at the same time must not each be given the largest portion."""

SHARE = 4
"""The part of the room left that one portion takes where others read besides: those who come later need some too."""

FEW = 4
"""Reads beside which a new one begins boldly."""


class Portions:
    """The portions of one read. segment_size: what can be read of the file at least."""

    def __init__(self, segment_size: int, others: int) -> None:
        """others: reads under way besides."""
        self._segment_size = segment_size
        self._size = float(BOLD_SIZE if others < FEW else segment_size)

    def next_stop(self, position: int, stop: int, room: int = TOGETHER_SIZE) -> int:
        """The end of the portion that begins at `position`: that of a segment, and not behind `stop`.

        room: bytes that it may have, beyond its first segment.
        """
        size = min(int(self._size), room)
        segments = max(1, size // self._segment_size)
        return min(stop, (position // self._segment_size + segments) * self._segment_size)

    def taken(self, size: int, waited_s: float) -> None:
        """The client took a portion of so many bytes, and had to be waited for that long."""
        self._size = min(float(LARGEST_SIZE), size / max(waited_s, 1e-6) * MOMENT_S)
