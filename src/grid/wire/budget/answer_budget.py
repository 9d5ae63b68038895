"""The memory that all answers of one server use together, over both protocols.

An answer reserves room share by share while it is measured, before anything is read, and releases it once it has been
sent. An answer that does not fit waits and holds nothing; addresses take turns, and waits are limited in number and time. Small
answers have a queue of their own, and room that large ones never take, so that a few clients that do not read large answers delay
nobody else. A client that does not read what it requested is disconnected, much sooner while others wait, so that
its room is released. [decision 0130]

It does not know the contents of answers. Cost: a lock per share, and no timer unless a client is slower than the server.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from threading import Lock

from twisted.internet.defer import CancelledError, Deferred

from grid.errors import DataTooLargeError, GridError, PeerGoneError, PeerRefusedError
from grid.limits import (
    ANSWER_PRESSED_RATE,
    ANSWER_PRESSED_S,
    ANSWER_PRESSED_STALL_S,
    ANSWER_RATE,
    ANSWER_SMALL_STALL_S,
    ANSWER_STALL_S,
    ANSWER_WAIT_S,
    ANSWERS_BYTES,
    MAX_WAITING_ANSWERS,
    READERS_ANSWERS_BYTES,
    SMALL_ANSWER,
    SMALL_ANSWERS_BYTES,
)
from grid.ports import Clock, Timer
from grid.values import define
from grid.wire.budget.answer_room import AnswerRoom
from grid.wire.budget.fair_queue import FairQueue
from grid.wire.budget.reservation import Outgoing, Reservation

PRESSED_REVIEW_S = 0.5
REVIEW_S = 15.0
MOST_UNREAD = 1000


@define(eq=False)
class _Waiter:
    """A reservation that waits for `size` bytes, and since when."""

    reservation: Reservation
    size: int
    since: float
    queue: FairQueue[_Waiter]
    turn: Deferred[None]


def _nobody() -> bool:
    return False


class AnswerBudget:
    """The memory that answers may hold together."""

    def __init__(
        self,
        clock: Clock,
        total: int = ANSWERS_BYTES,
        *,
        most_waiting: int = MAX_WAITING_ANSWERS,
        small: int = SMALL_ANSWER,
        kept: int = SMALL_ANSWERS_BYTES,
        readers: int = READERS_ANSWERS_BYTES,
        is_awaited: Callable[[], bool] = _nobody,
        on_return: Callable[[int], object] = bool,
    ) -> None:
        """small: an answer of up to this many bytes is small. kept: bytes of the total that only small answers may use.
        readers: bytes for large answers that addresses with unread answers may not use.
        is_awaited: whether somebody waits for request memory, some of which is held until its requests are answered.
        on_return: called with the number of bytes released.
        """
        self._clock = clock
        self._room = AnswerRoom(total, small=small, kept=kept, readers=readers)
        self._most_waiting = most_waiting
        self._is_awaited = is_awaited
        self._on_return = on_return
        self._lock = Lock()
        self._small_waiters: FairQueue[_Waiter] = FairQueue()
        self._large_waiters: FairQueue[_Waiter] = FairQueue()
        self._unread_waiters: FairQueue[_Waiter] = FairQueue()
        self._queues = self._small_waiters, self._large_waiters, self._unread_waiters
        self._unread: dict[Hashable, None] = {}
        self._sending: dict[Reservation, None] = {}
        self._timer: Timer | None = None
        self._timer_is_pressed = False

    @property
    def held_size(self) -> int:
        """Bytes held now."""
        return self._room.held_size

    @property
    def waiting_count(self) -> int:
        """Answers that wait for room."""
        return self._small_waiters.count + self._large_waiters.count + self._unread_waiters.count

    def reserve(self, outgoing: Outgoing | None = None) -> Reservation:
        """A new, empty reservation for an answer over that connection."""
        return Reservation(self, outgoing)

    def try_take(self, peer: Hashable, held: int, size: int) -> bool:
        """Grow an answer from `held` to `size` bytes, if they are free and nobody waits for them. Safe on any thread."""
        with self._lock:
            queue = self._queue_of(peer, size)
            if queue.count or not self._fits(peer, held, size):
                return False
            self._room.move(held, size)
            queue.serve(peer)
            return True

    def give_back(self, held: int, size: int) -> None:
        """Shrink an answer from `held` to `size` bytes. Call this on the event loop."""
        with self._lock:
            self._room.move(held, size)
        self._on_return(held - size)
        self._advance()

    async def wait(self, reservation: Reservation, size: int) -> None:
        """Wait until `size` bytes are reserved. The reservation must be empty.

        DataTooLargeError if there is never that much room; PeerRefusedError if too many wait already or the wait is too long.
        """
        most = self._room.most(size)
        if size > most:
            raise DataTooLargeError(f"an answer of {size} bytes; at most {most} can be sent at once, ask for less")
        if self.try_take(reservation.peer, 0, size):
            return
        if self.waiting_count >= self._most_waiting:
            self._drop_gone()
            if self.waiting_count >= self._most_waiting:
                raise _busy()
        queue = self._queue_of(reservation.peer, size)
        waiter = _Waiter(reservation, size, self._clock.now(), queue, Deferred())
        queue.append(reservation.peer, waiter)
        self._look()
        try:
            await waiter.turn
        except CancelledError:
            self._withdraw(waiter)
            raise

    def _withdraw(self, waiter: _Waiter) -> None:
        """Handle the cancellation of a waiting task."""
        if waiter in waiter.queue:
            waiter.queue.remove(waiter.reservation.peer, waiter)
            self._advance()
        else:
            self.give_back(waiter.size, 0)  # Its turn had come, and the waiter before it canceled its task.

    def press(self) -> None:
        """Check slow clients sooner, because somebody waits for request memory."""
        if self._sending:
            self._look()

    def _queue_of(self, peer: Hashable, size: int) -> FairQueue[_Waiter]:
        if self._room.is_small(size):
            return self._small_waiters
        return self._unread_waiters if peer in self._unread else self._large_waiters

    def _fits(self, peer: Hashable, held: int, size: int) -> bool:
        is_read = peer not in self._unread
        return self._room.fits(held, size, large_waits=self._large_waiters.count > 0, is_read=is_read)

    # What reservations report.

    def is_sending(self, reservation: Reservation) -> None:
        """Note that the client must read the answer from now on."""
        self._sending[reservation] = None
        self._arm()

    def is_done(self, reservation: Reservation) -> None:
        """Note that nothing of the answer waits for its client."""
        self._sending.pop(reservation, None)
        if not reservation.is_gone and not self._room.is_small(reservation.size):
            self._unread.pop(reservation.peer, None)
        self._rest()

    def _was_unread(self, peer: Hashable) -> None:
        self._unread.pop(peer, None)
        self._unread[peer] = None
        if len(self._unread) > MOST_UNREAD:
            del self._unread[next(iter(self._unread))]

    # Time.

    def now(self) -> float:
        """Monotonic seconds."""
        return self._clock.now()

    def _drop_gone(self) -> None:
        self._end_waits(lambda waiter: waiter.reservation.is_gone, _gone)

    def _end_waits(self, is_over: Callable[[_Waiter], bool], error: Callable[[], GridError]) -> None:
        for queue in self._queues:
            for waiter in list(queue):
                # A waiter that resumes may release room at once, so that others in the list have had their turn.
                if not waiter.turn.called and is_over(waiter):
                    queue.remove(waiter.reservation.peer, waiter)
                    waiter.turn.errback(error())

    def _advance(self) -> None:
        while self.waiting_count and (waiter := self._next()) is not None:
            if waiter.reservation.is_gone:
                waiter.turn.errback(_gone())
            else:
                waiter.turn.callback(None)
        self._rest()

    def _next(self) -> _Waiter | None:
        """Remove and return the first waiter that fits or whose client is gone. Reserves its room if it still needs any."""
        with self._lock:
            for queue in self._queues:
                if (waiter := queue.first()) is None:
                    continue
                is_gone = waiter.reservation.is_gone
                if is_gone or self._fits(waiter.reservation.peer, 0, waiter.size):
                    queue.remove(waiter.reservation.peer, waiter)
                    queue.serve(waiter.reservation.peer)
                    self._room.move(0, 0 if is_gone else waiter.size)
                    return waiter
        return None

    @property
    def _is_pressed(self) -> bool:
        return self.waiting_count > 0 or self._is_awaited()

    def _rest(self) -> None:
        if self._timer is not None and not self._sending and not self.waiting_count:
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

    def _look(self) -> None:
        """Check slow clients now, because somebody waits. Further waiters do not repeat the check before the next one is due."""
        if self._timer is None or not self._timer_is_pressed:
            self._review()

    def _is_due(self) -> None:
        self._timer = None
        self._review()

    def _review(self) -> None:
        """Refuse those that have waited too long. Disconnect as many slow clients as others wait for."""
        now = self._clock.now()
        self._drop_gone()
        self._end_waits(lambda waiter: now - waiter.since >= ANSWER_WAIT_S, _busy)
        self._advance()
        self._disconnect_stalled(now)
        self._arm()

    def _disconnect_stalled(self, now: float) -> None:
        patience = _Patience(
            # A client that waits only for its own earlier answers puts no pressure on others.
            large={id(each.reservation.outgoing) for queue in self._queues[1:] for each in queue},
            small={id(waiter.reservation.outgoing) for waiter in self._small_waiters},
            is_awaited=self._is_awaited(),
        )
        stalled = [each for each in self._sending if each.stalls(now, *patience.towards(each))]
        small, large, unread = (sum(each.size for each in queue) for queue in self._queues)
        missing = self._room.missing(small, large + unread)
        for reservation in sorted(stalled, key=lambda each: each.behind_since):
            is_in_the_way = missing > 0 or (reservation.holds_request and patience.is_awaited)
            if is_in_the_way or now - reservation.behind_since >= ANSWER_STALL_S:
                missing -= reservation.size
                if reservation.peer is not None and not self._room.is_small(reservation.size):
                    self._was_unread(reservation.peer)
                reservation.give_up()


@define
class _Patience:
    """How long a client may stay below which rate, depending on who else waits: connections, as their ids."""

    large: set[int]
    small: set[int]
    is_awaited: bool

    def towards(self, sending: Reservation) -> tuple[float, float]:
        """(seconds, bytes per second)."""
        own = {id(sending.outgoing)}
        if self.small - own or (self.is_awaited and sending.holds_request):
            return ANSWER_SMALL_STALL_S, max(ANSWER_PRESSED_RATE, sending.size / ANSWER_PRESSED_S)
        if self.large - own:
            return ANSWER_PRESSED_STALL_S, max(ANSWER_PRESSED_RATE, sending.size / ANSWER_PRESSED_S)
        return ANSWER_STALL_S, ANSWER_RATE


def _busy() -> PeerRefusedError:
    return PeerRefusedError("the server has no room for this answer: clients take earlier ones too slowly", kind="Busy")


def _gone() -> PeerGoneError:
    return PeerGoneError("the client closed the connection")
