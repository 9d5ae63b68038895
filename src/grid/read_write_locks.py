"""Locks by key, such as a storage index: any number of readers or one writer, first come, first served."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable
from types import TracebackType

from twisted.internet.defer import CancelledError, Deferred

from grid.errors import PeerRefusedError
from grid.limits import MAX_WAITING_CALLS
from grid.values import define, field


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


class Held:
    """A lock for the length of an `async with` block. A class, since a generator for each read would cost half a dozen calls."""

    __slots__ = ("_exclusive", "_key", "_locks", "_refusable")

    def __init__(self, locks: ReadWriteLocks, key: Hashable, *, exclusive: bool, refusable: bool) -> None:
        self._locks = locks
        self._key = key
        self._exclusive = exclusive
        self._refusable = refusable

    async def __aenter__(self) -> None:
        await self._locks.enter(self._key, exclusive=self._exclusive, refusable=self._refusable)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        self._locks.leave(self._key, exclusive=self._exclusive)


class ReadWriteLocks:
    """One queue per key, dropped when nobody uses it. Only for the event loop's thread."""

    def __init__(self) -> None:
        self._queues: dict[Hashable, _Queue] = {}

    @property
    def count(self) -> int:
        """Keys in use."""
        return len(self._queues)

    def shared(self, key: Hashable, *, refusable: bool = True) -> Held:
        """Hold the lock together with other readers. With `refusable`, PeerRefusedError if too many callers wait."""
        return Held(self, key, exclusive=False, refusable=refusable)

    def exclusive(self, key: Hashable, *, refusable: bool = True) -> Held:
        """Hold the lock alone. With `refusable`, PeerRefusedError if too many callers wait."""
        return Held(self, key, exclusive=True, refusable=refusable)

    async def enter(self, key: Hashable, *, exclusive: bool, refusable: bool) -> None:
        """Wait for the lock; PeerRefusedError."""
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
                self.leave(key, exclusive=exclusive)
            else:
                queue.waiting.remove(waiting)
                self._advance(key, queue)
            raise

    def leave(self, key: Hashable, *, exclusive: bool) -> None:
        """Release the lock."""
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
