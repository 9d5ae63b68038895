"""What all connections of one storage server share of its memory: answers, and requests that are long.

One for each node, handed to both protocols. A request larger than the budget of all is alone, and keeps room from answers
while it is held, so that one of each protocol, and all answers, never come together. Pure of sockets; waits are Deferreds.
[decision 0130]
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Protocol

from attrs import define
from twisted.internet.defer import CancelledError, Deferred

from grid.errors import PeerGoneError, PeerRefusedError
from grid.limits import (
    MAX_CALLS,
    MESSAGE_PRESSED_RATE,
    MESSAGE_PRESSED_S,
    OVERSIZE_ANSWERS_BYTES,
    REQUEST_WAIT_S,
    REQUESTS_BYTES,
)
from grid.ports import Clock, Timer
from grid.wire.budget.answer_budget import AnswerBudget
from grid.wire.budget.fair_queue import FairQueue
from grid.wire.budget.reservation import Reservation

RETURN_SIZE = 8 * 2**20
"""Bytes that are held no longer, from which on what they leave with the allocator is looked at."""

RETURN_S = 0.05
"""How long after that."""

_JUDGED_SIZE = 2**20
"""Half as much again must be due before a message is judged, and a third of it have come: what comes is seen half a
megabyte at a time, or at the end of a string."""

LOOK_S = 0.5
"""How often it is looked, while somebody waits for room, which messages do not come on."""


class Coming(Protocol):
    """A message that holds room and has not come whole."""

    def hurry(self, now: float) -> None:
        """Others wait: give it up if it comes too slowly."""


class PressedRate:
    """How fast a message comes that holds room, judged while others wait for the room."""

    def __init__(self, received: int, now: float) -> None:
        self._mark = received, now

    def excuse(self, received: int, now: float) -> None:
        """Until now the sender was kept from sending."""
        self._mark = received, now

    def is_too_slow(self, claim: int, received: int, now: float) -> bool:
        """Whether far less has come than must come in a second, or of all that it claims in a minute."""
        before, since = self._mark
        due = (now - since) * max(MESSAGE_PRESSED_RATE, claim / MESSAGE_PRESSED_S)
        if due < 1.5 * min(_JUDGED_SIZE, claim):
            return False
        self._mark = received, now
        return received - before < due / 3


class MadeWay:
    """What others do without while a request is held that is larger than all that requests share."""

    def __init__(self, clock: Clock, answers: Reservation, return_memory: Callable[[], None]) -> None:
        self._clock = clock
        self._answers = answers
        self._return_memory = return_memory
        self._timer: Timer | None = None
        self._look()

    def _look(self) -> None:
        self._return_memory()
        self._timer = self._clock.call_later(LOOK_S, self._look)

    def release(self) -> None:
        """The request is gone."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
            self._answers.release()


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

    async def make_way(self, excess: int) -> MadeWay:
        """Prepare for a request that holds so much more than all that requests share; released with the request.

        Answers do without some of their room, and freed memory is given back to the system before the request comes and
        while it does. PeerRefusedError if answers leave no room for too long.
        """
        room = self.answers.reserve()
        await room.acquire(min(excess, OVERSIZE_ANSWERS_BYTES))
        return MadeWay(self.clock, room, self._return_memory or _ignore)

    def returned(self, size: int) -> None:
        """Give `size` bytes back; they are free in a moment."""
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
    """One that waits for `size` bytes, and since when."""

    size: int
    peer: Hashable
    since: float
    is_gone: Callable[[], bool]
    turn: Deferred[None]


class ByteBudget:
    """Bytes to be held at once, handed out to peers in turn, and to each in the order of asking."""

    def __init__(self, total: int, on_return: Callable[[int], object] = bool, now: Callable[[], float] = float) -> None:
        """on_return: called with the number of bytes given back. now: monotonic seconds."""
        self._total = total
        self._on_return = on_return
        self._now = now
        self._free = total
        self._waiters: FairQueue[_Waiter] = FairQueue()
        self.on_wait: Callable[[], None] = _ignore
        """Called when somebody begins to wait; the owner then calls `review` now and then, as long as anybody waits."""

    @property
    def is_awaited(self) -> bool:
        """Whether anybody waits."""
        return bool(self._waiters)

    @property
    def total(self) -> int:
        """Bytes there are."""
        return self._total

    @property
    def free(self) -> int:
        """Bytes that nobody holds; below 0 by what is overdrawn."""
        return self._free

    def try_acquire(self, size: int, peer: Hashable = None) -> bool:
        """Take `size` bytes if they are free, and nobody waits for them."""
        if self._waiters or size > self._free:
            return False
        self._free -= size
        self._waiters.serve(peer)
        return True

    def overdraw(self, size: int) -> None:
        """Take `size` bytes whether they are free or not."""
        self._free -= size

    async def acquire(self, size: int, is_gone: Callable[[], bool] = _never, peer: Hashable = None) -> int:
        """Wait for that many bytes, or for all there are; how many were acquired, to be released later.

        is_gone: whether nobody needs them any more. peer: who asks, as far as that tells clients apart. PeerGoneError then, PeerRefusedError after REQUEST_WAIT_S. Who is
        cancelled waits no longer.
        """
        size = min(size, self._total)
        if not self.try_acquire(size, peer):
            waiter = _Waiter(size, peer, self._now(), is_gone, Deferred())
            self._waiters.append(peer, waiter)
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
            if waiter.turn.called:
                continue  # It had its turn because of one before it.
            if waiter.is_gone():
                self._waiters.remove(waiter.peer, waiter)
                waiter.turn.errback(PeerGoneError("the client closed the connection"))
            elif now - waiter.since >= REQUEST_WAIT_S:
                self._waiters.remove(waiter.peer, waiter)
                waiter.turn.errback(PeerRefusedError("the server has no room for this request", kind="Busy"))
        self._advance()

    def _withdraw(self, waiter: _Waiter) -> None:
        if waiter in self._waiters:
            self._waiters.remove(waiter.peer, waiter)
            self._advance()
        else:
            self.release(waiter.size)  # Its turn had come, and the one before it ended its task.

    def _advance(self) -> None:
        while (waiter := self._waiters.first()) is not None and waiter.size <= self._free:
            self._waiters.remove(waiter.peer, waiter)
            self._waiters.serve(waiter.peer)
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
