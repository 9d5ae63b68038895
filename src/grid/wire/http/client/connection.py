"""The client's end of one HTTP connection: one request at a time, its answer given to a receiver as it comes.

What a request sends is borrowed until it is answered; it goes out as the socket takes it. An answer's bytes are
passed on as the buffers they came in. Every wait has a deadline, kept by one timer that is re-armed when it fires.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from attrs import define
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IPushProducer
from twisted.internet.protocol import Protocol as TwistedProtocol
from twisted.internet.protocol import connectionDone
from twisted.python.failure import Failure
from zope.interface import implementer

from grid.errors import FormatError, GridError, PeerError, PeerGoneError, PeerTimeoutError
from grid.limits import HTTP_STALL_DEADLINE_S, MAX_HTTP_HEAD
from grid.ports import Buffer, Clock, Timer
from grid.wire.connections.sockets import shortest_round_trip_s
from grid.wire.http.format.messages import (
    HEAD_END,
    BodyDecoder,
    EndlessDecoder,
    ResponseHead,
    parse_response_head,
    response_body,
)
from grid.wire.http.format.outbox import Outbox
from grid.wire.http.format.tls import expect

TICK_S = 15.0
IDLE_S = 45.0
"""Seconds after which an idle connection is closed: before a 1.20 server does so, which is after 60."""


class Receiver(Protocol):
    """Takes an answer's body."""

    def feed(self, data: Buffer) -> None:
        """Take what has come; the buffer may be kept. GridError ends the connection and the request."""


ChooseReceiver = Callable[[ResponseHead], Receiver]
"""Makes the receiver for an answer with that head; GridError if no body is worth having."""


@define(eq=False)
class _Pending:
    """The request that waits for its answer."""

    choose: ChooseReceiver
    done: Deferred[ResponseHead]
    head: ResponseHead | None = None
    receiver: Receiver | None = None
    decoder: BodyDecoder | None = None


