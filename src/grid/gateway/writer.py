"""Where the octets of an answer go: as fast as the client takes them, and no longer than it does. [spec webapi 1.5]"""

from __future__ import annotations

from typing import Protocol

from twisted.internet.defer import Deferred

from grid.limits import GATEWAY_STALL_S
from grid.ports import Buffer, Clock, Timer


class Outlet(Protocol):
    """What an answer is written to."""

    clock: Clock

    def begin_answer(self) -> None:
        """Send the head, once."""

    def write(self, data: bytes) -> None:
        """Send octets of the body."""

    def abort(self) -> None:
        """End the connection now."""


class Writer:
    """Where an answer's octets go; waits while the client does not take them."""

    def __init__(self, outlet: Outlet) -> None:
        self._outlet = outlet
        self._ready: Deferred[None] | None = None
        self._is_paused = False
        self._stall: Timer | None = None
        self.written = 0

    async def write(self, data: Buffer) -> None:
        """Take the octets; the head goes before the first of them."""
        if self._is_paused:
            self._ready = Deferred()
            await self._ready
        if len(data):
            self._outlet.begin_answer()
            self.written += len(data)
            self._outlet.write(data if isinstance(data, bytes) else bytes(data))

    def pauseProducing(self) -> None:
        """The client is slower than we are."""
        self._is_paused = True
        if self._stall is None:
            self._stall = self._outlet.clock.call_later(GATEWAY_STALL_S, self._outlet.abort)

    def resumeProducing(self) -> None:
        """The client took what it was sent."""
        self._is_paused = False
        self._relax()
        ready, self._ready = self._ready, None
        if ready is not None:
            ready.callback(None)

    def stopProducing(self) -> None:
        """The client is gone; the request hears of it too."""
        self._relax()

    def _relax(self) -> None:
        if self._stall is not None:
            self._stall.cancel()
            self._stall = None
