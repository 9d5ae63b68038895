"""HTTP connections of the gateway, over Twisted's parser. [spec webapi 1.1]

Owns the limits on a connection, where one request ends and the next begins, and the orderly end of all connections.
Two programs that disagree on a request's length can be made to disagree on what is a request: here each length can be
given in one way only. A refusal is an answer that the client can read: what it is still sending is taken for a while,
since closing the connection at once would discard the answer on the client's side.

Cost: memory: a body's bound and a window of the engine for each request. One turn of the event loop before a handler runs.
"""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IProtocolNegotiationFactory
from twisted.internet.protocol import Protocol, connectionDone
from twisted.web import http
from zope.interface import implementer

from grid.errors import FormatError
from grid.gateway.http.answers import COMMON, SANDBOX
from grid.gateway.http.request import GatewayRequest
from grid.gateway.http.routing import Routes
from grid.gateway.shared.services import Services
from grid.limits import (
    GATEWAY_DISCARDED,
    GATEWAY_HEADER_COUNT,
    GATEWAY_HEADER_S,
    GATEWAY_HEADERS_SIZE,
    GATEWAY_IDLE_S,
    MAX_GATEWAY_CONNECTIONS,
)
from grid.ports import Timer
from grid.wire.connections.connection_limit import ConnectionLimit, Permit
from grid.wire.http.format.messages import ChunkedDecoder

_MOST_DIGITS = 19
"""Of a body's length: no file has as many bytes as a number with more of them."""

_LINGER_S = 5.0
"""How long what follows a refused head may go on."""


class FramedChannel(http.HTTPChannel):
    """A connection whose requests have one length each, or are refused."""

    transport: Any

    def __init__(self) -> None:
        super().__init__()
        self._is_refused = False
        self._dropped = 0

    def dataReceived(self, data: bytes) -> None:
        """More from the client; of one that was refused, nothing that anybody reads."""
        if not self._is_refused:
            super().dataReceived(data)
            return
        self._dropped += len(data)
        if self._dropped > GATEWAY_DISCARDED:
            self.transport.abortConnection()

    def lineReceived(self, line: bytes) -> None:
        """A line of a head."""
        if not self._is_refused:
            super().lineReceived(line)

    def rawDataReceived(self, data: bytes) -> None:
        """Some of a body, or of what follows it."""
        if not self._is_refused:
            super().rawDataReceived(data)

    def headerReceived(self, line: bytes) -> bool:
        """A field of the head; whether the request may go on."""
        name, _, value = line.partition(b":")
        value = value.strip(b" \t")
        match name.lower():
            case b"content-length" if value.isdigit() and len(value) > _MOST_DIGITS:
                self.refuse(413, "Content-Length is not a possible size")
                return False
            case b"transfer-encoding" if value.lower() != b"chunked":
                self.refuse(501, "the only Transfer-Encoding known here is chunked")
                return False
            case b"transfer-encoding" if self._version != b"HTTP/1.1":
                self.refuse(400, "HTTP/1.0 has no Transfer-Encoding")
                return False
        if not super().headerReceived(line):
            return False
        if name.lower() == b"transfer-encoding":
            self._transferDecoder = _Chunks(self)
        return True

    def end_body(self, rest: bytes) -> None:
        """All of a body in chunks has come; rest: what follows it."""
        self._finishRequestBody(rest)

    def lineLengthExceeded(self, line: bytes) -> None:
        """A line of the head does not end."""
        if self.requests and getattr(self.requests[-1], "body", None) is None:
            self.refuse(431, "a header is too long")
        else:
            self.refuse(414, "the address is too long")

    def refuse(self, status: int, text: str) -> None:
        """Answer with this and end the connection, once the client has had time to read it."""
        if self._is_refused:
            return
        self._is_refused = True
        self.persistent = False
        begun = [request for request in self.requests if request.startedWriting]
        if begun:
            # The client may read an answer that is whole; in the midst of one nothing can be said.
            if all(request.is_answered for request in begun):
                self.setTimeout(_LINGER_S)
            else:
                self.transport.abortConnection()
            return
        for request in self.requests:
            request.withdraw()
        body = f"{text}\n".encode("ascii")
        fields = (
            *COMMON,
            *SANDBOX,
            ("Connection", "close"),
            ("Content-Type", "text/plain;charset=utf-8"),
            ("Content-Length", len(body)),
        )
        lines = (f"HTTP/1.1 {status} {HTTPStatus(status).phrase}", *(f"{name}: {value}" for name, value in fields))
        self.transport.write("\r\n".join((*lines, "", "")).encode("ascii") + body)
        self.setTimeout(_LINGER_S)

    def _respondToBadRequestAndDisconnect(self) -> None:
        """What Twisted makes of a head or a chunk that it cannot read."""
        if self._receivedHeaderSize > self.totalHeadersSize or self._receivedHeaderCount > self.maxHeaders:
            self.refuse(431, "the headers are too long, or too many")
        else:
            self.refuse(400, "this is not a valid HTTP request")