@implementer(IPushProducer)
class ClientConnection(TwistedProtocol):
    """One connection to one server."""

    transport: Any
    _outbox: Outbox

    def __init__(self, clock: Clock, where: str, on_lost: Callable[[ClientConnection], None]) -> None:
        """Where: the server, for messages."""
        self._clock = clock
        self._where = where
        self._on_lost = on_lost
        self._pending: _Pending | None = None
        self._received = b""
        self._is_paused = False
        self._deadline = 0.0
        self._timer: Timer | None = None
        self.is_lost = False
        self.got_bytes = False
        self.is_reusable = True
        self.idle_since = clock.now()

    # What the transport calls.

    def connectionMade(self) -> None:
        """Ready for requests."""
        self._outbox = Outbox(self.transport)
        # Or the end of an answer waits until its middle is acknowledged, which may take a receiver 40 ms.
        self.transport.setTcpNoDelay(True)
        self.transport.registerProducer(self, True)
        self._set_deadline(IDLE_S)

    def dataReceived(self, data: bytes) -> None:
        """Take what has come."""
        self.got_bytes = True
        self._set_deadline(HTTP_STALL_DEADLINE_S)
        pending = self._pending
        if pending is None:
            self.abort()  # An answer to no request: whatever this is, it cannot be used.
            return
        try:
            rest = self._take(pending, data)
        except GridError as error:
            self.abort()
            self._fail(error)
            return
        if rest is not None and self._pending is pending:  # A receiver may have had the request cancelled.
            self._answered(pending, rest)
        decoder = None if self._pending is None else self._pending.decoder
        expect(self.transport, 0 if decoder is None else decoder.awaited)

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        """End the request that waits, if any."""
        self.is_lost = True
        self.is_reusable = False
        if self._timer is not None:
            self._timer.cancel()
        self._outbox.clear()
        pending = self._pending
        if pending is not None and isinstance(pending.decoder, EndlessDecoder):
            self._answered(pending, b"")
        else:
            self._fail(PeerGoneError(f"the connection to {self._where} was lost"))
        self._on_lost(self)

    def pauseProducing(self) -> None:
        """The socket is full."""
        self._outbox.pause()

    def resumeProducing(self) -> None:
        """The socket has room."""
        self._set_deadline(HTTP_STALL_DEADLINE_S)
        self._outbox.resume()

    def stopProducing(self) -> None:
        """The connection is gone; connectionLost says so."""

    # What the client calls.

    async def ask(self, pieces: Sequence[Buffer], choose: ChooseReceiver) -> ResponseHead:
        """Send a request and return when its answer's body has been received whole.

        PeerGoneError, PeerTimeoutError, PeerError, or what the receiver raised. Cancelling closes the connection.
        """
        if self.is_lost:
            raise PeerGoneError(f"the connection to {self._where} was lost")
        assert self._pending is None
        done: Deferred[ResponseHead] = Deferred(lambda _: self._cancelled())
        self._pending = _Pending(choose, done)
        self.got_bytes = False
        self._set_deadline(HTTP_STALL_DEADLINE_S)
        self._outbox.push(pieces)
        return await done

    def abort(self) -> None:
        """Close now."""
        self.is_reusable = False
        if self.transport is not None and not self.is_lost:
            self.transport.abortConnection()

    def round_trip_s(self) -> float | None:
        """The shortest round trip that the system has seen on this connection; None where nobody knows."""
        return shortest_round_trip_s(getattr(self.transport, "transport", self.transport))

    def pause(self) -> None:
        """Receive no more for now; it is for the caller then to end a wait that has become too long."""
        if not self.is_lost:
            self._is_paused = True
            self.transport.pauseProducing()

    def resume(self) -> None:
        """Receive on."""
        if not self.is_lost:
            self._is_paused = False
            self._set_deadline(HTTP_STALL_DEADLINE_S)
            self.transport.resumeProducing()

    def _take(self, pending: _Pending, data: bytes) -> bytes | None:
        while pending.decoder is None:
            self._received += data
            end = self._received.find(HEAD_END)
            if end < 0:
                if len(self._received) > MAX_HTTP_HEAD:
                    raise PeerError(f"{self._where} answered with an overlong head")
                return None
            text, data = self._received[:end], self._received[end + len(HEAD_END) :]
            self._received = b""
            self._begin(pending, text)
        assert pending.receiver is not None
        try:
            pieces, rest = pending.decoder.decode(data)
            for piece in pieces:
                pending.receiver.feed(piece)
        except FormatError as error:
            raise PeerError(f"{self._where} sent an invalid answer: {error}") from error
        return rest

    def _begin(self, pending: _Pending, text: bytes) -> None:
        try:
            head = parse_response_head(text)
            if head.status < 200:
                return  # 100 Continue and its like: the answer comes later.
            pending.head = head
            pending.receiver = pending.choose(head)
            pending.decoder = response_body(head)
        except FormatError as error:
            raise PeerError(f"{self._where} sent an invalid answer: {error}") from error

    def _answered(self, pending: _Pending, rest: bytes) -> None:
        assert pending.head is not None
        self._pending = None
        self.idle_since = self._clock.now()
        self._set_deadline(IDLE_S)
        if self._outbox.has_unsent or rest or pending.head.wants_close:
            self.abort()
        pending.done.callback(pending.head)

    def _fail(self, error: GridError) -> None:
        pending, self._pending = self._pending, None
        if pending is not None:
            pending.done.errback(error)

    def _cancelled(self) -> None:
        self._pending = None
        self.abort()

    def _set_deadline(self, seconds: float) -> None:
        self._deadline = self._clock.now() + seconds
        if self._timer is None and not self.is_lost:
            self._timer = self._clock.call_later(min(seconds, TICK_S), self._look_at_time)

    def _look_at_time(self) -> None:
        self._timer = None
        wait_s = self._deadline - self._clock.now()
        if wait_s > 0 or self._is_paused:
            expect(self.transport, 0)  # So that what trickles in is seen before the deadline is.
            self._timer = self._clock.call_later(min(max(wait_s, 1.0), TICK_S), self._look_at_time)
            return
        self.abort()
        self._fail(PeerTimeoutError(f"{self._where} did not answer within {HTTP_STALL_DEADLINE_S:g} s"))


class Collector:
    """Keeps a body of at most limit bytes."""

    def __init__(self, limit: int, where: str) -> None:
        self._limit = limit
        self._where = where
        self._pieces: list[Buffer] = []
        self._size = 0

    def feed(self, data: Buffer) -> None:
        """Take what has come; PeerError past the limit."""
        self._size += len(data)
        if self._size > self._limit:
            raise PeerError(f"{self._where} answered with more than {self._limit} bytes")
        self._pieces.append(data)

    @property
    def body(self) -> Buffer:
        """All of it."""
        return self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)


class Discarder:
    """Keeps nothing of a body, which may be as long as an error's."""

    def __init__(self, limit: int) -> None:
        self._room = limit

    def feed(self, data: Buffer) -> None:
        """Take what has come; PeerError past the limit."""
        self._room -= len(data)
        if self._room < 0:
            raise PeerError("a server answered with an overlong error")
