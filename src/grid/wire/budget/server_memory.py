"""The memory that all connections of one storage server share: for answers, and for long requests.

There is one per node, used by both protocols. A request larger than the whole request budget runs alone and takes room from
answers while it is held, so that one from each protocol never coincides with a full budget of answers. Pure of sockets; waits
are Deferreds.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Protocol

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
from grid.values import define
from grid.wire.budget.answer_budget import AnswerBudget
from grid.wire.budget.fair_queue import FairQueue
from grid.wire.budget.reservation import Reservation

RETURN_SIZE = 8 * 2**20
"""Once this many bytes were released, look at what they leave behind in the allocator."""

RETURN_S = 0.05
"""How long after the release to do that."""

_JUDGED_SIZE = 2**20
"""A message is judged once 1.5 times this is due, and is too slow if less than a third of what is due has come. Data is seen half a
megabyte at a time, or at the end of a string."""

LOOK_S = 0.5
"""How often to look for slow messages while somebody waits for room."""


class Coming(Protocol):
    """A message that holds room and has not come completely."""

    def hurry(self, now: float) -> None:
        """Give the message up if it is too slow, because others wait."""


class PressedRate:
    """The rate of a message that holds room, judged while others wait for that room."""

    def __init__(self, received: int, now: float) -> None:
        self._mark = received, now

    def excuse(self, received: int, now: float) -> None:
        """Restart the measurement, because until now the sender was held back."""
        self._mark = received, now

    def is_too_slow(self, claim: int, received: int, now: float) -> bool:
        """Whether it is far behind the rate per second, or the rate at which all of its claim would come within a minute."""
        before, since = self._mark
        due = (now - since) * max(MESSAGE_PRESSED_RATE, claim / MESSAGE_PRESSED_S)
        if due < 1.5 * min(_JUDGED_SIZE, claim):
            return False
        self._mark = received, now
        return received - before < due / 3


class MadeWay:
    """The room that answers give up while a request is held that is larger than the whole request budget."""

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
        """End this: the request is gone."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
            self._answers.release()


class ServerMemory:
    """The budgets of one server."""

    def __init__(self, clock: Clock, return_memory: Callable[[], None] | None = None) -> None:
        """return_memory: returns freed memory to the system if it is much; called soon after RETURN_SIZE bytes were released."""
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
        """Messages that hold room and have not come completely."""
        self._timer: Timer | None = None

    async def make_way(self, excess: int) -> MadeWay:
        """Prepare for a request that exceeds the request budget by `excess` bytes. Release the result with the request.

        Answers give up some of their room, and freed memory is returned to the system before the request comes and
        while it comes. PeerRefusedError if answers leave no room for too long.
        """
        room = self.answers.reserve()
        await room.acquire(min(excess, OVERSIZE_ANSWERS_BYTES))
        return MadeWay(self.clock, room, self._return_memory or _ignore)

    def returned(self, size: int) -> None:
        """Release `size` bytes; they become free in a moment."""
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
    """A caller that waits for `size` bytes, and since when."""

    size: int
    peer: Hashable
    since: float
    is_gone: Callable[[], bool]
    turn: Deferred[None]


class ByteBudget:
    """A number of bytes to hold, handed out to peers in turn, and to each peer in the order of its requests."""

    def __init__(self, total: int, on_return: Callable[[int], object] = bool, now: Callable[[], float] = float) -> None:
        """on_return: called with the number of bytes released. now: monotonic seconds."""
        self._total = total
        self._on_return = on_return
        self._now = now
        self._free = total
        self._waiters: FairQueue[_Waiter] = FairQueue()
        self.on_wait: Callable[[], None] = _ignore
        """Called when somebody starts to wait. The owner then calls `review` now and then, as long as anybody waits."""

    @property
    def is_awaited(self) -> bool:
        """Whether anybody waits."""
        return self._waiters.count > 0

    @property
    def total(self) -> int:
        """Size of the budget in bytes."""
        return self._total

    @property
    def free(self) -> int:
        """Free bytes; negative if overdrawn."""
        return self._free

    def try_acquire(self, size: int, peer: Hashable = None) -> bool:
        """Take `size` bytes if they are free and nobody waits for them."""
        if self._waiters.count or size > self._free:
            return False
        self._free -= size
        self._waiters.serve(peer)
        return True

    def overdraw(self, size: int) -> None:
        """Take `size` bytes even if they are not free."""
        self._free -= size

    async def acquire(self, size: int, is_gone: Callable[[], bool] = _never, peer: Hashable = None) -> int:
        """Wait for that many bytes, or for the whole budget if it is smaller. Returns the number acquired, which must be released.

        is_gone: whether the bytes are no longer needed; then PeerGoneError. peer: who asks, if known. PeerRefusedError after
        REQUEST_WAIT_S. Canceling ends the wait.
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
        """Release what acquire returned."""
        self._free += size
        self._on_return(size)
        self._advance()

    def review(self) -> None:
        """Drop waiters that are gone, and refuse those that have waited too long."""
        now = self._now()
        for waiter in list(self._waiters):
            if waiter.turn.called:
                continue  # It got its turn when the waiter before it was dropped.
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
            self.release(waiter.size)  # Its turn had come, and the waiter before it canceled its task.

    def _advance(self) -> None:
        while self._waiters.count and (waiter := self._waiters.first()) is not None and waiter.size <= self._free:
            self._waiters.remove(waiter.peer, waiter)
            self._waiters.serve(waiter.peer)
            self._free -= waiter.size
            waiter.turn.callback(None)


class CallCount:
    """How many calls are running, over all connections."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._count = 0
        self._waiters: dict[Callable[[], None], None] = {}

    @property
    def has_room(self) -> bool:
        """Whether another call is welcome."""
        return self._count < self._limit

    def enter(self) -> None:
        """Count a new call. It is always accepted, but its connection is not read from while there are too many."""
        self._count += 1

    def leave(self) -> None:
        """Note that a call has ended."""
        self._count -= 1
        if self._waiters and self.has_room:
            waiters, self._waiters = self._waiters, {}
            for wake in waiters:
                wake()

    def wait(self, wake: Callable[[], None]) -> None:
        """Call `wake` once, when there may be room."""
        self._waiters[wake] = None
