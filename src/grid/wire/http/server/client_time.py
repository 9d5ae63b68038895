"""How long a connection waits for its client: one deadline, and the rates at which the client sends bodies and reads answers.

It decides nothing: when its timer fires, the connection says whether to continue. Cost: one timer per connection.
"""

from __future__ import annotations

from collections.abc import Callable

from grid.limits import HTTP_BODY_RATE, HTTP_STALL_DEADLINE_S
from grid.ports import Clock, Timer
from grid.wire.connections.body_rate import BodyRate

TICK_S = 15.0
"""How often, at least, to check whether the deadline has passed."""


class ClientTime:
    """The time that a client has. body, answer: how long we have waited for it to send a body, and to read an answer."""

    def __init__(self, clock: Clock, may_go_on: Callable[[float], bool]) -> None:
        """may_go_on: receives the seconds until the deadline, negative if it has passed; if it returns False, the watch ends."""
        self.body = BodyRate(clock, HTTP_BODY_RATE)
        self.answer = BodyRate(clock, 1)
        self._clock = clock
        self._may_go_on = may_go_on
        self._deadline = 0.0
        self._timer: Timer | None = None

    def allow(self, seconds: float) -> None:
        """Set the deadline that many seconds from now."""
        self._deadline = self._clock.now() + seconds
        if self._timer is None:
            self._timer = self._clock.call_later(min(seconds, TICK_S), self._look)

    def begin_body(self, size: int) -> None:
        """Begin a request whose first `size` body bytes came with it."""
        self.body.begin()
        self.body.move(size)
        self.allow(HTTP_STALL_DEADLINE_S)

    def await_body(self) -> None:
        """Start waiting for the client to send more of the body."""
        self.body.wait()
        self.allow(HTTP_STALL_DEADLINE_S - self.body.waited_s)

    def body_came(self, size: int) -> None:
        """Count bytes of the body; a trickle of them gives no more time."""
        self.body.move(size)
        self.allow(HTTP_STALL_DEADLINE_S - self.body.waited_s)

    def stop(self) -> None:
        """Stop, because the connection is lost."""
        if self._timer is not None:
            self._timer.cancel()

    def _look(self) -> None:
        self._timer = None
        wait_s = self._deadline - self._clock.now()
        if self._may_go_on(wait_s):
            self._timer = self._clock.call_later(min(max(wait_s, 1.0), TICK_S), self._look)
