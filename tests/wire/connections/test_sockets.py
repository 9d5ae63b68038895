from __future__ import annotations

import socket
from types import SimpleNamespace

from grid.limits import MAX_HTTP_CONNECTIONS
from grid.wire.connections.connection_limit import ConnectionLimit
from grid.wire.connections.sockets import LARGEST_CHUNK, acknowledged_size, chunk_size, shortest_round_trip_s
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
