"""One attempt at a time, shared by all callers that want its result, with a deadline.

A caller that asks while an attempt is running waits for that one. Whatever ends the attempt ends it for all callers at once: a result,
any exception, its deadline (even if the attempt ignores being canceled), or cancel(). The owner decides when
an attempt may begin.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from grid.errors import GridError, PeerGoneError, PeerTimeoutError
from grid.ports import Clock, Timer
from grid.runtime import is_cancellation
from grid.wire.reasons import ABANDONED, unreachable, words_for

T = TypeVar("T")


class _Flight:
    """One attempt. task: None until it has begun."""

    def __init__(self) -> None:
        self.task: Deferred[None] | None = None
        self.timer: Timer | None = None


class SingleFlight(Generic[T]):
    """The attempts of one owner, never two at once.

    arrived, failed: notify the owner how an attempt ended, before any waiting caller; the owner may start the
    next attempt from there. `failed` gets every error except that of cancel(), as a GridError.
    """

    def __init__(
        self,
        attempt: Callable[[], Awaitable[T]],
        clock: Clock,
        deadline_s: float,
        where: str,
        *,
        arrived: Callable[[T], None],
        failed: Callable[[GridError], None],
    ) -> None:
        """where: the server's name in messages; deadline_s: for each whole attempt."""
        self._attempt = attempt
        self._clock = clock
        self._deadline_s = deadline_s
        self._where = where
        self._arrived = arrived
        self._failed = failed
        self._flight: _Flight | None = None
        self._waiters: list[Deferred[T]] = []

    @property
    def is_flying(self) -> bool:
        """Whether an attempt is running."""
        return self._flight is not None

    async def join(self) -> T:
        """The result of the running attempt, or of a new one; raises its error. Canceling this call does not end the attempt."""
        # An attempt may end before start() returns, so the waiting caller must be registered first.
        waiter: Deferred[T] = Deferred(self._forget)
        self._waiters.append(waiter)
        self.start()
        return await waiter

    def start(self) -> None:
        """Start an attempt unless one is running. Nobody has to wait for it."""
        if self._flight is not None:
            return
        flight = self._flight = _Flight()
        flight.timer = self._clock.call_later(self._deadline_s, lambda: self._expire(flight))

        async def body() -> T:
            return await self._attempt()

        task = Deferred.fromCoroutine(body())
        flight.task = task.addCallbacks(
            lambda result: self._land(flight, result), lambda failure: self._crash(flight, failure)
        )
        if self._flight is not flight:
            flight.task.cancel()  # It was canceled while it began. If it has ended already, this does nothing.

    def cancel(self) -> None:
        """Give up the running attempt. All waiting callers get PeerGoneError."""
        if self._flight is not None:
            self._abandon(self._flight, self._given_up())

    def _expire(self, flight: _Flight) -> None:
        if self._flight is not flight:
            return
        reason = f"did not finish connecting within {self._deadline_s:g} s"
        error = PeerTimeoutError(f"{self._where} {reason}", reason=reason, server=self._where)
        self._abandon(flight, error, self._failed)

    def _abandon(self, flight: _Flight, error: GridError, tell: Callable[[GridError], None] = lambda _: None) -> None:
        """End a flight whose attempt is still running, and cancel the attempt as far as it allows that."""
        waiters = self._end(flight)
        try:
            tell(error)
        finally:
            self._fail(waiters, error)
            if flight.task is not None:
                flight.task.cancel()

    def _land(self, flight: _Flight, result: T) -> None:
        if self._flight is not flight:
            return  # The attempt was abandoned.
        waiters = self._end(flight)
        try:
            self._arrived(result)
        except Exception as error:  # noqa: BLE001 - whatever it is, nobody may be left waiting for it
            self._tell_failure(waiters, error)
            return
        for waiter in waiters:
            if not waiter.called:  # The callback of one waiting caller may have canceled another.
                waiter.callback(result)

    def _crash(self, flight: _Flight, failure: Failure) -> None:
        if self._flight is flight:
            self._tell_failure(self._end(flight), failure.value)

    def _tell_failure(self, waiters: list[Deferred[T]], cause: BaseException | None) -> None:
        error = self._translate(cause)
        try:
            self._failed(error)
        finally:
            self._fail(waiters, error)

    def _translate(self, error: BaseException | None) -> GridError:
        if isinstance(error, GridError):
            return error
        if error is not None and is_cancellation(error):
            return self._given_up()
        # Libraries raise ValueError and others for impossible names and addresses.
        return unreachable(self._where, words_for(error))

    def _given_up(self) -> GridError:
        return PeerGoneError(f"the attempt to reach {self._where} was abandoned", reason=ABANDONED, server=self._where)

    def _end(self, flight: _Flight) -> list[Deferred[T]]:
        """Detach the flight. Returns the callers that waited for it."""
        self._flight = None
        if flight.timer is not None:
            flight.timer.cancel()
        waiters, self._waiters = self._waiters, []
        return waiters

    def _fail(self, waiters: list[Deferred[T]], error: GridError) -> None:
        for waiter in waiters:
            if not waiter.called:
                waiter.errback(error)

    def _forget(self, waiter: Deferred[T]) -> None:
        if waiter in self._waiters:
            self._waiters.remove(waiter)
