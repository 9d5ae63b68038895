"""When a read may request more than it needs: the budget for hedges. Pure.

A read may hedge late answers within a small share of its bytes, and overtaken ones within a few MiB more. Beyond that,
it hedges only silent servers: a read must not wait for a silent server, but a network on which everything is slow must
not carry everything twice.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

HEDGE_SHARE = 0.05
"""Bytes that hedges may waste on servers that are merely late, for each byte read."""


OVERTAKEN_BYTES = 4 << 20
RACED_BYTES = 9 << 20
"""Bytes that hedges may waste on overtaken answers in one read, but no more than the read itself needs. The second is the limit if the
read waits for nothing else: three messages of full batches, to which a server that falls silent has brought it."""


class Overdue(Protocol):
    """An outstanding request that can be late."""

    @property
    def late(self) -> bool:
        """Whether the answer has taken longer than it should."""

    @property
    def overtaken(self) -> bool:
        """Whether servers have answered since it was sent, and much faster."""

    @property
    def raced(self) -> bool:
        """Whether the read waited for nothing but such answers."""

    @property
    def silent(self) -> bool:
        """Whether the server has sent nothing at all for too long."""


class HedgeBudget:
    """What one read may spend on late answers. wasted_bytes: bytes that came twice."""

    def __init__(self, block_bytes: int = 0) -> None:
        """block_bytes: bytes of blocks that the read needs from all shares together, if that is known already."""
        self._informed = False
        self._spent_on_overtaken = 0
        self.wasted_bytes = 0
        self.cover(block_bytes)

    def cover(self, block_bytes: int) -> None:
        """Set the budget of a read that needs this many bytes of blocks, which are whole segments even if it wants one byte."""
        self._left = HEDGE_SHARE * block_bytes
        self._block_bytes = block_bytes

    def learn(self) -> None:
        """Note that some server has sent blocks, so the read knows what speed to expect."""
        self._informed = True

    def spend_on(self, watches: Iterable[Overdue], size: int, *, head: bool) -> bool:
        """Whether the read may request these `size` bytes, for which these watches wait, from another share as well.

        True spends the bytes. head: nothing can be delivered before they come. Once both allowances are spent, a silent
        server is hedged only if its bytes are at the head, or if some server has sent blocks already: before that, the
        network itself may be silent.
        """
        watches = list(watches)
        if not any(watch.late for watch in watches):
            return False
        if size <= self._left:
            self._left -= size
            return True
        limit = RACED_BYTES if any(watch.raced for watch in watches) else OVERTAKEN_BYTES
        spent = self._spent_on_overtaken + size
        if spent <= min(limit, self._block_bytes) and any(watch.overtaken for watch in watches):
            self._spent_on_overtaken = spent
            return True
        return any(watch.silent for watch in watches) and (head or self._informed)
