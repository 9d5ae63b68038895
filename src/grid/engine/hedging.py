"""When a read may ask for more than it needs: the budget of hedges. Pure.

A late answer may be doubled within a small share of the read's bytes. Beyond that, only a server that has
fallen silent is: the read must not wait for it, but neither must a network on which everything is slow carry
everything twice.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

HEDGE_SHARE = 0.05
"""Bytes asked for in vain, for each byte read, of servers that are merely late."""


class Overdue(Protocol):
    """One outstanding request."""

    @property
    def late(self) -> bool:
        """Whether its answer has taken longer than it should."""

    @property
    def silent(self) -> bool:
        """Whether nothing at all has come from its server for too long."""


class HedgeBudget:
    """What one read may spend on answers that are late. wasted_bytes: what came twice."""

    def __init__(self, block_bytes: int) -> None:
        """block_bytes: what the read needs of all shares together."""
        self._left = HEDGE_SHARE * block_bytes
        self._informed = False
        self.wasted_bytes = 0

    def learn(self) -> None:
        """Some server has sent blocks: from now on it is known what speed to expect."""
        self._informed = True

    def permits(self, watches: Iterable[Overdue], size: int, *, head: bool) -> bool:
        """Whether `size` bytes that these watches wait for may be asked of another share as well.

        head: nothing can be delivered before they come. While no server has sent any block, silence may be the
        network's; only what holds up everything is worth doubling then.
        """
        watches = list(watches)
        if not any(watch.late for watch in watches):
            return False
        if size <= self._left:
            self._left -= size
            return True
        return any(watch.silent for watch in watches) and (head or self._informed)
