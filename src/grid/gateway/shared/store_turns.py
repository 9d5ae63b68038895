"""Limits how many files are stored, archives made and documents parsed at once, since all take much memory. Waiting requests are served in order.

Large files are limited by number, small ones by their bytes, so neither kind delays the other.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from twisted.internet.defer import DeferredSemaphore

from grid.limits import MAX_CHILDREN_BODY
from grid.wire.budget.server_memory import ByteBudget

LARGE_SIZE = 2**20
"""The size in bytes from which a file needs a turn: meanwhile its shares take 40 to 64 MiB of memory."""

LARGE_STORES = 4
"""Large files stored at once; others wait on the disk."""

SMALL_STORES_BYTES = 8 * 2**20
"""Bytes of smaller files stored at once.

With their shares, and messages packed for slow servers, they take eight times as much memory.
"""

STORE_COST = 16 * 2**10
"""Bytes that each of them counts in addition, for its servers and requests."""

FORMS_BYTES = 16 * 2**20
"""Bytes of the fields of all long forms. A form that finds no room is refused, since its sender may be slow."""

DOCUMENTS = 2
"""Long documents of S3's clients parsed at once: each takes up to 20 MiB meanwhile."""

PREVIEWS = 1
"""Texts formatted at once, each by a process of its own."""

LISTINGS = 4
"""Directory trees listed at once for archives: each may hold a large directory in memory."""

ARCHIVES_BYTES = 96 * 2**20
"""Bytes of the lists of all archives that are being sent. An archive that finds no room is refused: clients may be slow."""

PASSING_STORES = 2
"""Files streamed straight through at once. Their clients may be slow, but they delay nobody: others are spooled."""


class Semaphore:
    """A fair semaphore: at most `count` holders at a time."""

    def __init__(self, count: int) -> None:
        """count: at least 1."""
        self._semaphore = DeferredSemaphore(count)

    @property
    def is_free(self) -> bool:
        """Whether a turn is available at once."""
        return self._semaphore.tokens > 0

    @asynccontextmanager
    async def one(self) -> AsyncIterator[None]:
        """Wait for a turn and hold it. A task canceled while it waits takes none."""
        await self._semaphore.acquire()
        try:
            yield
        finally:
            self._semaphore.release()


class Stores:
    """Limits on what is stored or formatted at once, shared by all requests."""

    def __init__(self) -> None:
        self.large = Semaphore(LARGE_STORES)
        self.passing = Semaphore(PASSING_STORES)
        self.small = ByteBudget(SMALL_STORES_BYTES)
        self.forms = ByteBudget(FORMS_BYTES)
        self.documents = Semaphore(DOCUMENTS)
        self.previews = Semaphore(PREVIEWS)
        self.listings = Semaphore(LISTINGS)
        self.archives = ByteBudget(ARCHIVES_BYTES)
        self.children = ByteBudget(MAX_CHILDREN_BODY)
        """The budget for long descriptions of children, which take ten times their size as values in memory."""
        self._alone: dict[bytes, tuple[Semaphore, int]] = {}

    @asynccontextmanager
    async def alone(self, key: bytes | None) -> AsyncIterator[None]:
        """Store nothing else with this key meanwhile: a server accepts only one upload of a share at a time."""
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
        """A turn to store a file of this size that has fully arrived."""
        return self.large.one() if size >= LARGE_SIZE else self._small_turn(size + STORE_COST)

    @asynccontextmanager
    async def _small_turn(self, size: int) -> AsyncIterator[None]:
        held = await self.small.acquire(size)
        try:
            yield
        finally:
            self.small.release(held)
