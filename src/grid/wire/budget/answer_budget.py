"""The memory that all answers of one server take together, over both protocols.

An answer's room is taken share by share while it is measured, before anything is read, and given back once the answer is
sent. An answer that does not fit waits, addresses in turn, bounded in number and in time, and holds nothing. Small answers
have a queue of their own and room that large ones never take, so that a few clients who take nothing of large answers keep
nobody else waiting. A client that does not take what it asked for is disconnected, much sooner while others wait, so that
the room comes back. [decision 0130]

Nothing here knows what an answer is about. Cost: a lock for each share, no timer unless a client is slower than the server.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable
from threading import Lock
from traceback import clear_frames
from types import TracebackType
from typing import Protocol, TypeVar

from attrs import define
from twisted.internet.defer import CancelledError, Deferred

from grid.errors import DataTooLargeError, NoRoomError, PeerGoneError, PeerRefusedError
from grid.limits import (
    ANSWER_PACE,
    ANSWER_PRESSED_PACE,
    ANSWER_PRESSED_S,
    ANSWER_PRESSED_STALL_S,
    ANSWER_SMALL_STALL_S,
    ANSWER_STALL_S,
    ANSWER_WAIT_S,
    ANSWERS_BYTES,
    MAX_WAITING_ANSWERS,
    SMALL_ANSWER,
    SMALL_ANSWERS_BYTES,
)
from grid.ports import Clock, Timer
from grid.wire.budget.answer_room import AnswerRoom
from grid.wire.budget.fair_queue import FairQueue

T = TypeVar("T")

PRESSED_REVIEW_S = 0.5
REVIEW_S = 15.0


class Outgoing(Protocol):
    """The connection that an answer is sent over."""

    @property
    def is_gone(self) -> bool:
        """Whether nobody waits for the answer any more."""

    @property
    def peer_address(self) -> str | None:
        """Where the client is, as far as that tells clients apart."""

    @property
    def received_size(self) -> int:
        """Bytes that the client has received; only differences mean anything."""

    def give_up(self) -> None:
        """Close the connection now: its client takes too long."""


@define(eq=False)
class _Waiter:
    """A reservation that waits for so many bytes, since then."""

    reservation: Reservation
    size: int
    since: float
    turn: Deferred[None]


def _nobody() -> bool:
    return False


class AnswerBudget:
    """So many bytes of answers at once."""

    def __init__(
        self,
        clock: Clock,
        total: int = ANSWERS_BYTES,
        *,
        most_waiting: int = MAX_WAITING_ANSWERS,
        small: int = SMALL_ANSWER,
        kept: int = SMALL_ANSWERS_BYTES,
        is_awaited: Callable[[], bool] = _nobody,
        on_return: Callable[[int], object] = bool,
    ) -> None:
        """small: up to this many bytes an answer is small. kept: bytes of the total that only small ones may take.
        is_awaited: whether somebody waits for the memory of requests, some of which are held until they are answered.
        on_return: told how many bytes are held no longer.
        """
        self._clock = clock
        self._room = AnswerRoom(total, small=small, kept=kept)
        self._most_waiting = most_waiting
        self._is_awaited = is_awaited
        self._on_return = on_return
        self._lock = Lock()
        self._small_waiters: FairQueue[_Waiter] = FairQueue()
        self._large_waiters: FairQueue[_Waiter] = FairQueue()
        self._sending: dict[Reservation, None] = {}
        self._timer: Timer | None = None
        self._timer_is_pressed = False

    @property
    def held_size(self) -> int:
        """Bytes taken now."""
        return self._room.held_size

    @property
    def waiting_count(self) -> int:
        """Answers that wait for room."""
        return len(self._small_waiters) + len(self._large_waiters)

    def reserve(self, outgoing: Outgoing | None = None) -> Reservation:
        """A reservation for one answer over that connection, which holds nothing yet."""
        return Reservation(self, outgoing)

    def try_take(self, peer: Hashable, held: int, size: int) -> bool:
        """Let an answer that holds so much hold that size, if it is free and nobody waits for it; on any thread."""
        with self._lock:
            queue = self._queue_of(size)
            if queue or not self._fits(held, size):
                return False
            self._room.move(held, size)
            queue.serve(peer)
            return True

    def give_back(self, held: int, size: int) -> None:
        """Let an answer that holds so much hold only that size; on the event loop."""
        with self._lock:
            self._room.move(held, size)
        self._on_return(held - size)
        self._advance()

    async def wait(self, reservation: Reservation, size: int) -> None:
        """Return when so many bytes were taken for the reservation, which holds none.

        DataTooLargeError if there are never so many, PeerRefusedError if too many wait already, or it takes too long.
        """
        most = self._room.most(size)
        if size > most:
            raise DataTooLargeError(f"an answer of {size} bytes; at most {most} can be sent at once, ask for less")
        if self.try_take(reservation.peer, 0, size):
            return
        self._drop_gone()
        if self.waiting_count >= self._most_waiting:
            raise _busy()
        waiter = _Waiter(reservation, size, self._clock.now(), Deferred())
        self._queue_of(size).append(reservation.peer, waiter)
        self._review()
        try:
            await waiter.turn
        except CancelledError:
            self._withdraw(waiter)
            raise

    def _withdraw(self, waiter: _Waiter) -> None:
        """Whoever waited was told to give up."""
        queue = self._queue_of(waiter.size)
        if waiter in queue:
            queue.remove(waiter.reservation.peer, waiter)
            self._advance()
        else:
            self.give_back(waiter.size, 0)  # Its turn had come, and whoever was told before it ended its task.

    def press(self) -> None:
        """Somebody waits for the memory of requests."""
        if self._sending:
            self._review()

    def _queue_of(self, size: int) -> FairQueue[_Waiter]:
        return self._small_waiters if self._room.is_small(size) else self._large_waiters

    def _fits(self, held: int, size: int) -> bool:
        return self._room.fits(held, size, large_waits=bool(self._large_waiters))

    # What a reservation tells.

    def is_sending(self, reservation: Reservation) -> None:
        """Its client has to take it now."""
        self._sending[reservation] = None
        self._arm()

    def is_done(self, reservation: Reservation) -> None:
        """Nothing of it waits for its client."""
        self._sending.pop(reservation, None)
        self._rest()

    # Time.

    def now(self) -> float:
        """Monotonic seconds."""
        return self._clock.now()

    def _drop_gone(self) -> None:
        for queue in (self._small_waiters, self._large_waiters):
            # One at a time: whoever hears of it may give back room, and others have their turn at once.
            while (waiter := next((each for each in queue if each.reservation.is_gone), None)) is not None:
                queue.remove(waiter.reservation.peer, waiter)
                waiter.turn.errback(_gone())

    def _advance(self) -> None:
        while (waiter := self._next()) is not None:
            if waiter.reservation.is_gone:
                waiter.turn.errback(_gone())
            else:
                waiter.turn.callback(None)
        self._rest()

    def _next(self) -> _Waiter | None:
        """The first waiter that fits, or whose client is gone, out of its queue; it has its room if it needs it still."""
        with self._lock:
            for queue in (self._small_waiters, self._large_waiters):
                if (waiter := queue.first()) is None:
                    continue
                is_gone = waiter.reservation.is_gone
                if is_gone or self._fits(0, waiter.size):
                    queue.remove(waiter.reservation.peer, waiter)
                    queue.serve(waiter.reservation.peer)
                    self._room.move(0, 0 if is_gone else waiter.size)
                    return waiter
        return None

    @property
    def _is_pressed(self) -> bool:
        return bool(self._small_waiters or self._large_waiters) or self._is_awaited()

    def _rest(self) -> None:
        if self._timer is not None and not self.waiting_count and not self._sending:
            self._timer.cancel()
            self._timer = None

    def _arm(self) -> None:
        pressed = self._is_pressed
        if self._timer is not None and pressed and not self._timer_is_pressed:
            self._timer.cancel()
            self._timer = None
        if self._timer is None and (self.waiting_count or self._sending):
            self._timer_is_pressed = pressed
            self._timer = self._clock.call_later(PRESSED_REVIEW_S if pressed else REVIEW_S, self._is_due)

    def _is_due(self) -> None:
        self._timer = None
        self._review()

    def _review(self) -> None:
        """Refuse those who waited too long; disconnect those who take nothing, as many as others wait for."""
        now = self._clock.now()
        self._drop_gone()
        for queue in (self._small_waiters, self._large_waiters):
            while (waiter := next((each for each in queue if now - each.since >= ANSWER_WAIT_S), None)) is not None:
                queue.remove(waiter.reservation.peer, waiter)
                waiter.turn.errback(_busy())
        self._advance()
        self._disconnect_stalled(now)
        self._arm()

    def _disconnect_stalled(self, now: float) -> None:
        patience = _Patience(
            # Who waits only for its own earlier answers presses nobody.
            large={id(waiter.reservation.outgoing) for waiter in self._large_waiters},
            small={id(waiter.reservation.outgoing) for waiter in self._small_waiters},
            is_awaited=self._is_awaited(),
        )
        stalled = [each for each in self._sending if each.stalls(now, *patience.towards(each))]
        missing = self._room.missing(
            *(sum(each.size for each in q) for q in (self._small_waiters, self._large_waiters))
        )
        for reservation in sorted(stalled, key=lambda each: each.behind_since):
            is_in_the_way = missing > 0 or (reservation.holds_request and patience.is_awaited)
            if is_in_the_way or now - reservation.behind_since >= ANSWER_STALL_S:
                missing -= reservation.size
                reservation.give_up()


@define
class _Patience:
    """How long a client may be behind which pace, by who else waits: connections, as their ids."""

    large: set[int]
    small: set[int]
    is_awaited: bool

    def towards(self, sending: Reservation) -> tuple[float, float]:
        """Seconds, and bytes a second."""
        own = {id(sending.outgoing)}
        if self.small - own or (self.is_awaited and sending.holds_request):
            return ANSWER_SMALL_STALL_S, max(ANSWER_PRESSED_PACE, sending.size / ANSWER_PRESSED_S)
        if self.large - own:
            return ANSWER_PRESSED_STALL_S, max(ANSWER_PRESSED_PACE, sending.size / ANSWER_PRESSED_S)
        return ANSWER_STALL_S, ANSWER_PACE


class Reservation:
    """What one answer holds of a budget, from before it is read until it is sent."""

    def __init__(self, budget: AnswerBudget, outgoing: Outgoing | None) -> None:
        self.outgoing = outgoing
        self.peer = None if outgoing is None else outgoing.peer_address
        self.holds_request = False
        """Whether the memory of the request is held until the answer is sent."""
        self._budget = budget
        self._lock = Lock()
        self._size = 0
        self._unused = 0
        self._is_over = False
        self._is_sending = False
        self._received = 0
        self.behind_since = 0.0

    def __enter__(self) -> Reservation:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.release()

    @property
    def size(self) -> int:
        """Bytes it holds."""
        return self._size

    def take(self, size: int) -> bool:
        """Take so many bytes for the answer if they are free; on any thread."""
        with self._lock:
            missing = size - self._unused
            if self._is_over:
                return False
            if missing > 0:
                if not self._budget.try_take(self.peer, self._size, self._size + missing):
                    return False
                self._size += missing
            self._unused = max(0, -missing)
            return True

    async def read(self, work: Callable[[], Awaitable[T]]) -> T:
        """What the work returns, done again whenever its answer had no room and has some now. PeerRefusedError."""
        while True:
            try:
                result = await work()
            except NoRoomError as error:
                size = error.size
                clear_frames(error.__traceback__)  # They hold what was read before the room was gone.
            else:
                self._give_back(self._unused)
                return result
            self.empty()
            await self.acquire(size)

    async def acquire(self, size: int) -> None:
        """Wait for so many bytes, while none are held. DataTooLargeError, PeerRefusedError."""
        await self._budget.wait(self, size)
        with self._lock:
            self._size = self._unused = size

    @property
    def is_gone(self) -> bool:
        """Whether nobody waits for the answer any more."""
        return self.outgoing is not None and self.outgoing.is_gone

    def sending(self) -> None:
        """From now on it waits for its client."""
        if self.outgoing is None:
            return
        self._is_sending = True
        self._received = self.outgoing.received_size
        self.behind_since = self._budget.now()
        self._budget.is_sending(self)

    def empty(self) -> None:
        """Give back what it holds; it can be used again."""
        if self._is_sending:
            self._is_sending = False
            self._budget.is_done(self)
        self._give_back(self._size)

    def release(self) -> None:
        """Give back what it holds for good: what is read for it and not answered, later, takes nothing."""
        with self._lock:
            self._is_over = True
        self.empty()

    def stalls(self, now: float, patience_s: float, pace: float) -> bool:
        """Whether its client has been behind that pace for so long."""
        if self.outgoing is None:
            return False
        received = self.outgoing.received_size
        behind_s = now - self.behind_since
        if received - self._received >= max(1.0, pace * behind_s):
            self._received, self.behind_since = received, now
            return False
        return behind_s >= patience_s

    def give_up(self) -> None:
        """Disconnect its client."""
        if self.outgoing is not None:
            self.outgoing.give_up()

    def _give_back(self, size: int) -> None:
        with self._lock:
            held = self._size
            self._size -= size
            self._unused = 0
        if size:
            self._budget.give_back(held, held - size)


def _busy() -> PeerRefusedError:
    return PeerRefusedError("the server has no room for this answer, since others are slow to be sent", kind="Busy")


def _gone() -> PeerGoneError:
    return PeerGoneError("the client closed the connection")
