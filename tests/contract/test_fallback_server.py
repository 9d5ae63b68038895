"""The contract of StorageServer, and its faults, where two protocols lead to a server over sockets and one is broken."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import pytest_twisted
from attrs import define, evolve, frozen
from twisted.internet import reactor
from twisted.internet.endpoints import TCP4ClientEndpoint, TCP4ServerEndpoint, connectProtocol
from twisted.internet.protocol import Factory, Protocol

from grid.caps import StorageIndex
from grid.errors import PeerError
from grid.ports import LeaseSecrets, ShareNumber, ShareWrite, StorageServer
from grid.wire.fallback import FallbackServer, Way
from grid.wire.foolscap.client import FoolscapServer
from grid.wire.foolscap.server import RemoteStorageServer
from grid.wire.foolscap.tub import start_tub, stop_tub
from grid.wire.http.client import HttpServer
from grid.wire.locators import Nurl
from tests.contract.whole_shares import WholeSharesContract
from tests.wire.foolscap.loopback import offering
from tests.wire.http.rig import make_identity, make_runtime, make_service, running

INDEX = StorageIndex(b"i" * 16)
LEASE = LeaseSecrets(renew=b"r" * 32, cancel=b"c" * 32)
DATA = bytes(range(256)) * 8192


@define(eq=False)
class Relay:
    """Passes connections on to a port. limit: octets that come back on one before it is cut, None without one."""

    port: int
    limit: int | None = None
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
        if self.inner is None:
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
async def both(*, wrong_key: bool = False, http_first: bool = True, dead_foolscap: bool = False) -> AsyncIterator[Both]:
    """Our service, offered both ways."""
    service = await make_service()
    runtime = make_runtime()
    tub = start_tub()
    async with running(service) as rig, offering(RemoteStorageServer(service)) as offered:
        relay = Relay(rig.port)
        port = await TCP4ServerEndpoint(reactor, 0, interface="127.0.0.1").listen(relay.factory())
        nurl: Nurl = evolve(rig.nurl, port=port.getHost().port, spki_hash="A" * 43 if wrong_key else rig.nurl.spki_hash)
        furl = evolve(offered.furl, hints=("tcp:127.0.0.1:1",)) if dead_foolscap else offered.furl
        http = Way(name="HTTP", make=lambda: HttpServer(make_identity(), [nurl], rig.pool, runtime))
        foolscap = Way(name="Foolscap", make=lambda: FoolscapServer(make_identity(), furl, tub, runtime.clock))
        ways = (http, foolscap) if http_first else (foolscap, http)
        server = FallbackServer(make_identity(), *ways, runtime.clock)
        try:
            yield Both(server=server, relay=relay)
        finally:
            server.close()
            await stop_tub(tub)
            await port.stopListening()
            await service.stop()


class TestFallbackServer(WholeSharesContract):
    @pytest_twisted.async_yield_fixture
    async def server(self) -> AsyncGenerator[StorageServer, None]:
        async with both() as pair:
            await pair.server.connect()
            assert pair.server.status.transport == "http"
            yield pair.server


class TestFallbackServerWhoseHttpKeyIsAnother(WholeSharesContract):
    @pytest_twisted.async_yield_fixture
    async def server(self) -> AsyncGenerator[StorageServer, None]:
        async with both(wrong_key=True) as pair:
            await pair.server.connect()
            assert pair.server.status.transport == "foolscap"
            yield pair.server


class TestFallbackServerWhoseFoolscapIsDead(WholeSharesContract):
    @pytest_twisted.async_yield_fixture
    async def server(self) -> AsyncGenerator[StorageServer, None]:
        async with both(http_first=False, dead_foolscap=True) as pair:
            await pair.server.connect()
            assert pair.server.status.transport == "http"
            yield pair.server


async def store(server: StorageServer) -> None:
    """One share of DATA."""
    allocation = await server.allocate(INDEX, LEASE, frozenset([ShareNumber(0)]), len(DATA))
    await allocation.upload.write([ShareWrite(ShareNumber(0), 0, [DATA])])
    await allocation.upload.close([ShareNumber(0)])


async def load(server: StorageServer) -> bytes:
    """What is in it."""
    found = await server.read_shares(INDEX, {ShareNumber(0): [(0, len(DATA))]})
    return bytes(found[ShareNumber(0)][0])


async def test_server_when_the_http_key_is_another_says_so_and_is_used_by_foolscap() -> None:
    async with both(wrong_key=True) as pair:
        await store(pair.server)
        assert await load(pair.server) == DATA
        status = pair.server.status
        assert status.transport == "foolscap" and "the key is another" in status.fallback


async def test_read_when_http_is_cut_in_the_middle_every_time_is_finished_by_foolscap() -> None:
    async with both() as pair:
        await store(pair.server)
        pair.relay.limit = 300_000
        assert await load(pair.server) == DATA
        assert pair.relay.cuts >= 2
        assert pair.server.status.transport == "foolscap"


async def test_write_when_http_dies_in_the_middle_fails_once_and_the_next_goes_by_foolscap() -> None:
    async with both() as pair:
        allocation = await pair.server.allocate(INDEX, LEASE, frozenset([ShareNumber(0)]), len(DATA))
        pair.relay.open, pair.relay.limit = False, 0
        with pytest.raises(PeerError):
            await allocation.upload.write([ShareWrite(ShareNumber(0), 0, [DATA])])
        assert await pair.server.find_shares(INDEX) == {}
        other = StorageIndex(b"j" * 16)
        again = await pair.server.allocate(other, LEASE, frozenset([ShareNumber(0)]), 5)
        await again.upload.write([ShareWrite(ShareNumber(0), 0, [b"share"])])
        await again.upload.close([ShareNumber(0)])
        assert set(await pair.server.find_shares(other)) == {ShareNumber(0)}
        assert pair.server.status.transport == "foolscap"


async def test_server_when_http_comes_back_is_used_over_http_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("grid.wire.preference.FIRST_AVOIDED_S", 0.6)
    async with both() as pair:
        pair.relay.open = False
        await store(pair.server)
        assert pair.server.status.transport == "foolscap"
        pair.relay.open = True
        clock = make_runtime().clock
        for _ in range(100):
            await clock.sleep(0.1)
            assert await load(pair.server) == DATA
            if pair.server.status.transport == "http":
                break
        assert pair.server.status.transport == "http" and not pair.server.status.fallback
