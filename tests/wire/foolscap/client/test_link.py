"""Connections that are made lazily, shared, abandoned in time and made again."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from foolscap.api import Referenceable
from twisted.internet.defer import Deferred, gatherResults
from twisted.internet.endpoints import TCP4ServerEndpoint
from twisted.internet.protocol import Factory, Protocol

from grid.errors import PeerGoneError, PeerTimeoutError
from grid.ports import Clock, Timer
from grid.runtime import ReactorClock
from grid.wire.connections.connect_watch import QUIET_S
from grid.wire.foolscap.client.server import FoolscapServer
from grid.wire.foolscap.tub import start_tub, stop_tub
from grid.wire.locators import Furl, parse_furl
from grid.wire.status import ConnectionState
from tests.support.virtual_time import VirtualClock
from tests.wire.foolscap.loopback import IDENTITY, INDEX, ScriptedServer, connected, offering, remote_server


class SkippingClock:
    """The real clock, whose now() a test can move forward."""

    def __init__(self) -> None:
        from twisted.internet import reactor

        self._real = ReactorClock(reactor)
        self.skipped_s = 0.0

    def now(self) -> float:
        return self._real.now() + self.skipped_s

    def unix_time(self) -> float:
        return self._real.unix_time() + self.skipped_s

    def call_later(self, delay_s: float, function: Any) -> Timer:
        return self._real.call_later(delay_s, function)

    async def sleep(self, delay_s: float) -> None:
        await self._real.sleep(delay_s)


@asynccontextmanager
async def client_of(furl: Furl, clock: Clock, deadline_s: float = 15.0) -> AsyncIterator[FoolscapServer]:
    tub = start_tub()
    try:
        yield FoolscapServer(IDENTITY, furl, tub, clock, deadline_s)
    finally:
        await stop_tub(tub)


@asynccontextmanager
async def silent_port() -> AsyncIterator[Furl]:
    """A port that accepts connections and says nothing."""
    from twisted.internet import reactor

    endpoint = TCP4ServerEndpoint(reactor, 0, interface="127.0.0.1")
    protocols: list[Protocol] = []

    class Silent(Protocol):
        def connectionMade(self) -> None:
            protocols.append(self)

    port = await endpoint.listen(Factory.forProtocol(Silent))
    try:
        yield parse_furl(f"pb://{'a' * 32}@tcp:127.0.0.1:{port.getHost().port}/name")
    finally:
        for protocol in protocols:
            assert protocol.transport is not None
            protocol.transport.loseConnection()
        await port.stopListening()


async def test_connection_when_nothing_was_asked_then_is_not_made() -> None:
    async with connected(ScriptedServer()) as client:
        assert client.status.state is ConnectionState.IDLE


async def test_connection_when_several_ask_at_once_then_is_made_once() -> None:
    server = ScriptedServer()
    async with connected(server) as client:
        await gatherResults([Deferred.fromCoroutine(client.connect()) for _ in range(5)])
        assert server.calls == [("get_version",)]
        assert client.status.state is ConnectionState.CONNECTED
        assert client.status.version == server.version


async def test_connection_when_one_of_several_callers_is_cancelled_then_the_others_get_it() -> None:
    async with connected(ScriptedServer()) as client:
        waiting = [Deferred.fromCoroutine(client.connect()) for _ in range(3)]
        waiting[0].addErrback(lambda _: None)
        waiting[0].cancel()
        await gatherResults(waiting[1:])
        assert client.status.state is ConnectionState.CONNECTED


async def test_connection_when_refused_then_fails_and_waits_before_the_next_attempt() -> None:
    async with silent_port() as furl:
        pass
    clock = SkippingClock()
    async with client_of(furl, clock) as client:
        delays = []
        for _ in range(9):
            with pytest.raises(PeerGoneError, match="refused"):
                await client.connect()
            with pytest.raises(PeerGoneError, match="next attempt") as caught:
                await client.connect()
            delays.append(float(str(caught.value).rsplit(" in ", 1)[1].removesuffix(" s")))
            clock.skipped_s += 30
        assert delays == [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0, 30.0]


async def test_connection_when_there_are_no_hints_then_fails_at_once() -> None:
    async with client_of(parse_furl(f"pb://{'a' * 32}@/name"), SkippingClock()) as client:
        with pytest.raises(PeerGoneError):
            await client.connect()


async def test_connection_when_the_peer_is_silent_then_ends_at_the_deadline() -> None:
    async with silent_port() as furl, client_of(furl, SkippingClock(), 0.2) as client:
        with pytest.raises(PeerTimeoutError):
            await client.find_shares(INDEX)
        assert client.status.state is ConnectionState.WAITING
        assert "0.2 s" in client.status.detail


async def test_connection_when_another_node_answers_then_is_not_made() -> None:
    async with offering(remote_server(ScriptedServer())) as offered:
        furl = Furl(tub_id="a" * 32, hints=offered.furl.hints, swissnum=offered.furl.swissnum)
        async with client_of(furl, SkippingClock()) as client:
            with pytest.raises(PeerGoneError):
                await client.connect()


async def test_connection_when_the_name_is_unknown_then_is_refused() -> None:
    async with offering(Referenceable()) as offered:
        furl = Furl(tub_id=offered.furl.tub_id, hints=offered.furl.hints, swissnum="unknown")
        async with client_of(furl, SkippingClock()) as client:
            with pytest.raises(Exception, match="KeyError"):
                await client.connect()


async def test_connection_when_closed_during_the_attempt_then_callers_hear_of_it() -> None:
    async with silent_port() as furl, client_of(furl, SkippingClock()) as client:
        waiting = Deferred.fromCoroutine(client.connect())
        client.close()
        with pytest.raises(PeerGoneError):
            await waiting


async def test_connection_when_closed_and_asked_again_then_is_made_again() -> None:
    server = ScriptedServer()
    async with connected(server) as client:
        await client.connect()
        client.close()
        await client.connect()
        assert server.calls == [("get_version",)] * 2


@asynccontextmanager
async def watched_client(furl: Furl, told: list[float]) -> AsyncIterator[tuple[FoolscapServer, VirtualClock]]:
    clock, tub = VirtualClock(), start_tub()
    try:
        yield FoolscapServer(IDENTITY, furl, tub, clock, on_quiet=told.append), clock
    finally:
        await stop_tub(tub)


async def test_connection_when_accepted_by_a_silent_server_then_reports_that_soon_and_goes_on() -> None:
    told: list[float] = []
    async with silent_port() as furl, watched_client(furl, told) as (client, clock):
        attempt = Deferred.fromCoroutine(client.connect())
        attempt.addErrback(lambda _: None)
        for _ in range(20):
            clock.task_clock.advance(QUIET_S / 10)
        assert len(told) == 1 and client.status.state is ConnectionState.CONNECTING
        client.close()


async def test_connection_when_the_server_speaks_then_reports_no_silence() -> None:
    told: list[float] = []
    async with (
        offering(remote_server(ScriptedServer())) as offered,
        watched_client(offered.furl, told) as (client, clock),
    ):
        await client.connect()
        for _ in range(20):
            clock.task_clock.advance(QUIET_S / 10)
        assert not told