class _Chunks:
    """A body in chunks, by the rules of the storage server: Twisted's take a size of any number of digits."""

    def __init__(self, channel: FramedChannel) -> None:
        self._channel = channel
        self._body = ChunkedDecoder()

    def dataReceived(self, data: bytes) -> None:
        """More from the client."""
        try:
            pieces, rest = self._body.decode(data)
        except FormatError as error:
            self._channel.refuse(400, str(error))
            return
        if pieces:
            self._channel.requests[-1].handleContentChunk(b"".join(pieces))
        if rest is not None:
            self._channel.end_body(rest)


_SEND_SIZE = 2**20
"""Bytes given to the socket at once."""

_FAREWELL_S = 15.0
"""How long the end of a gateway waits for a client to take the last of an answer over TLS, and to close its side."""


class GatewayChannel(FramedChannel):
    """One connection."""

    factory: GatewayFactory
    transport: Any
    site: Any
    permit: Permit
    maxHeaders = GATEWAY_HEADER_COUNT
    totalHeadersSize = GATEWAY_HEADERS_SIZE
    requestFactory: Any = GatewayRequest

    def __init__(self) -> None:
        super().__init__()
        self._header_timer: Timer | None = None
        self._farewell: Timer | None = None
        self._receive: Callable[[bytes], None] | None = None

    def connectionMade(self) -> None:
        """Begin; what a stranger may take his time for is bounded from here on."""
        super().connectionMade()
        self.factory.connections.add(self)
        self.permit.hold(self.transport.abortConnection, lambda: self.requests[-1].waited_s if self.requests else 0.0)
        self.transport.SEND_LIMIT = _SEND_SIZE
        self.setTimeout(GATEWAY_IDLE_S)

    def dataReceived(self, data: bytes) -> None:
        """More from the client."""
        if self._receive is not None:
            self._receive(data)
            return
        if self._header_timer is None and not self._has_headers():
            clock = self.factory.gateway.store.runtime.clock
            self._header_timer = clock.call_later(GATEWAY_HEADER_S, self._headers_are_late)
        super().dataReceived(data)

    def allHeadersReceived(self) -> None:
        """The request's own limits hold from here on."""
        self._relax()
        self.setTimeout(None)
        super().allHeadersReceived()

    def requestDone(self, request: Any) -> None:
        """Wait for the next request, for a while."""
        if self.factory.is_closing:
            self.persistent = False
        super().requestDone(request)
        if self.factory.is_closing:
            self.hang_up()
        if self.persistent:
            self.setTimeout(GATEWAY_IDLE_S)

    def connectionLost(self, reason: Any = connectionDone) -> None:
        """The client went away."""
        self._relax()
        if self._farewell is not None:
            self._farewell.cancel()
        self.permit.release()
        super().connectionLost(reason)
        self.factory.lost(self)

    def hang_up(self) -> None:
        """Close once all that was written has gone out, unless a request is under way."""
        if self._has_headers():
            return
        self.loseConnection()
        if self.isSecure() and self._farewell is None:
            # TLS waits for the other side's farewell, which may never come.
            self._farewell = self.factory.gateway.store.runtime.clock.call_later(
                _FAREWELL_S, self.transport.abortConnection
            )

    def switch(self, receive: Callable[[bytes], None]) -> None:
        """The connection is no longer HTTP: what comes from now on, and came after the request, is for `receive`."""
        self.persistent = False
        self._receive = receive
        early, self._dataBuffer = self._dataBuffer, []
        for data in early:
            receive(data)

    def stop_reading(self) -> None:
        """A body waits to be taken."""
        self.transport.pauseProducing()

    def go_on_reading(self) -> None:
        """It was."""
        self.transport.resumeProducing()

    def _has_headers(self) -> bool:
        return bool(self.requests) and getattr(self.requests[-1], "body", None) is not None

    def _headers_are_late(self) -> None:
        self._header_timer = None
        self.transport.abortConnection()

    def _relax(self) -> None:
        if self._header_timer is not None:
            self._header_timer.cancel()
            self._header_timer = None


