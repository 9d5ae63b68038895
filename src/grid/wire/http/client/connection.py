"""The client's end of one HTTP connection: one request at a time, whose answer goes to a receiver as it arrives.

A request's bytes are borrowed until it is answered, and are sent as the socket accepts them. An answer's bytes are
passed on in the buffers they came in. Every wait has a deadline, kept by one timer that is re-armed when it fires.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IPushProducer
from twisted.internet.protocol import Protocol as TwistedProtocol
from twisted.internet.protocol import connectionDone
from twisted.python.failure import Failure
from zope.interface import implementer

from grid.errors import FormatError, GridError, PeerError, PeerGoneError, PeerTimeoutError
from grid.limits import HTTP_STALL_DEADLINE_S, MAX_HTTP_HEAD
from grid.ports import Buffer, Clock, Timer
from grid.values import define
from grid.wire.connections.sockets import probe_when_idle, shortest_round_trip_s
from grid.wire.http.client.spread import Direction
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
"""An idle connection is closed after this many seconds: before a 1.20 server closes it, after 60."""
LONG_IDLE_S = 200.0
"""The same if the server is ours, which waits for HTTP_IDLE_DEADLINE_S, and the line is long: there, a new connection would cost
more than this one does."""

LONG_BYTES = 32 * 1024
"""Least bytes of a request or an answer that tells how quick its connection is."""

SHORTEST_S = 0.001
"""What takes less time may have waited in a socket."""


class Receiver(Protocol):
    """Takes the body of an answer."""

    def feed(self, data: Buffer) -> None:
        """Take received data; the buffer may be kept. GridError ends the connection and the request."""


ChooseReceiver = Callable[[ResponseHead], Receiver]
"""Makes the receiver for an answer with that head; GridError if its body is not worth receiving."""


@define(eq=False)
class _Pending:
    """The request that waits for its answer. sent: its bytes, since asked_at. came: those of the answer's body, since began_at."""

    choose: ChooseReceiver
    done: Deferred[ResponseHead]
    asked_at: float
    sent: int
    began_at: float = 0.0
    came: int = 0
    head: ResponseHead | None = None
    receiver: Receiver | None = None
    decoder: BodyDecoder | None = None


