"""Turns at what takes much memory: who comes when all are taken waits for one, first come, first served."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from twisted.internet.defer import DeferredSemaphore


class Turns:
    """So many at once."""

    def __init__(self, count: int) -> None:
        """count: at least 1."""
        self._semaphore = DeferredSemaphore(count)

    @property
    def is_free(self) -> bool:
        """Whether nobody would have to wait."""
        return self._semaphore.tokens > 0

    @asynccontextmanager
    async def one(self) -> AsyncIterator[None]:
        """A turn, once there is one; whoever is cancelled while waiting takes none."""
        await self._semaphore.acquire()
        try:
            yield
        finally:
            self._semaphore.release()
