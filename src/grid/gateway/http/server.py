"""HTTP connections of the gateway, built on Twisted's parser. [spec webapi 1.1]

Owns the limits on connections, where one request ends and the next begins, and the orderly shutdown of all connections.
If two programs disagree about a request's length, an attacker can smuggle one request inside another; so only one way
to state a length is accepted. A refusal is an answer that the client can read: its remaining bytes are read for a
while, since closing the connection at once would destroy the answer at the client.

Cost: memory: a body's bound and one flow window of the engine per request. One turn of the event loop before a handler
runs.
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
from grid.wire.connections.sockets import forget_unsent
from grid.wire.http.format.messages import ChunkedDecoder

_MOST_DIGITS = 19
"""Digits of a body's length; no file has a size with more of them."""

_LINGER_S = 5.0
"""Seconds to keep reading after a refused head."""


class FramedChannel(http.HTTPChannel):
    """A connection that refuses requests of ambiguous length."""

    transport: Any

    def __init__(self) -> None:
        super().__init__()
        self._is_refused = False
        self._dropped = 0

    def dataReceived(self, data: bytes) -> None:
        """Take bytes from the client; a refused client's bytes are dropped."""
        if not self._is_refused:
            super().dataReceived(data)
            return
        self._dropped += len(data)
        if self._dropped > GATEWAY_DISCARDED:
            self.transport.abortConnection()

    def lineReceived(self, line: bytes) -> None:
        """Take a line of a head."""
        if not self._is_refused:
            super().lineReceived(line)

    def rawDataReceived(self, data: bytes) -> None:
        """Take part of a body, or what follows it."""
        if not self._is_refused:
            super().rawDataReceived(data)

    def headerReceived(self, line: bytes) -> bool:
        """Take a header field; return whether the request may go on."""
        name, _, value = line.partition(b":")
        value = value.strip(b" \t")
        match name.lower():
            case b"content-length" if value.isdigit() and len(value) > _MOST_DIGITS:
                self.refuse(413, "Content-Length is invalid")
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
        """End a chunked body. rest: the bytes after it."""
        self._finishRequestBody(rest)

    def lineLengthExceeded(self, line: bytes) -> None:
        """Refuse a head with an overlong line."""
        if self.requests and getattr(self.requests[-1], "body", None) is None:
            self.refuse(431, "a header is too long")
        else:
            self.refuse(414, "the address is too long")

    def refuse(self, status: int, text: str) -> None:
        """Send this answer and close the connection once the client has had time to read it."""
        if self._is_refused:
            return
        self._is_refused = True
        self.persistent = False
        begun = [request for request in self.requests if request.startedWriting]
        if begun:
            # A complete answer still reaches the client; inside an unfinished one, an error cannot be sent.
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

    def timeoutConnection(self) -> None:
        """Close an idle connection as Twisted does, but do not log the client's address."""
        self._abortingCall = self.callLater(self.abortTimeout, self.forceAbortClient)
        self.loseConnection()

    def forceAbortClient(self) -> None:
        """Abort an idle connection that the client keeps open; the log does not have its address."""
        self._abortingCall = None
        self.transport.abortConnection()

    def _respondToBadRequestAndDisconnect(self) -> None:
        """Refuse a head or chunk that Twisted cannot parse."""
        if self._receivedHeaderSize > self.totalHeadersSize or self._receivedHeaderCount > self.maxHeaders:
            self.refuse(431, "the headers are too long, or too many")
        else:
            self.refuse(400, "this is not a valid HTTP request")


class _Chunks:
    """A chunked body, parsed by the storage server's rules: Twisted's allow a chunk size of any number of digits."""

    def __init__(self, channel: FramedChannel) -> None:
        self._channel = channel
        self._body = ChunkedDecoder()

    def dataReceived(self, data: bytes) -> None:
        """Take bytes from the client."""
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
"""Bytes written to the socket at once."""

_FAREWELL_S = 15.0
"""Seconds that a shutdown waits for a client to read the end of an answer over TLS and to close its side."""


class GatewayChannel(FramedChannel):
    """One connection of a gateway."""

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
        """Start the timeouts that bound an idle client."""
        super().connectionMade()
        self.factory.connections.add(self)
        self.permit.hold(self.transport.abortConnection, lambda: self.requests[-1].waited_s if self.requests else 0.0)
        self.transport.SEND_LIMIT = _SEND_SIZE
        self.setTimeout(GATEWAY_IDLE_S)

    def dataReceived(self, data: bytes) -> None:
        """Take bytes from the client."""
        if self._receive is not None:
            self._receive(data)
            return
        if self._header_timer is None and not self._has_headers():
            clock = self.factory.gateway.store.runtime.clock
            self._header_timer = clock.call_later(GATEWAY_HEADER_S, self._headers_are_late)
        super().dataReceived(data)

    def allHeadersReceived(self) -> None:
        """Hand the timeouts over to the request."""
        self._relax()
        self.setTimeout(None)
        super().allHeadersReceived()

    def requestDone(self, request: Any) -> None:
        """Wait for the next request, up to the idle timeout."""
        if self.factory.is_closing:
            self.persistent = False
        super().requestDone(request)
        if self.factory.is_closing:
            self.hang_up()
        if self.persistent:
            self.setTimeout(GATEWAY_IDLE_S)

    def connectionLost(self, reason: Any = connectionDone) -> None:
        """Clean up after the connection."""
        self._relax()
        if self._farewell is not None:
            self._farewell.cancel()
        self.permit.release()
        super().connectionLost(reason)
        forget_unsent(self.transport)
        self.factory.lost(self)

    def hang_up(self) -> None:
        """Close once everything written has been sent, unless a request is under way."""
        if self._has_headers():
            return
        self.loseConnection()
        if self.isSecure() and self._farewell is None:
            # TLS waits for the other side's close message, which may never arrive.
            self._farewell = self.factory.gateway.store.runtime.clock.call_later(
                _FAREWELL_S, self.transport.abortConnection
            )

    def switch(self, receive: Callable[[bytes], None]) -> None:
        """Leave HTTP: pass all further bytes, including those already received after the request, to `receive`."""
        self.persistent = False
        self._receive = receive
        early, self._dataBuffer = self._dataBuffer, []
        for data in early:
            receive(data)

    def stop_reading(self) -> None:
        """Pause reading: a body waits to be taken."""
        self.transport.pauseProducing()

    def go_on_reading(self) -> None:
        """Resume reading."""
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
    """A connection over the limit. Twisted's TLS needs a protocol for it anyway."""

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
        """Make the channel of a connection, without Twisted's negotiation of HTTP versions."""
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
        """The protocols offered to clients that negotiate over TLS; without one, Twisted fails the handshake."""
        return [b"http/1.1"]

    def _count_requests(self) -> None:
        """Register the names of requests and the number under way with the traffic counters."""
        self.gateway.traffic.know(self.routes.segments, lambda: len(self.requests))

    def log(self, request: Any) -> None:
        """Log nothing: Twisted's access log would contain whole URLs."""

    def forget(self, request: GatewayRequest) -> None:
        """Drop an ended request, whose answer may still be in the socket's buffer."""
        self.requests.discard(request)

    def lost(self, channel: GatewayChannel) -> None:
        """Drop a closed connection."""
        self.connections.discard(channel)
        if not self.connections and self._idle is not None and not self._idle.called:
            self._idle.callback(None)

    async def drain(self, seconds: float) -> None:
        """Let running requests finish, for at most `seconds`; then close them.

        Finished means that the answer has been sent.
        """
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
