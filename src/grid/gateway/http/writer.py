"""Where the bytes of an answer go: as fast as the client takes them, and no longer than it does. [spec webapi 1.5]"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from twisted.internet.defer import Deferred

from grid.limits import GATEWAY_STALL_S
from grid.ports import Buffer, Clock, Timer

TOGETHER = 2**25
"""Bytes that all answers under way may have copied for their sockets."""

LEAST_PIECE = 2**18
"""Bytes of each that are, however many there are."""


def piece_size(answers: int) -> int:
    """Bytes that each of that many answers copies for its socket at once.

    What a client takes slowly is then kept once, where it was read, and not in the socket's buffer too; but what a few
    take fast is not cut up.
    """
    return max(LEAST_PIECE, TOGETHER // max(1, answers))


class Outlet(Protocol):
    """What an answer is written to."""

    @property
    def clock(self) -> Clock:
        """The gateway's clock."""

    def begin_answer(self) -> None:
        """Send the head, once."""

    def write(self, data: bytes) -> None:
        """Send bytes of the body."""

    def abort(self) -> None:
        """End the connection now."""


class Writer:
    """Where an answer's bytes go; waits while the client does not take them."""

    def __init__(self, outlet: Outlet, size: Callable[[], int]) -> None:
        """size: bytes that are given to the outlet at once."""
        self._outlet = outlet
        self._size = size
        self._ready: Deferred[None] | None = None
        self._is_paused = False
        self._stall: Timer | None = None
        self._paused_at = 0.0
        self.written = 0

    @property
    def waited_s(self) -> float:
        """How long the answer has waited for the client to take what it was sent."""
        return 0.0 if self._ready is None else self._outlet.clock.now() - self._paused_at

    async def write(self, data: Buffer) -> None:
        """Take the bytes; the head goes before the first of them."""
        view = memoryview(data)
        await self._room()
        start = 0
        while start < len(view):
            await self._room()
            piece = view[start : start + self._size()]
            start += len(piece)
            self._outlet.begin_answer()
            self.written += len(piece)
            self._outlet.write(data if isinstance(data, bytes) and len(piece) == len(data) else bytes(piece))

    async def _room(self) -> None:
        """Return when the client has taken what it was sent."""
        if self._is_paused:
            self._ready = Deferred()
            await self._ready

    def pauseProducing(self) -> None:
        """The client is slower than we are."""
        self._is_paused = True
        self._paused_at = self._outlet.clock.now()
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
