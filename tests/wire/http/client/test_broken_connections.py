"""Idle connections that the server closes: the client finds out at once whether the server is still there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from attrs import define
from twisted.internet import reactor
from twisted.internet.address import IPv4Address
from twisted.internet.error import ConnectionRefusedError
from twisted.python.failure import Failure

from grid.ports import StorageIndex
from grid.wire.http.client import link
from grid.wire.http.client.pool import Pool
from grid.wire.http.client.server import HttpServer
from grid.wire.status import ConnectionState
from tests.wire.http.rig import Rig, make_identity, make_runtime, make_service, running


@define
class Network:
    """The reactor, counting attempts to connect, which are refused once nobody is there."""

    attempts: int = 0
    is_nobody_there: bool = False

    def __getattr__(self, name: str) -> Any:
        return getattr(reactor, name)

    def connectTCP(self, host: str, port: int, factory: Any, *more: Any, **named: Any) -> Any:
        self.attempts += 1
        if not self.is_nobody_there:
            return reactor.connectTCP(host, port, factory, *more, **named)
        factory.doStart()
        factory.clientConnectionFailed(_Connector(), Failure(ConnectionRefusedError()))
        return _Connector()


class _Connector:
    def getDestination(self) -> IPv4Address:
        return IPv4Address("TCP", "127.0.0.1", 1)

    def stopConnecting(self) -> None:
        return


async def until(condition: Callable[[], bool]) -> None:
    clock = make_runtime().clock
    while not condition():
        await clock.sleep(0.005)


def open_count(rig: Rig) -> int:
    return len(rig.offer.connections._open)


def client_of(rig: Rig, network: Network) -> HttpServer:
    runtime = make_runtime()
    return HttpServer(make_identity(), [rig.nurl], Pool(network, runtime.clock), runtime)


async def test_server_that_ended_is_not_connected_before_anybody_asks_it_for_anything() -> None:
    network = Network()
    async with running(await make_service()) as rig:
        client = client_of(rig, network)
        await client.get_version()
        assert client.status.state is ConnectionState.CONNECTED
        network.is_nobody_there = True
        rig.offer.close()

        await until(lambda: client.status.state is ConnectionState.WAITING)

        assert client.status.detail == "connection refused" and network.attempts == 2
        network.is_nobody_there = False
        await client.get_version()
        assert client.status.state is ConnectionState.CONNECTED, "the next call connects without waiting"
        client.close()


async def test_server_that_closes_idle_connections_stays_connected_and_is_asked_seldom() -> None:
    network = Network()
    async with running(await make_service()) as rig:
        client = client_of(rig, network)
        await client.get_version()
        rig.offer.close()  # As a server does that is full of connections.
        await until(lambda: network.attempts == 2 and open_count(rig) == 1)
        rig.offer.close()
        await until(lambda: open_count(rig) == 0)
        await client.find_shares(StorageIndex(bytes(16)))

        assert client.status.state is ConnectionState.CONNECTED
        assert network.attempts == 3, "one check, and a connection for the call"
        client.close()


async def test_connection_that_the_client_closes_makes_it_ask_nothing() -> None:
    network = Network()
    async with running(await make_service()) as rig:
        client = client_of(rig, network)
        await client.get_version()
        client.close()
        await until(lambda: open_count(rig) == 0)
        assert network.attempts == 1


async def test_server_that_answers_the_last_check_and_ends_is_asked_again_when_the_pause_is_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As a server that stops in order, and closes its port last."""
    monkeypatch.setattr(link, "CHECKS_APART_S", 0.2)
    network = Network()
    async with running(await make_service()) as rig:
        client = client_of(rig, network)
        await client.get_version()
        rig.offer.close()
        await until(lambda: network.attempts == 2 and open_count(rig) == 1)
        await until(lambda: not client._link._checks.count)  # The check is over.
        network.is_nobody_there = True
        rig.offer.close()
        await until(lambda: client.status.state is ConnectionState.WAITING)
        assert client.status.detail == "connection refused"
        client.close()
