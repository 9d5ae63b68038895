"""A request's body: buffers chunks until a handler takes them, and enforces a least rate. [spec webapi 1.1]

Owns the bound on buffered bytes; beyond it, the socket is not read. They count toward the shared memory of all bodies:
while that is over its limit, each body buffers as little as it can. Knows nothing of HTTP.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from twisted.internet.defer import Deferred

from grid.gateway.faults import BadRequest, PayloadTooLarge
from grid.gateway.shared.spool import LEAST_BATCH, Spool, SpoolFolder
from grid.limits import GATEWAY_BODY_PERIOD_S, GATEWAY_BODY_RATE
from grid.ports import Buffer, Clock, Timer
from grid.wire.connections.body_rate import BodyRate
from grid.wire.http.format.messages import keep_piece

MAX_WAITING = 2**20
"""Bytes that may be buffered for a handler."""

MAX_CHUNK = 2**20
"""Bytes handed over at once; small pieces are joined."""


def _ignore(_: int) -> None:
    pass


class Body:
    """The arriving body. size: total bytes, None if unknown. content_type: as in the request, "" without one."""

    def __init__(
        self,
        size: int | None,
        content_type: str,
        *,
        pause: Callable[[], None],
        resume: Callable[[], None],
        make_spool: Callable[[], Spool],
        memory: SpoolFolder,
        rate: BodyRate,
    ) -> None:
        """pause, resume: stop and resume reading the socket.

        make_spool: makes the storage for a body that is read twice. memory: counts the bytes that all bodies buffer.
        rate: notified when a handler waits for the client, and of each arrival.
        """
        self.size = size
        self.content_type = content_type
        self._set_reading: Callable[[bool], None] = lambda is_on: resume() if is_on else pause()
        self._make_spool = make_spool
        self._memory = memory
        self._rate = rate
        self._pieces: deque[Buffer] = deque()
        self._waiting = 0
        self._is_paused = False
        self._has_ended = size == 0
        self._error: Exception | None = None
        self._taker: Deferred[None] | None = None
        self._discards = False
        self.received = 0

    @property
    def waited_s(self) -> float:
        """Seconds that a waiting handler has waited for the client; 0 if none waits."""
        return 0.0 if self._taker is None else self._rate.waited_s

    @property
    def has_ended(self) -> bool:
        """Whether the whole body has arrived."""
        return self._has_ended

    @property
    def is_wanted(self) -> bool:
        """Whether a handler waits for more."""
        return not self._has_ended and not self._is_paused

    # Called by the connection.

    def arrive(self, data: bytes) -> None:
        """Take in more bytes."""
        self.received += len(data)
        self._rate.move(len(data))
        if self._discards:
            return
        if data:
            keep_piece(self._pieces, data)
        self._wait(len(data))
        if self._waiting > self._most_waiting and not self._is_paused:
            self._is_paused = True
            self._set_reading(False)
        self._wake()

    def end(self) -> None:
        """Mark the body as complete."""
        self._has_ended = True
        self._wake()

    def fail(self, error: Exception) -> None:
        """End the body early with this error."""
        self._error = error
        self._wake()

    def discard(self) -> None:
        """Drop the rest of the body, which no handler will take."""
        self.close()
        self._go_on()

    def close(self) -> None:
        """Drop what was not taken, since the request is over."""
        self._discards = True
        self._pieces.clear()
        self._wait(-self._waiting)

    # Called by a handler.

    async def chunks(self) -> AsyncIterator[bytes]:
        """Yield the bytes in order, once, in chunks of at most MAX_CHUNK. BadRequest if the client goes away."""
        while True:
            chunk = await self._next()
            if not chunk:
                return
            yield chunk

    async def read_all(self, limit: int, count: Callable[[int], None] = _ignore) -> bytes:
        """Read the whole body; PayloadTooLarge before more than `limit` is buffered.

        count: called with the size of each piece.
        """
        pieces = []
        async for chunk in self._limited(limit):
            count(len(chunk))
            pieces.append(chunk)
        return b"".join(pieces)

    @asynccontextmanager
    async def spooled(self, limit: int) -> AsyncIterator[Spool]:
        """Spool the body for random access while the context lasts; NoSpaceError, PayloadTooLarge past the limit."""
        with self._make_spool() as spool:
            async for chunk in self._limited(limit):
                await spool.write(chunk)
            await spool.finish()
            yield spool

    async def _limited(self, limit: int) -> AsyncIterator[bytes]:
        if self.size is not None and self.size > limit:
            raise PayloadTooLarge(f"the body has {self.size} bytes; at most {limit} are accepted here")
        size = 0
        async for chunk in self.chunks():
            size += len(chunk)
            if size > limit:
                raise PayloadTooLarge(f"the body has more than {limit} bytes, the most that is accepted here")
            yield chunk

    async def _next(self) -> bytes:
        while not self._pieces:
            if self._error is not None:
                raise self._error
            if self._has_ended:
                return b""
            self._taker = Deferred()
            self._rate.wait()
            await self._taker
        taken: list[Buffer] = []
        size = 0
        while self._pieces and (not taken or size + len(self._pieces[0]) <= MAX_CHUNK):
            taken.append(self._pieces.popleft())
            size += len(taken[-1])
        self._wait(-size)
        if self._waiting <= self._most_waiting // 2:
            self._go_on()
        return bytes(taken[0]) if len(taken) == 1 else b"".join(taken)

    @property
    def _most_waiting(self) -> int:
        return LEAST_BATCH // 2 if self._memory.is_crowded else MAX_WAITING

    def _wait(self, size: int) -> None:
        self._waiting += size
        self._memory.held_size += size

    def _go_on(self) -> None:
        if self._is_paused:
            self._is_paused = False
            self._set_reading(True)

    def _wake(self) -> None:
        taker, self._taker = self._taker, None
        self._rate.rest()
        if taker is not None and not taker.called:
            taker.callback(None)


def gone() -> BadRequest:
    """Raised in a handler that waits for a body when the client goes away."""
    return BadRequest("the client disconnected before its request was complete")


class LateBodyWatch:
    """Checks one body periodically."""

    def __init__(self, clock: Clock, body: Body, on_late: Callable[[], None]) -> None:
        """on_late: called once, if a handler waits for the body and it arrives too slowly."""
        self._clock = clock
        self._body = body
        self._on_late = on_late
        self._timer: Timer | None = None
        self._seen = 0

    def watch(self) -> None:
        """Start checking."""
        self._timer = self._clock.call_later(GATEWAY_BODY_PERIOD_S, self._check)

    def end(self, on_late: Callable[[], None]) -> None:
        """Give the rest of the body, which nobody waits for, one more period; then call `on_late`."""
        self.stop()
        self._timer = self._clock.call_later(GATEWAY_BODY_PERIOD_S, on_late)

    def stop(self) -> None:
        """Stop checking."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _check(self) -> None:
        self._timer = None
        body = self._body
        if body.has_ended:
            return
        if body.is_wanted and body.received - self._seen < GATEWAY_BODY_RATE:
            self._on_late()
            return
        self._seen = body.received
        self.watch()
