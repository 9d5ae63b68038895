"""Connections that HTTP clients cannot make: every caller gets an error of our tree, in time."""

from __future__ import annotations

import socket
from typing import Any

import pytest
from twisted.internet.address import IPv4Address
from twisted.internet.defer import Deferred
from twisted.internet.error import ConnectionRefusedError, DNSLookupError, NoRouteError
from twisted.internet.task import Clock as TaskClock
from twisted.python.failure import Failure

from grid.errors import GridError, PeerError, PeerTimeoutError, PeerUnreachableError
from grid.limits import CONNECT_DEADLINE_S
from grid.wire.connections.connect_watch import QUIET_S
from grid.wire.http.client import pool as pools
from grid.wire.http.client.pool import Address, Pool
from grid.wire.http.client.server import HttpServer
from grid.wire.locators import Nurl
from grid.wire.reasons import MUTE
from grid.wire.status import ConnectionState, next_question
from tests.support.virtual_time import VirtualRuntime
from tests.wire.http.rig import make_identity

SPKI = "A" * 43


class NoNetwork(TaskClock):
    """A reactor on which connecting ends with an error, or never where there is none."""

    def __init__(self, error: BaseException | None) -> None:
        super().__init__()
        self.error = error
        self.attempts = 0

    def connectTCP(self, host: str, port: int, factory: Any, timeout: int = 30, *_: object, **__: object) -> Any:
        self.attempts += 1
        connector = _Connector(host, port)
        factory.doStart()
        if isinstance(self.error, ConnectionRefusedError | NoRouteError | DNSLookupError):
            factory.clientConnectionFailed(connector, Failure(self.error))
        elif self.error is not None:
            raise self.error
        return connector


class _Connector:
    def __init__(self, host: str, port: int) -> None:
        self._address = IPv4Address("TCP", host, port)

    def getDestination(self) -> IPv4Address:
        return self._address

    def stopConnecting(self) -> None:
        return


def server(reactor: object, runtime: VirtualRuntime, *hosts: str) -> HttpServer:
    nurls = [Nurl(spki_hash=SPKI, host=host, port=1, swissnum="s") for host in hosts]
    return HttpServer(make_identity("v0-x"), nurls, Pool(reactor, runtime.clock), runtime)


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (ConnectionRefusedError(), "connection refused"),
        (NoRouteError(), "no route to host"),
        (DNSLookupError("no such host"), "host name not found"),
        (ValueError("invalid hostname: a..b"), "the address cannot be used"),
        (OverflowError("port"), "OverflowError"),
        (RuntimeError("a defect of the reactor"), "RuntimeError"),
    ],
)
def test_acquire_when_connecting_fails_in_whatever_manner_raises_an_error_of_our_tree(
    error: Exception, words: str
) -> None:
    runtime = VirtualRuntime()
    pool = Pool(NoNetwork(error), runtime.clock)
    for _ in range(20):  # More often than connections are permitted.
        with pytest.raises(PeerUnreachableError) as caught:
            runtime.run(pool.acquire(Address("127.0.0.1", 1, SPKI), "server x"))
        assert str(caught.value) == f"server x cannot be reached: {words}"


@pytest.mark.parametrize("host", ["a..b", "x" * 64, f"{'x' * 64}.org", "\udc80"])
async def test_acquire_when_no_host_can_have_the_name_raises_an_error_of_our_tree(host: str) -> None:
    from twisted.internet import reactor

    from tests.wire.http.rig import make_runtime

    pool = Pool(reactor, make_runtime().clock)
    with pytest.raises(PeerUnreachableError, match="the address cannot be used"):
        await pool.acquire(Address(host, 1, SPKI), "server x")


