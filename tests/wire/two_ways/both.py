"""A server reached by two protocols over sockets, and a relay that cuts one of them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from attrs import define, evolve, frozen
from twisted.internet import reactor
from twisted.internet.endpoints import TCP4ClientEndpoint, TCP4ServerEndpoint, connectProtocol
from twisted.internet.protocol import Factory, Protocol

from grid.caps import StorageIndex
from grid.ports import LeaseSecrets
from grid.wire.foolscap.client.server import FoolscapServer
from grid.wire.foolscap.tub import start_tub, stop_tub
from grid.wire.http.client.server import HttpServer
from grid.wire.locators import Nurl
from grid.wire.two_ways.fallback import FallbackServer, Way
from tests.wire.foolscap.loopback import offering, remote_server
from tests.wire.http.rig import make_identity, make_runtime, make_service, running

INDEX = StorageIndex(b"i" * 16)
LEASE = LeaseSecrets(renew=b"r" * 32, cancel=b"c" * 32)
DATA = bytes(range(256)) * 8192


@define(eq=False)
class Relay:
    """Passes connections on to a port. limit, sent_limit: bytes that come back, or go there, on one before it is cut."""

    port: int
    limit: int | None = None
    sent_limit: int | None = None
    open: bool = True
    cuts: int = 0

    def factory(self) -> Factory:
        """Makes the relay's ends."""
        factory = Factory()
        factory.buildProtocol = lambda _: _Outer(self)  # type: ignore[assignment,method-assign]
        return factory


class _Outer(Protocol):
    transport: Any

    def __init__(self, relay: Relay) -> None:
        self.relay = relay
        self.inner: Any = None
        self.waiting: list[bytes] = []
        self.passed = 0
        self.sent = 0

    def connectionMade(self) -> None:
        if not self.relay.open:
            self.transport.abortConnection()
            return
        endpoint = TCP4ClientEndpoint(reactor, "127.0.0.1", self.relay.port)
        connectProtocol(endpoint, _Inner(self)).addCallback(self.joined)

    def joined(self, inner: Any) -> None:
        self.inner = inner
        for data in self.waiting:
            inner.transport.write(data)

    def dataReceived(self, data: bytes) -> None:
        self.sent += len(data)
        if self.relay.sent_limit is not None and self.sent > self.relay.sent_limit:
            self.relay.cuts += 1
            self.transport.abortConnection()
        elif self.inner is None:
            self.waiting.append(data)
        else:
            self.inner.transport.write(data)

    def returned(self, data: bytes) -> None:
        self.passed += len(data)
        if self.relay.limit is not None and self.passed > self.relay.limit:
            self.relay.cuts += 1
            self.transport.abortConnection()
        else:
            self.transport.write(data)

    def connectionLost(self, reason: Any = None) -> None:
        if self.inner is not None:
            self.inner.transport.abortConnection()


class _Inner(Protocol):
    transport: Any

    def __init__(self, outer: _Outer) -> None:
        self.outer = outer

    def dataReceived(self, data: bytes) -> None:
        self.outer.returned(data)

    def connectionLost(self, reason: Any = None) -> None:
        self.outer.transport.abortConnection()


@frozen(kw_only=True)
class Both:
    """A server with two ways to it, the HTTP one through a relay."""

    server: FallbackServer
    relay: Relay


@asynccontextmanager
async def both(
    name: str = "v0-test", *, wrong_key: bool = False, http_first: bool = True, dead_foolscap: bool = False
) -> AsyncIterator[Both]:
    """Our service, offered both ways."""
    service = await make_service()
    runtime = make_runtime()
    tub = start_tub()
    async with running(service) as rig, offering(remote_server(service)) as offered:
        relay = Relay(rig.port)
        port = await TCP4ServerEndpoint(reactor, 0, interface="127.0.0.1").listen(relay.factory())
        nurl: Nurl = evolve(rig.nurl, port=port.getHost().port, spki_hash="A" * 43 if wrong_key else rig.nurl.spki_hash)
        furl = evolve(offered.furl, hints=("tcp:127.0.0.1:1",)) if dead_foolscap else offered.furl
        http = Way(name="HTTP", make=lambda: HttpServer(make_identity(name), [nurl], rig.pool, runtime))
        foolscap = Way(name="Foolscap", make=lambda: FoolscapServer(make_identity(name), furl, tub, runtime.clock))
        ways = (http, foolscap) if http_first else (foolscap, http)
        server = FallbackServer(make_identity(name), *ways, runtime.clock)
        try:
            yield Both(server=server, relay=relay)
        finally:
            server.close()
            await stop_tub(tub)
            await port.stopListening()
            await service.stop()
