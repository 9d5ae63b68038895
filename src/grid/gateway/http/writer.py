"""Writes an answer at the client's speed, and stops when the client goes away. [spec webapi 1.5]"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from twisted.internet.defer import Deferred

from grid.limits import GATEWAY_STALL_S
from grid.ports import Buffer, Clock, Timer

TOGETHER = 2**25
"""Bytes that all running answers may copy for their sockets."""

LEAST_PIECE = 2**18
"""Bytes that each answer may copy, however many there are."""


def piece_size(answers: int) -> int:
    """Bytes that each of `answers` answers copies for its socket at once.

    With a slow client, data is then held once, where it was read, and not again in the socket's buffer. With few
    clients, pieces stay large.
    """
    return max(LEAST_PIECE, TOGETHER // max(1, answers))


class Outlet(Protocol):
    """Where an answer is written."""

    @property
    def clock(self) -> Clock:
        """The gateway's clock."""

    def begin_answer(self) -> None:
        """Send the head, once."""

    def write(self, data: bytes) -> None:
        """Send bytes of the body."""

    def abort(self) -> None:
        """Close the connection at once."""


class Writer:
    """A sink for an answer's bytes, which waits while the client does not accept them."""

    def __init__(self, outlet: Outlet, size: Callable[[], int]) -> None:
        """size: returns how many bytes to pass to the outlet at once."""
        self._outlet = outlet
        self._size = size
        self._ready: Deferred[None] | None = None
        self._is_paused = False
        self._stall: Timer | None = None
        self._paused_at = 0.0
        self.written = 0

    @property
    def waited_s(self) -> float:
        """Seconds that the answer has waited for the client to accept data."""
        return 0.0 if self._ready is None else self._outlet.clock.now() - self._paused_at

    async def write(self, data: Buffer) -> None:
        """Send the bytes; the head goes before the first of them."""
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
        """Wait until the client has accepted the sent data."""
        if self._is_paused:
            self._ready = Deferred()
            await self._ready

    def pauseProducing(self) -> None:
        """Pause: the socket's buffer is full."""
        self._is_paused = True
        self._paused_at = self._outlet.clock.now()
        if self._stall is None:
            self._stall = self._outlet.clock.call_later(GATEWAY_STALL_S, self._outlet.abort)

    def resumeProducing(self) -> None:
        """Resume: the socket's buffer has drained."""
        self._is_paused = False
        self._relax()
        ready, self._ready = self._ready, None
        if ready is not None:
            ready.callback(None)

    def stopProducing(self) -> None:
        """Stop: the client is gone. The request is notified separately."""
        self._relax()

    def _relax(self) -> None:
        if self._stall is not None:
            self._stall.cancel()
            self._stall = None