@pytest.mark.parametrize("error", [ConnectionRefusedError(), ValueError("a..b"), RuntimeError("x")])
def test_calls_when_connecting_fails_at_once_all_end_and_the_next_one_waits_for_the_backoff(error: Exception) -> None:
    runtime = VirtualRuntime()
    network = NoNetwork(error)
    client = server(network, runtime, "127.0.0.1")
    outcomes: list[object] = []
    for _ in range(3):
        Deferred.fromCoroutine(client.get_version()).addBoth(outcomes.append)
    assert [type(outcome) for outcome in outcomes] == [Failure] * 3
    assert all(isinstance(outcome.value, GridError) for outcome in outcomes)  # type: ignore[attr-defined]
    assert network.attempts == 1 and client.status.state is ConnectionState.WAITING


def test_call_when_the_server_has_no_address_that_can_be_used_fails_at_once() -> None:
    runtime = VirtualRuntime()
    client = server(NoNetwork(None), runtime)
    with pytest.raises(PeerUnreachableError, match="no HTTP address"):
        runtime.run(client.get_version())
    assert client.status.detail == "no HTTP address that can be reached from here"


def test_calls_when_connecting_never_succeeds_end_at_the_deadline() -> None:
    runtime = VirtualRuntime()
    client = server(NoNetwork(None), runtime, "127.0.0.1")
    with pytest.raises(PeerError, match="did not finish connecting"):
        runtime.run(client.get_version())
    assert runtime.clock.now() == CONNECT_DEADLINE_S
    assert not runtime.clock.task_clock.getDelayedCalls()


def test_connect_when_nothing_answers_reports_that_soon_and_goes_on_to_its_deadline() -> None:
    runtime = VirtualRuntime()
    nurls = [Nurl(spki_hash=SPKI, host="127.0.0.1", port=1, swissnum="s")]
    told: list[float] = []
    pool = Pool(NoNetwork(None), runtime.clock)
    quiet = HttpServer(make_identity("v0-x"), nurls, pool, runtime, on_quiet=told.append)
    connecting = Deferred.fromCoroutine(quiet.connect())
    connecting.addErrback(lambda _: None)
    runtime.run(runtime.clock.sleep(QUIET_S + 0.1))
    states = [quiet.status.state]
    runtime.run(runtime.clock.sleep(CONNECT_DEADLINE_S))
    states.append(quiet.status.state)
    assert told == [0.0] and states == [ConnectionState.CONNECTING, ConnectionState.WAITING]


async def test_server_that_accepts_connections_but_says_nothing_is_said_to_hang(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from twisted.internet import reactor

    from tests.wire.http.rig import make_runtime

    monkeypatch.setattr(pools, "QUIET_S", 0.05)
    monkeypatch.setattr(pools, "CONNECT_DEADLINE_S", 0.3)
    runtime = make_runtime()
    with socket.create_server(("127.0.0.1", 0)) as suspended:
        nurls = [Nurl(spki_hash=SPKI, host="127.0.0.1", port=suspended.getsockname()[1], swissnum="s")]
        client = HttpServer(make_identity("v0-x"), nurls, Pool(reactor, runtime.clock), runtime)
        connecting = Deferred.fromCoroutine(client.get_version())
        await runtime.clock.sleep(0.15)
        assert (client.status.state, client.status.detail) == (ConnectionState.CONNECTING, MUTE)
        with pytest.raises(PeerTimeoutError, match=f"server .*{MUTE}") as caught:
            await connecting
        assert caught.value.reason == client.status.detail == MUTE
        assert "restart it" in next_question(MUTE)


def test_connect_when_it_is_refused_reports_no_silence() -> None:
    runtime = VirtualRuntime()
    nurls = [Nurl(spki_hash=SPKI, host="127.0.0.1", port=1, swissnum="s")]
    told: list[float] = []
    pool = Pool(NoNetwork(ConnectionRefusedError()), runtime.clock)
    gone = HttpServer(make_identity("v0-x"), nurls, pool, runtime, on_quiet=told.append)
    with pytest.raises(PeerUnreachableError):
        runtime.run(gone.connect())
    runtime.run(runtime.clock.sleep(2 * QUIET_S))
    assert not told
