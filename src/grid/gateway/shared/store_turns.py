"""Turns at storing, which takes much memory: requests that come when all are taken wait, first come, first served."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext

from twisted.internet.defer import DeferredSemaphore

LARGE_SIZE = 2**20
"""Bytes from which a file takes a turn to be stored: its shares take 40 MiB, or 64, of memory meanwhile."""

LARGE_STORES = 4
"""Large files that are stored at once; the others are kept on the disk until it is their turn."""

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
        return self.large.one() if size >= LARGE_SIZE else nullcontext()
