"""What all connections of one storage server share of its memory: answers, and requests that are long.

One for each node, handed to both protocols. Pure of sockets; waits are Deferreds. [decision 0130]
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Protocol

from attrs import define
from twisted.internet.defer import CancelledError, Deferred

from grid.errors import PeerGoneError, PeerRefusedError
from grid.limits import MAX_CALLS, REQUEST_WAIT_S, REQUESTS_BYTES
from grid.ports import Clock, Timer
from grid.wire.budget.answer_budget import AnswerBudget

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
        self.requests = ByteBudget(REQUESTS_BYTES, self.returned, clock.now)
        self.answers = AnswerBudget(clock, is_awaited=lambda: self.requests.is_awaited, on_return=self.returned)
        self.expansions = ByteBudget(1, now=clock.now)
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
        self.requests.review()
        self.expansions.review()
        if not (self.requests.is_awaited or self.expansions.is_awaited):
            return
        for message in list(self.coming):
            message.hurry(self.clock.now())
        self._timer = self.clock.call_later(LOOK_S, self._look)


def _ignore() -> None:
    pass


def _never() -> bool:
    return False


@define(eq=False)
class _Waiter:
    """Who waits for so many bytes, since then."""

    size: int
    since: float
    is_gone: Callable[[], bool]
    turn: Deferred[None]


class ByteBudget:
    """Bytes to be held at once, handed out in the order of asking."""

    def __init__(self, total: int, on_return: Callable[[int], object] = bool, now: Callable[[], float] = float) -> None:
        """on_return: told how many bytes are held no longer. now: monotonic seconds."""
        self._total = total
        self._on_return = on_return
        self._now = now
        self._free = total
        self._waiters: deque[_Waiter] = deque()
        self.on_wait: Callable[[], None] = _ignore
        """Called when somebody begins to wait; whoever hears of it calls `review` now and then, as long as anybody waits."""

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

    async def acquire(self, size: int, is_gone: Callable[[], bool] = _never) -> int:
        """Wait for that many bytes, or for all there are; how many were acquired, to be released later.

        is_gone: whether nobody needs them any more. PeerGoneError then, PeerRefusedError after REQUEST_WAIT_S. Who is
        cancelled waits no longer.
        """
        size = min(size, self._total)
        if not self.try_acquire(size):
            waiter = _Waiter(size, self._now(), is_gone, Deferred())
            self._waiters.append(waiter)
            self.on_wait()
            try:
                await waiter.turn
            except CancelledError:
                self._withdraw(waiter)
                raise
        return size

    def release(self, size: int) -> None:
        """Give back what acquire gave."""
        self._free += size
        self._on_return(size)
        self._advance()

    def review(self) -> None:
        """Let those go who are gone, and refuse those who have waited too long."""
        now = self._now()
        for waiter in list(self._waiters):
            if waiter not in self._waiters:
                continue  # It had its turn because of one before it.
            if waiter.is_gone():
                self._waiters.remove(waiter)
                waiter.turn.errback(PeerGoneError("the client closed the connection"))
            elif now - waiter.since >= REQUEST_WAIT_S:
                self._waiters.remove(waiter)
                waiter.turn.errback(PeerRefusedError("the server has no room for this request", kind="Busy"))
        self._advance()

    def _withdraw(self, waiter: _Waiter) -> None:
        if waiter in self._waiters:
            self._waiters.remove(waiter)
            self._advance()
        else:
            self.release(waiter.size)  # Its turn had come, and whoever was told before it ended its task.

    def _advance(self) -> None:
        while self._waiters and self._waiters[0].size <= self._free:
            waiter = self._waiters.popleft()
            self._free -= waiter.size
            waiter.turn.callback(None)


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
