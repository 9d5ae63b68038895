"""Bodies of requests and answers with flow control: no more is read than the receiver accepts."""

from __future__ import annotations

from collections import deque
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.error import ConnectionDone
from twisted.internet.protocol import Protocol
from twisted.python.failure import Failure
from twisted.web.client import ResponseDone
from twisted.web.http import PotentialDataLoss
from twisted.web.iweb import IBodyProducer
from zope.interface import implementer

from grid.errors import PeerGoneError, PeerTimeoutError
from grid.ports import Clock, Source
from grid.runtime import Tasks

PIECE = 256 * 1024
"""Bytes of a request's body read at once."""

HELD = 1024 * 1024
"""Buffered bytes of an answer at which receiving pauses."""


@implementer(IBodyProducer)
class SourceProducer:
    """A Source as the body of a request, with a known length."""

    def __init__(self, source: Source, sent: Any = None) -> None:
        """sent: called with the total of bytes sent."""
        self.length = source.size
        self._source = source
        self._sent = sent
        self._tasks = Tasks()
        self._resumed: Deferred[None] | None = None
        self._is_paused = False

    def startProducing(self, consumer: Any) -> Deferred[None]:
        """Send everything. The Deferred fires when the last byte was handed over, or fails if reading fails."""
        done: Deferred[None] = Deferred(lambda _: self._tasks.cancel())
        self._tasks.start(self._send(consumer), done.callback, lambda error: _fail(done, error))
        return done

    def pauseProducing(self) -> None:
        """Pause: the socket's buffer is full."""
        self._is_paused = True

    def resumeProducing(self) -> None:
        """Resume: the socket accepts more."""
        self._is_paused = False
        resumed, self._resumed = self._resumed, None
        if resumed is not None:
            resumed.callback(None)

    def stopProducing(self) -> None:
        """Stop: the connection is gone."""
        self._tasks.cancel()

    async def _send(self, consumer: Any) -> None:
        offset = 0
        while offset < self.length:
            if self._is_paused:
                self._resumed = Deferred()
                await self._resumed
            size = min(PIECE, self.length - offset)
            consumer.write(bytes(await self._source.read_at(offset, size)))
            offset += size
            if self._sent is not None:
                self._sent(offset)


def _fail(done: Deferred[None], error: BaseException) -> None:
    if not done.called:
        done.errback(Failure(error))


class AnswerBody(Protocol):
    """The body of an answer, read piece by piece."""

    transport: Any

    def __init__(self, clock: Clock, stall_s: float) -> None:
        self._clock = clock
        self._stall_s = stall_s
        self._pieces: deque[bytes] = deque()
        self._held = 0
        self._is_paused = False
        self._is_over = False
        self._error: PeerGoneError | PeerTimeoutError | None = None
        self._waiter: Deferred[None] | None = None

    def dataReceived(self, data: bytes) -> None:
        """Buffer received bytes."""
        self._pieces.append(data)
        self._held += len(data)
        if self._held >= HELD and not self._is_paused:
            self._is_paused = True
            self.transport.pauseProducing()
        self._wake()

    def connectionLost(self, reason: Failure = Failure(ConnectionDone())) -> None:  # noqa: B008 - as Twisted has it
        """Note the end of the body."""
        if reason.check(PotentialDataLoss):
            self._finish(PeerGoneError("the gateway's answer does not say where it ends"))
        elif not reason.check(ResponseDone):
            self._finish(PeerGoneError("the gateway broke off its answer before its end"))
        else:
            self._finish(None)

    async def next(self) -> bytes:
        """The next piece, empty at the end; PeerGoneError if the answer is cut off, PeerTimeoutError if it stalls."""
        while not self._pieces:
            if self._error is not None:
                raise self._error
            if self._is_over:
                return b""
            await self._wait()
        piece = self._pieces.popleft()
        self._held -= len(piece)
        if self._is_paused and self._held < HELD // 2:
            self._is_paused = False
            self.transport.resumeProducing()
        return piece

    def abort(self) -> None:
        """Stop reading; the connection is closed unless the answer has ended."""
        if not self._is_over:
            self._finish(PeerGoneError("the answer was abandoned"))
            if self.transport is not None:
                self.transport.loseConnection()
        self._pieces.clear()

    async def _wait(self) -> None:
        waiter: Deferred[None] = Deferred()
        self._waiter = waiter

        def stall() -> None:
            self._finish(PeerTimeoutError(f"the gateway sent nothing for {self._stall_s:.0f} s"))
            self.transport.loseConnection()

        timer = self._clock.call_later(self._stall_s, stall)
        try:
            await waiter
        finally:
            timer.cancel()
            self._waiter = None

    def _finish(self, error: PeerGoneError | PeerTimeoutError | None) -> None:
        if not self._is_over:
            self._is_over, self._error = True, error
        self._wake()

    def _wake(self) -> None:
        waiter, self._waiter = self._waiter, None
        if waiter is not None and not waiter.called:
            waiter.callback(None)
