"""Locks by key, such as a storage index: any number of readers or one writer, first come, first served."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Hashable
from contextlib import asynccontextmanager

from attrs import define, field
from twisted.internet.defer import CancelledError, Deferred

from grid.errors import PeerRefusedError
from grid.limits import MAX_WAITING_CALLS


@define(eq=False)
class _Waiting:
    exclusive: bool
    turn: Deferred[None]
    is_admitted: bool = False


@define(eq=False)
class _Queue:
    readers: int = 0
    writing: bool = False
    waiting: deque[_Waiting] = field(factory=deque)

    def admits(self, *, exclusive: bool) -> bool:
        return not self.writing and not (exclusive and self.readers)


class ReadWriteLocks:
    """One queue per key, dropped when nobody uses it. Only for the event loop's thread."""

    def __init__(self) -> None:
        self._queues: dict[Hashable, _Queue] = {}

    @property
    def count(self) -> int:
        """Keys in use."""
        return len(self._queues)

    @asynccontextmanager
    async def shared(self, key: Hashable, *, refusable: bool = True) -> AsyncIterator[None]:
        """Hold the lock together with other readers. With `refusable`, PeerRefusedError if too many callers wait."""
        await self._enter(key, exclusive=False, refusable=refusable)
        try:
            yield
        finally:
            self._leave(key, exclusive=False)

    @asynccontextmanager
    async def exclusive(self, key: Hashable, *, refusable: bool = True) -> AsyncIterator[None]:
        """Hold the lock alone. With `refusable`, PeerRefusedError if too many callers wait."""
        await self._enter(key, exclusive=True, refusable=refusable)
        try:
            yield
        finally:
            self._leave(key, exclusive=True)

    async def _enter(self, key: Hashable, *, exclusive: bool, refusable: bool) -> None:
        queue = self._queues.setdefault(key, _Queue())
        if not queue.waiting and queue.admits(exclusive=exclusive):
            self._admit(queue, exclusive=exclusive)
            return
        if refusable and len(queue.waiting) >= MAX_WAITING_CALLS:
            raise PeerRefusedError("too many calls wait for this storage index; try again later", kind="Busy")
        waiting = _Waiting(exclusive, Deferred())
        queue.waiting.append(waiting)
        try:
            await waiting.turn
        except CancelledError:
            if waiting.is_admitted:
                # A caller whose turn came earlier has canceled this one's task.
                self._leave(key, exclusive=exclusive)
            else:
                queue.waiting.remove(waiting)
                self._advance(key, queue)
            raise

    def _leave(self, key: Hashable, *, exclusive: bool) -> None:
        queue = self._queues[key]
        if exclusive:
            queue.writing = False
        else:
            queue.readers -= 1
        self._advance(key, queue)

    def _advance(self, key: Hashable, queue: _Queue) -> None:
        admitted = []
        while queue.waiting and queue.admits(exclusive=queue.waiting[0].exclusive):
            waiting = queue.waiting.popleft()
            self._admit(queue, exclusive=waiting.exclusive)
            waiting.is_admitted = True
            admitted.append(waiting.turn)
        if not (queue.waiting or queue.readers or queue.writing):
            self._queues.pop(key, None)
        for turn in admitted:
            turn.callback(None)

    @staticmethod
    def _admit(queue: _Queue, *, exclusive: bool) -> None:
        if exclusive:
            queue.writing = True
        else:
            queue.readers += 1
