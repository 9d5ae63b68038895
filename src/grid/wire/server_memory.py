"""What all connections of one storage server share of its memory: answers, and requests that are long.

One for each node, handed to both protocols. Pure of sockets; waits are Deferreds. [decision 0130]
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Protocol

from twisted.internet.defer import Deferred

from grid.limits import MAX_CALLS, REQUESTS_BYTES
from grid.ports import Clock, Timer
from grid.wire.answerbudget import AnswerBudget

RETURN_SIZE = 8 * 2**20
"""Bytes that are held no longer, from which on what they leave with the allocator is looked at."""

RETURN_S = 0.05
"""How long after that."""

LOOK_S = 0.5
"""How often it is looked, while somebody waits for room, which messages do not come on."""


class Coming(Protocol):
    """A message that holds room and has not come whole."""

    def hurry(self, now: float) -> None:
        """Others wait: give it up if it comes too slowly."""


class ServerMemory:
    """The budgets of one server."""

    def __init__(self, clock: Clock, return_memory: Callable[[], None] | None = None) -> None:
        """return_memory: gives freed memory back to the system if it is much; called soon after RETURN_SIZE bytes were freed."""
        self.clock = clock
        self._return_memory = return_memory
        self._returning: Timer | None = None
        self._returned_size = 0
        self.requests = ByteBudget(REQUESTS_BYTES, self.returned)
        self.answers = AnswerBudget(clock, is_awaited=lambda: self.requests.is_awaited, on_return=self.returned)
        self.expansions = ByteBudget(1)
        self.requests.on_wait = self.expansions.on_wait = self._press
        self.calls = CallCount(MAX_CALLS)
        self.coming: dict[Coming, None] = {}
        """Messages that hold room and have not come whole."""
        self._timer: Timer | None = None

    def returned(self, size: int) -> None:
        """So many bytes are held no longer; they are free in a moment."""
        self._returned_size += size
        if self._returned_size >= RETURN_SIZE and self._return_memory is not None and self._returning is None:
            self._returning = self.clock.call_later(RETURN_S, self._return_freed)

    def _return_freed(self) -> None:
        self._returning, self._returned_size = None, 0
        assert self._return_memory is not None
        self._return_memory()

    def _press(self) -> None:
        self.answers.press()
        if self._timer is None:
            self._timer = self.clock.call_later(LOOK_S, self._look)

    def _look(self) -> None:
        self._timer = None
        if not (self.requests.is_awaited or self.expansions.is_awaited):
            return
        for message in list(self.coming):
            message.hurry(self.clock.now())
        self._timer = self.clock.call_later(LOOK_S, self._look)


def _ignore() -> None:
    pass


class ByteBudget:
    """Bytes to be held at once, handed out in the order of asking."""

    def __init__(self, total: int, on_return: Callable[[int], object] = bool) -> None:
        """on_return: told how many bytes are held no longer."""
        self._total = total
        self._on_return = on_return
        self._free = total
        self._waiters: deque[tuple[int, Deferred[None]]] = deque()
        self.on_wait: Callable[[], None] = _ignore
        """Called when somebody begins to wait."""

    @property
    def is_awaited(self) -> bool:
        """Whether anybody waits."""
        return bool(self._waiters)

    def try_acquire(self, size: int) -> bool:
        """Take so many bytes if they are free, and nobody waits for them."""
        if self._waiters or size > self._free:
            return False
        self._free -= size
        return True

    def overdraw(self, size: int) -> None:
        """Take so many bytes whether they are free or not."""
        self._free -= size

    async def acquire(self, size: int) -> int:
        """Wait for that many bytes, or for all there are; how many were acquired, to be released later."""
        size = min(size, self._total)
        if self._waiters or size > self._free:
            turn: Deferred[None] = Deferred()
            self._waiters.append((size, turn))
            self.on_wait()
            await turn
        else:
            self._free -= size
        return size

    def release(self, size: int) -> None:
        """Give back what acquire gave."""
        self._free += size
        self._on_return(size)
        while self._waiters and self._waiters[0][0] <= self._free:
            wanted, turn = self._waiters.popleft()
            self._free -= wanted
            turn.callback(None)


class CallCount:
    """How many calls of all connections are under way."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._count = 0
        self._waiters: dict[Callable[[], None], None] = {}

    @property
    def has_room(self) -> bool:
        """Whether one more is welcome."""
        return self._count < self._limit

    def enter(self) -> None:
        """A call has come; it is taken in any case, and its connection asked for no more."""
        self._count += 1

    def leave(self) -> None:
        """A call has ended."""
        self._count -= 1
        if self._waiters and self.has_room:
            waiters, self._waiters = self._waiters, {}
            for wake in waiters:
                wake()

    def wait(self, wake: Callable[[], None]) -> None:
        """Call this, once, when there may be room."""
        self._waiters[wake] = None
