"""A process's budget for unpacking directories: first come, first served.

It owns the order of the waiting calls. Of a directory it knows only the size.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from twisted.internet.defer import Deferred

from grid.errors import BusyError
from grid.limits import MAX_UNPACKED_AT_ONCE, MAX_UNPACKING_WAITERS


class UnpackingBudget:
    """Limits the bytes of directories that are unpacked at once. A directory larger than the budget is unpacked alone."""

    def __init__(self, size: int = MAX_UNPACKED_AT_ONCE) -> None:
        """size: the budget in bytes."""
        self._size = size
        self._taken = 0
        self._waiting: deque[tuple[int, Deferred[None]]] = deque()

    @asynccontextmanager
    async def taken(self, size: int) -> AsyncIterator[None]:
        """Hold `size` bytes of the budget, once they are free; BusyError if too many wait already."""
        size = min(size, self._size)
        if self._waiting or self._taken + size > self._size:
            await self._wait(size)
        else:
            self._taken += size
        try:
            yield
        finally:
            self._taken -= size
            self._go_on()

    async def _wait(self, size: int) -> None:
        """Take the bytes, then return. A call that is canceled takes none."""
        if len(self._waiting) >= MAX_UNPACKING_WAITERS:
            raise BusyError("too many large directories are being read at the same time; try again later")
        turn: Deferred[None] = Deferred()
        entry = (size, turn)
        self._waiting.append(entry)
        try:
            await turn
        except BaseException:
            if entry in self._waiting:
                self._waiting.remove(entry)
                self._go_on()
            raise

    def _go_on(self) -> None:
        while self._waiting and self._taken + self._waiting[0][0] <= self._size:
            size, turn = self._waiting.popleft()
            self._taken += size
            turn.callback(None)
