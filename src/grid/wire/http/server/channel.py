"""The server's end of one HTTP connection: requests in turn, and bodies streamed both ways with back-pressure.

Holds at most one head, one unread piece of a body (meanwhile it does not read from the socket), and the data of one
`send` or `write`. Each state has a deadline, kept by one timer that is re-armed only when it fires.
A body makes progress when HTTP_BODY_RATE bytes of it have come, not with each byte. Until a request of the connection was admitted,
and while an unwanted body is dropped, its permit is the first to go. It knows nothing of storage. Cost per request: only the
handler's task, and no copy of a body.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from enum import Enum
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IPushProducer
from twisted.internet.protocol import Protocol, connectionDone
from twisted.logger import Logger
from twisted.python.failure import Failure
from zope.interface import implementer

from grid.errors import FormatError, PeerGoneError
from grid.limits import (
    HTTP_HEAD_DEADLINE_S,
    HTTP_IDLE_DEADLINE_S,
    HTTP_STALL_DEADLINE_S,
    MAX_HTTP_DISCARD,
    MAX_HTTP_HEAD,
)
from grid.ports import Buffer, Clock
from grid.wire.connections.connection_limit import Permit, Standing
from grid.wire.connections.sockets import acknowledged_size, chunk_size
from grid.wire.http.format.messages import HEAD_END, pack_head, pack_status_line, parse_request_head, request_body
from grid.wire.http.format.outbox import Outbox
from grid.wire.http.format.tls import expect
from grid.wire.http.server.client_time import ClientTime
from grid.wire.http.server.exchange import Exchange, unread_limit

log = Logger()


class _State(Enum):
    __hash__ = object.__hash__  # There is one object for each; Enum's own hash is a call for each of four moves.

    IDLE = "between requests"
    HEAD = "within a head"
    SERVING = "a request is being served"
    DISCARDING = "its answer is sent, the rest of its body is dropped"
    CLOSED = "no more requests"


_TRANSITIONS = {
    _State.IDLE: {_State.HEAD, _State.SERVING, _State.CLOSED},
    _State.HEAD: {_State.SERVING, _State.CLOSED},
    _State.SERVING: {_State.DISCARDING, _State.IDLE, _State.CLOSED},
    _State.DISCARDING: {_State.IDLE, _State.CLOSED},
    _State.CLOSED: set[_State](),
}


Handler = Callable[[Exchange], Coroutine[Any, Any, None]]
"""Answers one request. Errors caused by the peer end the connection; any other is logged as a bug."""


@implementer(IPushProducer)
class ServerChannel(Protocol):
    """One connection."""

    transport: Any
    _outbox: Outbox

    def __init__(
        self, handler: Handler, clock: Clock, permit: Permit, on_lost: Callable[[ServerChannel], None]
    ) -> None:
        self._handler = handler
        self._permit = permit
        self._on_lost = on_lost
        self._state = _State.IDLE
        self._received = b""
        self._exchange: Exchange | None = None
        self._discarded = 0
        self._closing = False
        self._reading = True
        self._unsent_answer: Exchange | None = None
        self._taking_heads = False
        self._time = ClientTime(clock, self._may_go_on)
        permit.hold(self.abort, self._waited_s)

    # Called by the transport.

    def connectionMade(self) -> None:
        """Wait for the first request."""
        self._outbox = Outbox(self.transport, lambda: chunk_size(self._permit.crowd))
        # Otherwise the end of an answer waits until its middle is acknowledged, which may take a receiver 40 ms.
        self.transport.setTcpNoDelay(True)
        self.transport.registerProducer(self, True)
        self._time.allow(HTTP_HEAD_DEADLINE_S)

    def dataReceived(self, data: bytes) -> None:
        """Take received data."""
        if self._state in (_State.IDLE, _State.HEAD):
            self._received += data
            self._take_heads()
        elif (exchange := self._exchange) is not None and not exchange.body_ended:
            if self._state is _State.SERVING:  # An unwanted body gets no more time by trickling in.
                self._time.body_came(len(data))
            self._take_body(data)
            if not exchange.awaits_body:
                self._time.body.rest()
            expect(self.transport, exchange.awaited)
        elif self._state is not _State.CLOSED:
            self._received += data
            if len(self._received) > MAX_HTTP_HEAD:
                self._set_reading(False)

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        """End everything that waits for the client."""
        self._state = _State.CLOSED
        self._time.stop()
        self._received = b""
        self._outbox.clear()
        if self._exchange is not None:
            self._exchange.break_off(PeerGoneError("the client closed the connection"))
        self._outbox.release(PeerGoneError("the client closed the connection"))
        self._permit.release()
        self._on_lost(self)

    def pauseProducing(self) -> None:
        """Note that the socket is full."""
        self._outbox.pause()
        self._time.answer.wait()
        self._time.allow(HTTP_STALL_DEADLINE_S)

    def resumeProducing(self) -> None:
        """Note that the socket has room."""
        self._time.allow(HTTP_STALL_DEADLINE_S)
        self._time.answer.begin()
        self._outbox.resume()
        if self._outbox.is_empty:
            self._all_sent()

    def stopProducing(self) -> None:
        """Do nothing: connectionLost follows."""

    # Called by exchanges.

    def send(self, pieces: Sequence[Buffer]) -> None:
        """Send bytes; does nothing once the connection is lost."""
        if self._state is not _State.CLOSED:
            self._outbox.push(pieces)

    @property
    def is_drained(self) -> bool:
        """Whether the socket has taken everything, and has room."""
        return self._outbox.is_empty

    @property
    def is_gone(self) -> bool:
        """Whether the connection is lost."""
        return self._state is _State.CLOSED

    @property
    def peer_address(self) -> str | None:
        """The client's address."""
        return self._permit.address

    @property
    def received_size(self) -> int:
        """Bytes that the client has received, or at least the socket has taken."""
        size = acknowledged_size(getattr(self.transport, "transport", self.transport))
        return self._outbox.given_size if size is None else size

    def give_up(self) -> None:
        """Close now, because the client is too slow."""
        self.abort()

    async def drained(self) -> None:
        """Return when the socket has room; PeerGoneError."""
        if self._state is _State.CLOSED:
            raise PeerGoneError("the client closed the connection")
        await self._outbox.until_empty()

    def want_body(self) -> None:
        """Note that the handler waits for the body."""
        self._time.await_body()
        self._set_reading(True)

    def hold_back(self) -> None:
        """Note that the handler has no room for more of the body."""
        self._set_reading(False)

    def admit(self) -> None:
        """Note that the request is authorized, so that its client is no stranger."""
        self._permit.stand(Standing.ACTIVE)

    def send_continue(self) -> None:
        """Permit a client that waits for 100 Continue to send its body."""
        self.send([pack_status_line(100).replace(b"Unknown", b"Continue") + HEAD_END])

    def closes_after(self, exchange: Exchange) -> bool:
        """Whether the connection closes after this answer."""
        length = exchange.body_length
        if exchange.head.wants_close or (length is not None and length > MAX_HTTP_DISCARD and not exchange.body_ended):
            self._closing = True
        return self._closing

    def abort(self) -> None:
        """Close now."""
        if self.transport is not None:
            self.transport.abortConnection()

    # Requests.

    def _take_heads(self) -> None:
        if self._taking_heads:
            return  # A request was served at once, and the loop below is still running.
        self._taking_heads = True
        while self._state in (_State.IDLE, _State.HEAD) and self._received:
            if not self._take_head():
                break
        self._taking_heads = False

    def _take_head(self) -> bool:
        """Serve the request whose head has come. Returns False if the head is incomplete."""
        if self._state is _State.IDLE:
            self._move(_State.HEAD)
            self._time.allow(HTTP_HEAD_DEADLINE_S)
        end = self._received.find(HEAD_END)
        if end < 0:
            if len(self._received) > MAX_HTTP_HEAD:
                self._refuse(431)
            return False
        head, rest = self._received[:end], self._received[end + len(HEAD_END) :]
        self._received = b""
        try:
            request = parse_request_head(head.lstrip(b"\r\n"))
            exchange = Exchange(self, request, request_body(request.headers))
        except FormatError:
            self._refuse(400)
            return False
        self._serve(exchange, rest)
        return True

    def _serve(self, exchange: Exchange, rest: bytes) -> None:
        self._move(_State.SERVING)
        self._exchange = exchange
        self._time.begin_body(len(rest))
        self._take_body(rest)
        if exchange.is_broken:
            self._refuse(400)
            return
        task = Deferred.fromCoroutine(self._handler(exchange))
        task.addErrback(self._handler_failed, exchange)
        task.addCallback(lambda _: self._served(exchange))

    def _take_body(self, data: bytes) -> None:
        exchange = self._exchange
        assert exchange is not None
        try:
            rest = exchange.feed(data)
        except FormatError as error:
            exchange.break_off(error)
            self._closing = True
            self._set_reading(False)
            if self._state is _State.DISCARDING:
                self._close()
            return
        if self._state is _State.DISCARDING:
            self._discard(exchange)
        elif exchange.is_full(unread_limit(self._permit.crowd)):
            self._set_reading(False)
        if rest is not None:
            self._received += rest
            if self._state is _State.DISCARDING:
                self._next()

    def _handler_failed(self, failure: Failure, exchange: Exchange) -> None:
        self._closing = True
        if failure.check(PeerGoneError) is None and self._state is not _State.CLOSED:
            log.failure("a request failed because of a bug", failure=failure)
        if exchange.answered:
            self.abort()
        else:
            exchange.send(500)

    def _all_sent(self) -> None:
        self._outbox.release()
        served, self._unsent_answer = self._unsent_answer, None
        if served is not None:
            self._served(served)
        elif self._state is _State.CLOSED:
            self._hang_up()

    def _served(self, exchange: Exchange) -> None:
        """The handler is done. Once its whole answer is sent, the connection is free for the next request."""
        if self._state is _State.CLOSED:
            return
        if not self._outbox.is_empty:
            self._unsent_answer = exchange
            return
        self._move(_State.DISCARDING)
        self._permit.stand(min(self._permit.standing, Standing.IDLE))
        self._discarded = 0
        if exchange.is_broken:
            self._close()
        elif exchange.body_ended:
            self._next()
        else:
            self._time.allow(HTTP_HEAD_DEADLINE_S)
            self._set_reading(True)
            self._discard(exchange)

    def _discard(self, exchange: Exchange) -> None:
        self._discarded += exchange.drop()
        if self._discarded > MAX_HTTP_DISCARD:
            self.abort()

    def _next(self) -> None:
        self._exchange = None
        if self._closing:
            self._close()
            return
        self._move(_State.IDLE)
        self._time.allow(HTTP_IDLE_DEADLINE_S)
        self._set_reading(True)
        self._take_heads()

    def _refuse(self, status: int) -> None:
        """Answer malformed input with a status, and close."""
        self.send([pack_head(pack_status_line(status), [(b"Content-Length", b"0"), (b"Connection", b"close")])])
        self._close()

    def _close(self) -> None:
        if self._state is not _State.CLOSED:
            self._move(_State.CLOSED)
            self._time.allow(HTTP_HEAD_DEADLINE_S)
            if self._outbox.is_empty:
                self._hang_up()

    def _hang_up(self) -> None:
        self.transport.unregisterProducer()
        self.transport.loseConnection()

    def _move(self, state: _State) -> None:
        if state not in _TRANSITIONS[self._state]:
            raise RuntimeError(f"a connection cannot go from {self._state} to {state}")
        self._state = state

    # Flow control and time.

    def _set_reading(self, reading: bool) -> None:
        if reading != self._reading and self._state is not _State.CLOSED:
            self._reading = reading
            (self.transport.resumeProducing if reading else self.transport.pauseProducing)()

    def _may_go_on(self, left_s: float) -> bool:
        """Whether the connection stays open. left_s: seconds until its deadline."""
        if left_s > 0 or self._awaits_storage():
            expect(self.transport, 0)  # So that data that trickles in is seen before the deadline is.
            return True
        self.abort()
        return False

    def _waited_s(self) -> float:
        """How long the current request has waited for its client to send its body or to read the answer."""
        if self._state is _State.SERVING and not self._outbox.is_empty:
            return self._time.answer.waited_s
        exchange = self._exchange
        return self._time.body.waited_s if exchange is not None and exchange.awaits_body else 0.0

    def _awaits_storage(self) -> bool:
        """Whether the request waits for the storage and not for the client."""
        exchange = self._exchange
        return self._state is _State.SERVING and self._outbox.is_empty and not (exchange and exchange.awaits_body)