class _Refused(Protocol):
    """A connection for which there is no room: Twisted's TLS wants a protocol for it all the same."""

    def connectionMade(self) -> None:
        transport: Any = self.transport
        transport.abortConnection()


@implementer(IProtocolNegotiationFactory)
class GatewayFactory(http.HTTPFactory):
    """All connections of a gateway."""

    protocol: Any = GatewayChannel
    noisy = False
    reactor: Any

    def __init__(self, gateway: Services, routes: Routes, reactor: Any, connection_limit: ConnectionLimit) -> None:
        """connection_limit: on all connections of this process."""
        super().__init__(timeout=GATEWAY_IDLE_S, reactor=reactor)
        self._connection_limit = connection_limit
        self._own_limit = ConnectionLimit(MAX_GATEWAY_CONNECTIONS)
        self.is_below_tls = False
        self.gateway = gateway
        self.routes = routes
        self.requests: set[GatewayRequest] = set()
        self._count_requests()
        self.is_closing = False
        self.connections: set[GatewayChannel] = set()
        self._idle: Deferred[None] | None = None

    def buildProtocol(self, address: Any) -> Any:
        """A connection's channel, without Twisted's choice between versions of HTTP."""
        permit = self._connection_limit.acquire(getattr(address, "host", None))
        if permit is None or not self._own_limit.admit(permit):
            if permit is not None:
                permit.release()
            return _Refused() if self.is_below_tls else None
        channel: Any = self.protocol()
        channel.permit = permit
        channel.factory = self
        channel.site = self
        channel.timeOut = GATEWAY_IDLE_S
        channel.callLater = self.reactor.callLater
        return channel

    def acceptableProtocols(self) -> list[bytes]:
        """What TLS agrees on with a client that negotiates; without an answer Twisted ends the handshake."""
        return [b"http/1.1"]

    def _count_requests(self) -> None:
        """Tell what counts requests what they can be called, and how many are under way."""
        self.gateway.traffic.know(self.routes.segments, lambda: len(self.requests))

    def log(self, request: Any) -> None:
        """Twisted's own access log has whole URLs in it."""

    def forget(self, request: GatewayRequest) -> None:
        """The request is over; its answer may still be on its way out."""
        self.requests.discard(request)

    def lost(self, channel: GatewayChannel) -> None:
        """The connection is gone."""
        self.connections.discard(channel)
        if not self.connections and self._idle is not None and not self._idle.called:
            self._idle.callback(None)

    async def drain(self, seconds: float) -> None:
        """Let what runs end, for so long; then cut it. An answer has ended when the last of it has gone out."""
        self.is_closing = True
        for channel in list(self.connections):
            channel.hang_up()
        if self.connections:
            self._idle = Deferred()
            timer = self.gateway.store.runtime.clock.call_later(seconds, self._cut)
            try:
                await self._idle
            finally:
                timer.cancel()

    def _cut(self) -> None:
        for channel in list(self.connections):
            channel.transport.abortConnection()
            self.lost(channel)
