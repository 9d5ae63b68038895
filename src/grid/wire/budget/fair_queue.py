"""Chooses the next among many waiting items: the oldest item of the peer that was served longest ago. Pure.

It decides only the order; its owner decides what items wait for, and for how long. Peers are identified by a key,
usually a network address. A peer with a hundred requests delays others by one of them, not by a hundred.

Cost: one step per waiting peer whenever an item is served.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterator
from itertools import count
from typing import Generic, TypeVar

T = TypeVar("T")

MOST_REMEMBERED = 1024
"""Peers whose last turn is remembered."""


class FairQueue(Generic[T]):
    """Items that wait, each on behalf of its peer."""

    def __init__(self) -> None:
        self._waiting: dict[Hashable, deque[T]] = {}
        self.count = 0
        """How many wait."""
        self._served: dict[Hashable, int] = {}
        self._turns = count(1)

    def __len__(self) -> int:
        return self.count

    def __iter__(self) -> Iterator[T]:
        for items in self._waiting.values():
            yield from items

    def append(self, peer: Hashable, item: T) -> None:
        """Queue the item behind the others of its peer."""
        self._waiting.setdefault(peer, deque()).append(item)
        self.count += 1

    def first(self) -> T | None:
        """The next item, which stays in the queue."""
        return self._waiting[self._next_peer()][0] if self._waiting else None

    def remove(self, peer: Hashable, item: T) -> None:
        """Remove an item that is not served. ValueError if it is not in the queue."""
        items = self._waiting.get(peer, deque())
        items.remove(item)
        self.count -= 1
        if not items:
            del self._waiting[peer]

    def serve(self, peer: Hashable) -> None:
        """Note that the peer is served now, whether it waited or not."""
        self._served.pop(peer, None)
        self._served[peer] = next(self._turns)
        if len(self._served) > MOST_REMEMBERED:
            del self._served[next(iter(self._served))]

    def _next_peer(self) -> Hashable:
        # Of peers that were never served, choose the one that began to wait first: min keeps the order of the table.
        return min(self._waiting, key=lambda peer: self._served.get(peer, 0))
