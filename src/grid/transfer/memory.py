"""Memory for files in transit. Those that do not fit wait in order; one may begin before the memory for all of it is free.

A large file needs most of its memory only between its first and its last bytes. So the next one may begin while servers
still write the end of the one before it; until there is memory for the rest of it, no other file begins. [decision 515]
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Protocol

from grid.values import frozen


@frozen
class Needs:
    """Bytes of memory that a file takes. first: until it asks for the rest; last: after all of its contents were read."""

    whole: int
    first: int
    last: int

    def within(self, size: int) -> Needs:
        """The same, but no more than there is at all."""
        whole = min(self.whole, size)
        return Needs(whole=whole, first=min(self.first, whole), last=min(self.last, whole))


def steady(size: int) -> Needs:
    """The needs of what takes the same from beginning to end."""
    return Needs(whole=size, first=size, last=size)


class BodyMemory(Protocol):
    """The memory of a file in transit, for targets that say how much of it they need when."""

    async def rest(self) -> None:
        """Wait until the target may hold as much as `memory_of` says, instead of the first of `edges_of`."""

    def ended(self) -> None:
        """Note that the target now holds no more than the second of `edges_of`."""


class Unlimited:
    """Memory that nothing limits."""

    async def rest(self) -> None:
        """Do not wait."""

    def ended(self) -> None:
        """Ignore it."""


class ByteBudget:
    """Memory for files in transit. Those that do not fit wait in order."""

    def __init__(self, size: int) -> None:
        self._size = self._left = size
        self._turn = asyncio.Lock()
        self._changed = asyncio.Event()
        self._early: Holding | None = None

    @asynccontextmanager
    async def hold(self, needs: Needs) -> AsyncIterator[Holding]:
        """Hold memory for the block. Needs beyond the total count as the total."""
        needs = needs.within(self._size)
        async with self._turn:
            while self._early is not None or self._left < needs.first:
                self._changed.clear()
                await self._changed.wait()
            holding = self._begin(needs)
        try:
            yield holding
        finally:
            if self._early is holding:
                self._early = None
            self.free(holding.take_back())

    def _begin(self, needs: Needs) -> Holding:
        is_early = self._left < needs.whole
        holding = Holding(self, needs, needs.first if is_early else needs.whole)
        self._left -= holding.size
        if is_early:
            self._early = holding
        return holding

    def free(self, size: int) -> None:
        """Return memory. The file that began early gets its rest first."""
        self._left += size
        if (early := self._early) is not None and self._left >= early.missing:
            self._early = None
            self._left -= early.missing
            early.complete()
        self._changed.set()

    def overdraw(self, size: int) -> None:
        """Take memory without waiting; until it is returned, nobody else begins."""
        self._left -= size


class Holding:
    """The memory of one file."""

    def __init__(self, budget: ByteBudget, needs: Needs, size: int) -> None:
        self._budget, self._needs, self.size = budget, needs, size
        self._completed = asyncio.Event()
        if not self.missing:
            self._completed.set()

    @property
    def missing(self) -> int:
        """Bytes that are not held now, of those that the whole file needs."""
        return self._needs.whole - self.size

    def complete(self) -> None:
        """Note that the budget has given the rest."""
        self.size = self._needs.whole
        self._completed.set()

    async def rest(self) -> None:
        """Wait until the memory for the whole file is held. If it was returned already, take it again at once: to wait for a file
        that waits for this one would last forever.
        """
        await self._completed.wait()
        if self.missing:
            self._budget.overdraw(self.missing)
            self.complete()

    def ended(self) -> None:
        """Return what is not needed after all contents were read, unless they are read again."""
        if self._completed.is_set() and self.size > self._needs.last:
            unused = self.size - self._needs.last
            self.size -= unused
            self._budget.free(unused)

    def take_back(self) -> int:
        """End it; the bytes that it held."""
        size, self.size = self.size, 0
        return size
