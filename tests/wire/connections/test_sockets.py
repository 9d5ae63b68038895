from __future__ import annotations

import socket
from types import SimpleNamespace
from typing import Any, cast

from twisted.internet.protocol import Protocol
from twisted.internet.tcp import Connection

from grid.limits import MAX_HTTP_CONNECTIONS
from grid.wire.connections.connection_limit import ConnectionLimit
from grid.wire.connections.sockets import (
    LARGEST_CHUNK,
    MOST_PIECES,
    acknowledged_size,
    chunk_size,
    send_now,
    shortest_round_trip_s,
)
from grid.wire.http.client.spread import LONG_LINE_S

MOST_KEPT = 32 * 2**20


def test_chunks_when_connections_are_few_are_large() -> None:
    assert [chunk_size(crowd) for crowd in range(17)] == [LARGEST_CHUNK] * 17


def test_buffers_that_openssl_keeps_for_all_http_connections_stay_bounded() -> None:
    # Each connection opened while that many were open may have a buffer in each direction, for its chunk.
    assert 2 * sum(chunk_size(crowd) for crowd in range(1, MAX_HTTP_CONNECTIONS + 1)) <= MOST_KEPT


def test_crowd_of_a_permit_is_the_fullest_of_its_groups() -> None:
    process, listener = ConnectionLimit(100), ConnectionLimit(10)
    permits = [process.acquire("10.0.0.1") for _ in range(3)]
    assert [permit.crowd for permit in permits if permit] == [3, 3, 3]
    (first, second, third) = [permit for permit in permits if permit]
    assert listener.admit(first)
    third.release()
    assert (first.crowd, second.crowd, third.crowd) == (2, 2, 1)


def test_shortest_round_trip_when_two_sockets_are_on_one_machine_is_known_and_short() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as listening,
        socket.create_connection(listening.getsockname()) as near,
        listening.accept()[0] as far,
    ):
        near.sendall(b"a question")
        far.recv(100)
        round_trip_s = shortest_round_trip_s(SimpleNamespace(socket=near))
        assert round_trip_s is not None and 0 < round_trip_s < LONG_LINE_S
        assert acknowledged_size(SimpleNamespace(socket=near)) is not None


def test_shortest_round_trip_when_there_is_no_socket_is_not_known() -> None:
    assert shortest_round_trip_s(object()) is None
    closed = socket.socket()
    closed.close()
    assert shortest_round_trip_s(SimpleNamespace(socket=closed)) is None


def connection(near: socket.socket) -> Connection:
    """A transport of Twisted that writes only when a test makes it."""
    near.setblocking(False)
    reactor = SimpleNamespace(addWriter=lambda _: None, removeWriter=lambda _: None)
    made = Connection(near, cast(Any, Protocol()), cast(Any, reactor))
    made.connected = True
    return made


def test_send_when_nothing_waits_passes_pieces_to_the_socket_until_it_is_full() -> None:
    near, far = socket.socketpair()
    with near, far:
        transport = connection(near)
        assert send_now(transport, [b"one", b"", b"two"]) == []
        assert far.recv(100) == b"onetwo"
        pieces = [bytes([number % 251]) * 10_007 for number in range(MOST_PIECES + 10)]
        left = send_now(transport, pieces)
        assert 0 < len(left) <= len(pieces)
        far.setblocking(False)
        taken = far.recv(10_000_000)
        while (taken + b"".join(left)) != b"".join(pieces):
            taken += far.recv(10_000_000)


def test_send_when_earlier_bytes_wait_or_the_connection_is_lost_passes_nothing() -> None:
    near, far = socket.socketpair()
    with near, far:
        transport = connection(near)
        transport.write(b"earlier")
        assert send_now(transport, [b"later"]) == [b"later"]
        transport.doWrite()
        assert (far.recv(100), send_now(transport, [b"later"])) == (b"earlier", [])
        assert send_now(SimpleNamespace(socket=near), [b"to another transport"]) == [b"to another transport"]
        far.close()
        assert send_now(transport, [b"lost"]) == [b"lost"]
        transport.disconnecting = True
        assert send_now(transport, [b"late"]) == [b"late"]
