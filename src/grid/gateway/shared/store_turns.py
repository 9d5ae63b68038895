"""Turns at storing, which takes much memory: requests that come when all are taken wait, first come, first served.

Large files take turns by number, small ones by their bytes, so that neither keeps the other waiting.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from twisted.internet.defer import DeferredSemaphore

from grid.limits import MAX_CHILDREN_BODY
from grid.wire.budget.server_memory import ByteBudget

LARGE_SIZE = 2**20
"""Bytes from which a file takes a turn to be stored: its shares take 40 MiB, or 64, of memory meanwhile."""

LARGE_STORES = 4
"""Large files that are stored at once; the others are kept on the disk until it is their turn."""

SMALL_STORES_BYTES = 8 * 2**20
"""Bytes of smaller files that are stored at once: with their shares, and those packed for servers that are slow to take them,
they take eight times that."""

STORE_COST = 16 * 2**10
"""Bytes that each of them counts for besides: what is noted of its servers and requests."""

FORMS_BYTES = 16 * 2**20
"""Bytes of the fields of all long forms; those that find no room are refused, since their senders may be slow."""

PASSING_STORES = 2
"""Files that pass straight through at once. Their clients may be slow, so that they hold up nobody: others are spooled."""


class Semaphore:
    """A fair semaphore: at most `count` holders at a time."""

    def __init__(self, count: int) -> None:
        """count: at least 1."""
        self._semaphore = DeferredSemaphore(count)

    @property
    def is_free(self) -> bool:
        """Whether nobody would have to wait."""
        return self._semaphore.tokens > 0

    @asynccontextmanager
    async def one(self) -> AsyncIterator[None]:
        """Return when it is our turn; a task that is canceled while it waits takes none."""
        await self._semaphore.acquire()
        try:
            yield
        finally:
            self._semaphore.release()


class Stores:
    """Limits on files being stored at once, shared by all requests."""

    def __init__(self) -> None:
        self.large = Semaphore(LARGE_STORES)
        self.passing = Semaphore(PASSING_STORES)
        self.small = ByteBudget(SMALL_STORES_BYTES)
        self.forms = ByteBudget(FORMS_BYTES)
        self.children = ByteBudget(MAX_CHILDREN_BODY)
        """Bytes of long descriptions of children that are values in memory, which take ten times as much."""
        self._alone: dict[bytes, tuple[Semaphore, int]] = {}

    @asynccontextmanager
    async def alone(self, key: bytes | None) -> AsyncIterator[None]:
        """Store nothing else with this key meanwhile: a server gives room for one share to one upload only."""
        if key is None:
            yield
            return
        turns, count = self._alone.get(key, (Semaphore(1), 0))
        self._alone[key] = turns, count + 1
        try:
            async with turns.one():
                yield
        finally:
            turns, count = self._alone.pop(key)
            if count > 1:
                self._alone[key] = turns, count - 1

    def turn(self, size: int) -> AbstractAsyncContextManager[None]:
        """A turn to store a file of that size which is all here."""
        return self.large.one() if size >= LARGE_SIZE else self._small_turn(size + STORE_COST)

    @asynccontextmanager
    async def _small_turn(self, size: int) -> AsyncIterator[None]:
        held = await self.small.acquire(size)
        try:
            yield
        finally:
            self.small.release(held)