@implementer(IPushProducer)
class ClientConnection(TwistedProtocol):
    """One connection to one server."""

    transport: Any
    _outbox: Outbox

    def __init__(self, clock: Clock, where: str, on_lost: Callable[[ClientConnection], None]) -> None:
        """where: the server's name in messages."""
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
        self.is_closed_here = False
        self.idle_since = clock.now()
        self.rates: dict[Direction, float] = {}
        """Bytes per second of the last long message in each direction: requests until the answer begins, answers from there on."""

    # Called by the transport.

    def connectionMade(self) -> None:
        """Ready for requests."""
        self._outbox = Outbox(self.transport)
        # Otherwise the end of an answer waits until its middle is acknowledged, which may take a receiver 40 ms.
        self.transport.setTcpNoDelay(True)
        self.transport.registerProducer(self, True)
        self._set_deadline(IDLE_S)

    def dataReceived(self, data: bytes) -> None:
        """Take received data."""
        self.got_bytes = True
        self._set_deadline(HTTP_STALL_DEADLINE_S)
        pending = self._pending
        if pending is None:
            self.abort()  # An answer to no request. Whatever it is, the connection is unusable.
            return
        try:
            rest = self._take(pending, data)
        except GridError as error:
            self.abort()
            self._fail(error)
            return
        if rest is not None and self._pending is pending:  # A receiver may have canceled the request.
            self._answered(pending, rest)
        decoder = None if self._pending is None else self._pending.decoder
        expect(self.transport, 0 if decoder is None else decoder.awaited)

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        """End the current request, if any."""
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
        """Note that the socket is full."""
        self._outbox.pause()

    def resumeProducing(self) -> None:
        """Note that the socket has room."""
        self._set_deadline(HTTP_STALL_DEADLINE_S)
        self._outbox.resume()

    def stopProducing(self) -> None:
        """Do nothing: connectionLost follows."""

    # Called by the client.

    async def ask(self, pieces: Sequence[Buffer], choose: ChooseReceiver) -> ResponseHead:
        """Send a request. Returns when the whole body of the answer has been received.

        PeerGoneError, PeerTimeoutError, PeerError, or an error of the receiver. Canceling closes the connection.
        """
        if self.is_lost:
            raise PeerGoneError(f"the connection to {self._where} was lost")
        assert self._pending is None
        done: Deferred[ResponseHead] = Deferred(lambda _: self._cancelled())
        self._pending = _Pending(choose, done, self._clock.now(), sum(map(len, pieces)))
        self.got_bytes = False
        self._set_deadline(HTTP_STALL_DEADLINE_S)
        self._outbox.push(pieces)
        return await done

    def abort(self) -> None:
        """Close now."""
        self.is_reusable = False
        self.is_closed_here = True
        if self.transport is not None and not self.is_lost:
            self.transport.abortConnection()

    def round_trip_s(self) -> float | None:
        """The shortest round trip that the system has measured on this connection; None if unknown."""
        return shortest_round_trip_s(self._socket_transport())

    def keep_idle(self, seconds: float) -> None:
        """Keep the idle connection open for that long. Beyond IDLE_S, the system makes sure that the server is still there."""
        if seconds > IDLE_S:
            probe_when_idle(self._socket_transport(), IDLE_S)
        self._set_deadline(seconds)

    def pause(self) -> None:
        """Stop receiving for now. The caller must then limit the wait."""
        if not self.is_lost:
            self._is_paused = True
            self.transport.pauseProducing()

    def resume(self) -> None:
        """Resume receiving."""
        if not self.is_lost:
            self._is_paused = False
            self._set_deadline(HTTP_STALL_DEADLINE_S)
            self.transport.resumeProducing()

    def _socket_transport(self) -> Any:
        return getattr(self.transport, "transport", self.transport)  # Below TLS.

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
            pending.came += len(data)
            for piece in pieces:
                pending.receiver.feed(piece)
        except FormatError as error:
            raise PeerError(f"{self._where} sent an invalid answer: {error}") from error
        return rest

    def _begin(self, pending: _Pending, text: bytes) -> None:
        try:
            head = parse_response_head(text)
            if head.status < 200:
                return  # 100 Continue and similar: the final answer comes later.
            pending.head, pending.began_at = head, self._clock.now()
            pending.receiver = pending.choose(head)
            pending.decoder = response_body(head)
        except FormatError as error:
            raise PeerError(f"{self._where} sent an invalid answer: {error}") from error

    def _answered(self, pending: _Pending, rest: bytes) -> None:
        assert pending.head is not None
        self._pending = None
        self.idle_since = self._clock.now()
        self._rate(Direction.UP, pending.sent, pending.began_at - pending.asked_at)
        self._rate(Direction.DOWN, pending.came, self.idle_since - pending.began_at)
        self._set_deadline(IDLE_S)
        if self._outbox.has_unsent or rest or pending.head.wants_close:
            self.abort()
        pending.done.callback(pending.head)

    def _rate(self, direction: Direction, size: int, seconds: float) -> None:
        if size >= LONG_BYTES:
            self.rates[direction] = size / max(SHORTEST_S, seconds)

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
            expect(self.transport, 0)  # So that data that trickles in is seen before the deadline is.
            self._timer = self._clock.call_later(min(max(wait_s, 1.0), TICK_S), self._look_at_time)
            return
        self.abort()
        self._fail(PeerTimeoutError(f"{self._where} did not answer within {HTTP_STALL_DEADLINE_S:g} s"))


class Collector:
    """Keeps a body of at most `limit` bytes."""

    def __init__(self, limit: int, where: str) -> None:
        self._limit = limit
        self._where = where
        self._pieces: list[Buffer] = []
        self._size = 0

    def feed(self, data: Buffer) -> None:
        """Take received data; PeerError past the limit."""
        self._size += len(data)
        if self._size > self._limit:
            raise PeerError(f"{self._where} answered with more than {self._limit} bytes")
        self._pieces.append(data)

    @property
    def body(self) -> Buffer:
        """The whole body."""
        return self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)


class Discarder:
    """Discards a body of up to the length that an error may have."""

    def __init__(self, limit: int) -> None:
        self._room = limit

    def feed(self, data: Buffer) -> None:
        """Take received data; PeerError past the limit."""
        self._room -= len(data)
        if self._room < 0:
            raise PeerError("a server answered with an overlong error")
