"""How fast a request's body has to come, and how long one that nobody reads any more may go on."""

from __future__ import annotations

from collections.abc import Callable

from grid.gateway.http.body import Body
from grid.limits import GATEWAY_BODY_PACE, GATEWAY_BODY_PERIOD_S
from grid.ports import Clock, Timer


class BodyPace:
    """Looks at one body again and again."""

    def __init__(self, clock: Clock, body: Body, on_late: Callable[[], None]) -> None:
        """on_late: called once, if the body is wanted and comes too slowly."""
        self._clock = clock
        self._body = body
        self._on_late = on_late
        self._timer: Timer | None = None
        self._seen = 0

    def watch(self) -> None:
        """Begin, and go on."""
        self._timer = self._clock.call_later(GATEWAY_BODY_PERIOD_S, self._check)

    def end(self, on_late: Callable[[], None]) -> None:
        """Nobody wants the rest: it may come for one more period, then `on_late` is called."""
        self.stop()
        self._timer = self._clock.call_later(GATEWAY_BODY_PERIOD_S, on_late)

    def stop(self) -> None:
        """Look no more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _check(self) -> None:
        self._timer = None
        body = self._body
        if body.has_ended:
            return
        if body.is_wanted and body.received - self._seen < GATEWAY_BODY_PACE:
            self._on_late()
            return
        self._seen = body.received
        self.watch()
