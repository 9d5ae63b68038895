"""Incoming connections that have not identified themselves."""

from __future__ import annotations

from typing import Any

import pytest
from foolscap.api import Referenceable, RemoteException
from foolscap.negotiate import DECIDING, ENCRYPTED, PLAINTEXT
from twisted.internet.defer import Deferred
from twisted.internet.endpoints import TCP4ClientEndpoint, TCP4ServerEndpoint, connectProtocol
from twisted.internet.protocol import Protocol, connectionDone
from twisted.internet.task import deferLater
from twisted.python.failure import Failure

from grid.wire.connections.connection_limit import ConnectionLimit
from grid.wire.foolscap.negotiation import HEADER_SIZE, FoolscapEndpoint, LimitedNegotiation
from grid.wire.foolscap.tub import listen, set_location, start_tub, stop_tub


class _Echo(Referenceable):
    def remote_echo(self, data: bytes) -> bytes:
        return data


class _Silent(Protocol):
    def __init__(self) -> None:
        self.lost: Deferred[None] = Deferred()

    def end(self) -> None:
        assert self.transport is not None
        self.transport.loseConnection()

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        self.lost.callback(None)


async def _serve(tub: Any, connection_limit: ConnectionLimit) -> tuple[str, int]:
    from twisted.internet import reactor

    endpoint = TCP4ServerEndpoint(reactor, 0, interface="127.0.0.1")
    port = await listen(tub, FoolscapEndpoint(endpoint, connection_limit))
    set_location(tub, (f"tcp:127.0.0.1:{port}",))
    return str(tub.registerReference(_Echo())), port


async def _connect(port: int) -> _Silent:
    from twisted.internet import reactor

    silent = await connectProtocol(TCP4ClientEndpoint(reactor, "127.0.0.1", port), _Silent())
    assert isinstance(silent, _Silent)
    return silent


async def _all_have_left(connection_limit: ConnectionLimit) -> None:
    from twisted.internet import reactor

    while len(connection_limit):
        await deferLater(reactor, 0.01)


async def test_silent_connections_when_too_many_then_the_oldest_give_way_and_a_client_gets_in() -> None:
    connection_limit = ConnectionLimit(8)  # Of which one address gets six, and three of them for strangers.
    server, client = start_tub(), start_tub()
    try:
        furl, port = await _serve(server, connection_limit)
        silent = [await _connect(port) for _ in range(5)]
        await silent[0].lost
        await silent[1].lost
        reference = await client.getReference(furl)
        await silent[2].lost
        assert await reference.callRemote("echo", b"data") == b"data"
        assert not silent[3].lost.called
        assert not silent[4].lost.called
        silent += [await _connect(port) for _ in range(10)]
        assert await reference.callRemote("echo", b"more") == b"more"
    finally:
        await stop_tub(client)
        await stop_tub(server)
    for connection in silent:
        connection.end()
    await _all_have_left(connection_limit)


async def test_negotiations_when_they_have_ended_then_none_holds_a_permit_any_more() -> None:
    connection_limit = ConnectionLimit(8)
    server, client = start_tub(), start_tub()
    try:
        furl, port = await _serve(server, connection_limit)
        silent = await _connect(port)
        transport: Any = silent.transport
        transport.write(b"no negotiation\r\n\r\n")
        await silent.lost
        reference = await client.getReference(furl)
        assert await reference.callRemote("echo", b"data") == b"data"
        assert len(connection_limit) == 1
    finally:
        await stop_tub(client)
        await stop_tub(server)
    await _all_have_left(connection_limit)


async def test_connections_when_they_negotiate_and_name_nothing_give_way_to_a_client() -> None:
    connection_limit = ConnectionLimit(8)
    server, client = start_tub(), start_tub()
    strangers = [start_tub() for _ in range(6)]
    try:
        furl, _ = await _serve(server, connection_limit)
        wrong = furl.rpartition("/")[0] + "/wrong"
        for stranger in strangers:
            with pytest.raises(RemoteException):
                await stranger.getReference(wrong)
        reference = await client.getReference(furl)
        assert await reference.callRemote("echo", b"data") == b"data"
        assert sum(len(stranger.brokers) for stranger in strangers) == 2
    finally:
        for tub in (*strangers, client, server):
            await stop_tub(tub)
    await _all_have_left(connection_limit)


class _Floor:
    """A transport that only counts."""

    def __init__(self) -> None:
        self.written = 0
        self.endings: list[str] = []

    def write(self, data: bytes) -> None:
        self.written += len(data)

    def loseConnection(self) -> None:
        self.endings.append("lost")

    def abortConnection(self) -> None:
        self.endings.append("aborted")


@pytest.mark.parametrize("phase", [PLAINTEXT, ENCRYPTED, DECIDING])
@pytest.mark.parametrize("size", [1000, 2**18])
def test_header_when_it_never_ends_is_refused_and_not_kept(phase: int, size: int) -> None:
    negotiation, transport = LimitedNegotiation(), _Floor()
    negotiation.transport, negotiation.isClient = transport, False
    negotiation.receive_phase = negotiation.send_phase = phase
    for _ in range(40):
        negotiation.dataReceived(b"x" * size)
        assert len(negotiation.buffer) <= HEADER_SIZE + 1
    assert transport.endings[:2] == ["lost", "aborted"]
    assert transport.written < 500


def test_header_when_it_comes_in_pieces_is_put_together() -> None:
    negotiation, transport = LimitedNegotiation(), _Floor()
    negotiation.transport, negotiation.isClient = transport, False
    negotiation.receive_phase = negotiation.send_phase = PLAINTEXT
    negotiation.dataReceived(b"GET /id/ HT")
    negotiation.dataReceived(b"TP/1.1\r\n")
    assert negotiation.buffer == b"GET /id/ HTTP/1.1\r\n"
    assert transport.endings == []
