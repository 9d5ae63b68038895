"""How many bytes of a file a read keeps in flight: measured bandwidth times delay, with an upper bound. Pure.

A read starts small, so that the first bytes come soon. From then on the window is twice what arrives within the shortest time
that any batch has taken. That keeps the network and the processors busy, and it grows as long as a larger window is faster.
"""

from __future__ import annotations

from collections import deque

from grid.engine.batches import full_read_bytes
from grid.values import frozen

START_BYTES = 2 * 2**20
"""Bytes in flight until the first batch has come: that batch, and enough to keep the line busy."""

SPREAD_START_BYTES = 16 * 2**20
"""The same if a read uses more servers than it needs: their lines are idle while the first batch comes."""

LEAST_BATCHES = 3
"""Full batches in flight at least, after the first: one on its way, one being opened, one being delivered. If batches are wide,
WINDOW_BYTES has room for only two."""

WINDOW_BYTES = 32 * 2**20
"""While this many bytes of text are in flight (requested, being opened, or not yet taken by the consumer), no further batch is
requested."""

GAIN = 2.0
"""Factor on bandwidth times delay: one window travels while the other is consumed."""

RECENT = 8
"""Batches whose rates are remembered. The best one counts, so that a pause of the consumer does not slow the read."""


@frozen(kw_only=True)
class Mark:
    """When a batch was requested, and how many bytes of text had come by then."""

    at: float
    come_bytes: int


NEVER = Mark(at=0.0, come_bytes=0)
"""The mark of a batch that was not requested yet."""


class FlowWindow:
    """The flow-control window of one read."""

    def __init__(self, k: int, start_bytes: int = START_BYTES, most_bytes: int | None = None) -> None:
        """k: the number of shares needed. start_bytes: bytes in flight until the first batch has come.

        most_bytes: in flight at any time; WINDOW_BYTES if None.
        """
        self._start_bytes, self._most_bytes = start_bytes, WINDOW_BYTES if most_bytes is None else most_bytes
        self._least_bytes = LEAST_BATCHES * full_read_bytes(k)
        self._come_bytes = 0
        self._shortest_s: float | None = None
        self._rates: deque[float] = deque(maxlen=RECENT)

    @property
    def window_bytes(self) -> int:
        """Bytes of text to keep in flight."""
        if self._shortest_s is None:
            return min(self._most_bytes, self._start_bytes)
        wanted = GAIN * max(self._rates) * self._shortest_s
        return int(min(self._most_bytes, max(self._least_bytes, wanted)))

    def asked(self, now: float) -> Mark:
        """Note that a batch is requested. Pass the mark to `came`."""
        return Mark(at=now, come_bytes=self._come_bytes)

    def came(self, asked: Mark, text_bytes: int, now: float) -> None:
        """Note that all blocks of a batch with text_bytes bytes of text have come."""
        self._come_bytes += text_bytes
        elapsed = max(now - asked.at, 1e-4)
        self._rates.append((self._come_bytes - asked.come_bytes) / elapsed)
        self._shortest_s = elapsed if self._shortest_s is None else min(self._shortest_s, elapsed)
