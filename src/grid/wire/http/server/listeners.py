"""The listening side of the server: the port shared with Foolscap, and the plain port for reads.

The first 8 bytes of a connection to the shared port say which protocol it speaks. [spec wire 13]
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from OpenSSL import SSL
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IStreamServerEndpoint
from twisted.internet.protocol import Protocol, connectionDone
from twisted.python.failure import Failure
from zope.interface import implementer

from grid.limits import MAX_HTTP_CONNECTIONS, SNIFF_DEADLINE_S
from grid.ports import Clock, StorageServer, Timer
from grid.wire.budget.server_memory import ServerMemory
from grid.wire.connections.connection_limit import ConnectionLimit, Permit
from grid.wire.connections.limited_factory import LimitedFactory, deepen_backlog
from grid.wire.connections.sockets import chunk_size
from grid.wire.foolscap.negotiation import with_permit
from grid.wire.http.format.authority import Gatekeeper, authorization, plain_authorization
from grid.wire.http.format.routes import EXTENSIONS, READS, Endpoint
from grid.wire.http.format.tls import TlsLayer
from grid.wire.http.server.channel import Handler, ServerChannel
from grid.wire.http.server.reads import ReadAnswers
from grid.wire.http.server.service import Answerer, Bounds, HttpService
from grid.wire.http.server.writes import SlotAnswers, UploadAnswers

FOOLSCAP_START = b"GET /id/"


class HttpOffer:
    """A StorageServer offered over HTTP: to clients that know its swissnum and, unencrypted, for reads only."""

    def __init__(self, server: StorageServer, memory: ServerMemory, *, extensions: bool = True) -> None:
        """Nobody is admitted before `open_to`. Without extensions, it has exactly the endpoints of 1.20.

        memory: shared with the requests of the other protocol.
        """
        bounds, clock = Bounds(memory), memory.clock
        answerers: Mapping[Endpoint, Answerer] = {
            **ReadAnswers(server, bounds, clock, extensions=extensions).answerers(),
            **UploadAnswers(server, clock, bounds).answerers(),
            **SlotAnswers(server, bounds).answerers(),
        }
        if not extensions:
            answerers = {endpoint: answerer for endpoint, answerer in answerers.items() if endpoint not in EXTENSIONS}
        in_the_clear = {endpoint: answerer for endpoint, answerer in answerers.items() if endpoint in READS}
        self._gatekeeper = Gatekeeper()
        self._plain_gatekeeper = Gatekeeper()
        self.connections = Connections(HttpService(self._gatekeeper, answerers, bounds).serve, clock)
        self.plain_connections = Connections(HttpService(self._plain_gatekeeper, in_the_clear, bounds).serve, clock)

    def open_to(self, swissnum: str) -> None:
        """Admit clients that know the swissnum and, for unencrypted reads, clients that know the token derived from it."""
        self._gatekeeper.expect(authorization(swissnum))
        self._plain_gatekeeper.expect(plain_authorization(swissnum))

    def close(self) -> None:
        """Close all connections now."""
        self.connections.close()
        self.plain_connections.close()


class Connections:
    """The connections of one listener, up to a limit."""

    def __init__(self, handler: Handler, clock: Clock, limit: int = MAX_HTTP_CONNECTIONS) -> None:
        self._handler = handler
        self._clock = clock
        self._connection_limit = ConnectionLimit(limit)
        self._open: dict[ServerChannel, None] = {}

    def __len__(self) -> int:
        return len(self._open)

    def new_channel(self, permit: Permit) -> ServerChannel | None:
        """The protocol of a connection that holds that permit; None if there are too many, all of them useful."""
        if not self._connection_limit.admit(permit):
            return None
        channel = ServerChannel(self._handler, self._clock, permit, self._lost)
        self._open[channel] = None
        return channel

    def close(self) -> None:
        """Close all connections now."""
        for channel in list(self._open):
            channel.abort()

    def _lost(self, channel: ServerChannel) -> None:
        self._open.pop(channel, None)


class PlainFactory(LimitedFactory):
    """HTTP without TLS, only for a port that serves `plaintext_reads`."""

    def __init__(self, connections: Connections, connection_limit: ConnectionLimit) -> None:
        super().__init__(connection_limit)
        self._connections = connections

    def open(self, addr: Any, permit: Permit) -> Protocol | None:
        """The protocol of a connection."""
        channel = self._connections.new_channel(permit)
        if channel is None:
            permit.release()
        return channel


class SharedPortFactory(LimitedFactory):
    """Tells Foolscap connections from HTTPS ones."""

    def __init__(
        self,
        foolscap: Any,
        context: SSL.Context,
        connections: Connections,
        clock: Clock,
        connection_limit: ConnectionLimit,
    ) -> None:
        """foolscap: the factory of Foolscap's connections; context: TLS with the Tub's certificate."""
        super().__init__(connection_limit, foolscap)
        self._foolscap = foolscap
        self._context = context
        self._connections = connections
        self._clock = clock

    def open(self, addr: Any, permit: Permit) -> Protocol:
        """A protocol that waits for the first bytes."""
        return _Sniffer(lambda start: self._choose(start, addr, permit), permit, self._clock)

    def _choose(self, start: bytes, addr: Any, permit: Permit) -> Protocol | None:
        if start == FOOLSCAP_START:
            negotiation: Protocol | None = with_permit(self._foolscap.buildProtocol(addr), permit)
            return negotiation
        channel = self._connections.new_channel(permit)
        if channel is None:
            return None
        return TlsLayer(self._context, channel, server_side=True, chunk_size=lambda: chunk_size(permit.crowd))


class _Sniffer(Protocol):
    """Holds a connection until its first 8 bytes have come, and hands it over with them."""

    transport: Any

    def __init__(self, choose: Callable[[bytes], Protocol | None], permit: Permit, clock: Clock) -> None:
        self._choose = choose
        self._permit = permit
        self._clock = clock
        self._start = b""
        self._timer: Timer | None = None

    def connectionMade(self) -> None:
        self._permit.hold(self.transport.abortConnection)
        self._timer = self._clock.call_later(SNIFF_DEADLINE_S, self._too_late)

    def dataReceived(self, data: bytes) -> None:
        self._start += data
        if len(self._start) < len(FOOLSCAP_START):
            return
        self._stop_timer()
        protocol = self._choose(self._start[: len(FOOLSCAP_START)])
        transport = self.transport
        if protocol is None:
            transport.abortConnection()
            return
        transport.protocol = protocol
        protocol.makeConnection(transport)
        protocol.dataReceived(self._start)

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        self._stop_timer()
        self._permit.release()

    def _too_late(self) -> None:
        self._timer = None
        self.transport.abortConnection()

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


@implementer(IStreamServerEndpoint)
class SharedEndpoint:
    """An endpoint for Foolscap that replaces its own, and listens for both protocols."""

    def __init__(
        self,
        endpoint: Any,
        context: SSL.Context,
        connections: Connections,
        clock: Clock,
        connection_limit: ConnectionLimit,
    ) -> None:
        self._connection_limit = connection_limit
        self._endpoint = endpoint
        self._context = context
        self._connections = connections
        self._clock = clock

    def listen(self, factory: Any) -> Deferred[Any]:
        """Listen with Foolscap's factory."""
        shared = SharedPortFactory(factory, self._context, self._connections, self._clock, self._connection_limit)
        listening: Deferred[Any] = self._endpoint.listen(shared)
        return listening.addCallback(deepen_backlog)
