"""Who is next among many who wait: the peer that was served longest ago, and its oldest request. Pure.

It decides order alone; what is waited for, and for how long, is its owner's. Peers are compared by what they are known
by, usually a network address: a peer that asks for a hundred things delays others by one of them, not by a hundred.

Cost: a step for each waiting peer whenever somebody is served.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterator
from itertools import count
from typing import Generic, TypeVar

T = TypeVar("T")

MOST_REMEMBERED = 1024
"""Peers of which it is known when they were served last."""


class FairQueue(Generic[T]):
    """Items that wait, each for its peer."""

    def __init__(self) -> None:
        self._waiting: dict[Hashable, deque[T]] = {}
        self._served: dict[Hashable, int] = {}
        self._turns = count(1)

    def __len__(self) -> int:
        return sum(map(len, self._waiting.values()))

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def __iter__(self) -> Iterator[T]:
        for items in self._waiting.values():
            yield from items

    def append(self, peer: Hashable, item: T) -> None:
        """Let the item wait behind the others of its peer."""
        self._waiting.setdefault(peer, deque()).append(item)

    def first(self) -> T | None:
        """The item that is next; it stays."""
        return self._waiting[self._next_peer()][0] if self._waiting else None

    def remove(self, peer: Hashable, item: T) -> None:
        """Take an item out that gets nothing. ValueError if it is not here."""
        items = self._waiting.get(peer, deque())
        items.remove(item)
        if not items:
            del self._waiting[peer]

    def serve(self, peer: Hashable) -> None:
        """The peer gets something now, whether it waited for it or not."""
        self._served.pop(peer, None)
        self._served[peer] = next(self._turns)
        if len(self._served) > MOST_REMEMBERED:
            del self._served[next(iter(self._served))]

    def _next_peer(self) -> Hashable:
        # Of peers that were never served the one that began to wait first: min keeps the order of the table.
        return min(self._waiting, key=lambda peer: self._served.get(peer, 0))
