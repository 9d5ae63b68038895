"""How much of a file a read keeps in flight: bandwidth times delay as measured, bounded in bytes. Pure.

Little is asked for until the first bytes have come, so that they come soon. From then on the window is twice what
arrives within the shortest time that any batch has taken, which keeps the network and the processors busy
and grows while a larger window brings more.
"""

from __future__ import annotations

from collections import deque

from attrs import frozen

from grid.engine.batches import full_read_bytes

START_BYTES = 2 * 2**20
"""In flight until the first batch has come: what it consists of, and something to keep the line busy."""

LEAST_BATCHES = 3
"""Full batches in flight from then on at least: one each on the way, being opened, and being taken; wide ones are so large that
WINDOW_BYTES has room for two."""

WINDOW_BYTES = 32 * 2**20
"""Bytes of text in flight at most: asked for, being opened, or not yet taken by the consumer."""

GAIN = 2.0
"""Times bandwidth and delay: one window on its way while another is used up."""

RECENT = 8
"""Batches whose rates are remembered: the best of them counts, so that a consumer's pause does not slow the read."""


@frozen(kw_only=True)
class Mark:
    """When a batch was asked for, and how many bytes of text had come by then."""

    at: float
    come_bytes: int


NEVER = Mark(at=0.0, come_bytes=0)
"""The mark of a batch that is not asked for yet."""


class FlowWindow:
    """The window of one read."""

    def __init__(self, k: int) -> None:
        """k: shares that are needed."""
        self._least_bytes = LEAST_BATCHES * full_read_bytes(k)
        self._come_bytes = 0
        self._shortest_s: float | None = None
        self._rates: deque[float] = deque(maxlen=RECENT)

    @property
    def window_bytes(self) -> int:
        """Bytes of text to have in flight."""
        if self._shortest_s is None:
            return START_BYTES
        wanted = GAIN * max(self._rates) * self._shortest_s
        return int(min(WINDOW_BYTES, max(self._least_bytes, wanted)))

    def asked(self, now: float) -> Mark:
        """Note that a batch is asked for."""
        return Mark(at=now, come_bytes=self._come_bytes)

    def came(self, asked: Mark, text_bytes: int, now: float) -> None:
        """Note that all blocks of a batch with text_bytes of text have come."""
        self._come_bytes += text_bytes
        elapsed = max(now - asked.at, 1e-4)
        self._rates.append((self._come_bytes - asked.come_bytes) / elapsed)
        self._shortest_s = elapsed if self._shortest_s is None else min(self._shortest_s, elapsed)
