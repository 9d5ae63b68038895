"""Records of pyOpenSSL's connections: whole, in any pieces, without copies of what was received."""

from __future__ import annotations

import gc
import sys
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from OpenSSL import SSL
from OpenSSL._util import lib

from grid.wire.connections.tls_records import CHUNK_SIZE, Room, TlsRecords
from grid.wire.http.format.tls import client_context
from tests.wire.http.rig import tls_context

ROOM = Room(2**17)


class Side:
    """One end of a connection."""

    def __init__(self, connection: SSL.Connection) -> None:
        self.connection = connection
        self.records = TlsRecords(connection)
        self.read = bytearray()

    def take_sealed(self) -> bytes:
        return b"".join(bytes(view) for view in self.records.sealed())

    def receive(self, data: bytes | bytearray) -> None:
        self.records.offer(data)
        while count := self.records.read(ROOM, 0):
            self.read += ROOM.view[:count]

    def receive_nothing_more(self) -> None:
        """What a layer does with a stream that has ended: it may ask again, and shuts it down."""
        with pytest.raises(SSL.Error):
            self.records.read(ROOM, 0)
        with suppress(SSL.Error):
            self.connection.shutdown()


def open_pair() -> tuple[Side, Side]:
    """A client and a server after the handshake."""
    client, server = Side(SSL.Connection(client_context())), Side(SSL.Connection(tls_context()))
    client.connection.set_connect_state()
    server.connection.set_accept_state()
    for _ in range(4):
        for one, other in ((client, server), (server, client)):
            try:
                one.connection.do_handshake()
            except SSL.WantReadError:
                pass
            if data := one.take_sealed():
                other.records.offer(data)
    client.receive(server.take_sealed())
    return client, server


PAIR = open_pair()


@settings(max_examples=60, deadline=None)
@given(
    sizes=st.lists(st.integers(1, 70_000), min_size=1, max_size=5),
    cuts=st.lists(st.integers(1, 40_000), max_size=8),
)
def test_records_when_they_come_in_any_pieces_are_whole(sizes: list[int], cuts: list[int]) -> None:
    client, server = PAIR
    server.read.clear()
    sent = b""
    for number, size in enumerate(sizes):
        data = bytes([number]) * size
        client.records.seal(data)
        sent += data
    sealed = client.take_sealed()
    for cut in cuts:
        server.receive(sealed[:cut])
        sealed = sealed[cut:]
    server.receive(sealed)
    assert server.read == sent


def test_chunk_when_it_is_the_largest_is_sealed_by_one_call_and_fits_the_room() -> None:
    client, server = open_pair()
    data = bytes(range(256)) * (CHUNK_SIZE // 256)
    client.records.seal(memoryview(data))
    views = [bytes(view) for view in client.records.sealed()]
    assert len(views) == 1
    server.receive(views[0])
    assert server.read == data


def test_data_when_the_handshake_is_not_finished_is_not_sealed() -> None:
    side = Side(SSL.Connection(client_context()))
    side.connection.set_connect_state()
    with pytest.raises(SSL.WantReadError):
        side.records.seal(b"x")
    assert side.take_sealed()  # The first message of the handshake.


def test_bytes_when_they_are_read_to_their_end_are_held_no_longer() -> None:
    client, server = open_pair()
    client.records.seal(b"x" * 100_000)
    sealed = client.take_sealed()
    before = sys.getrefcount(sealed)
    server.receive(sealed)
    assert sys.getrefcount(sealed) == before
    server.receive(sealed[:0])


def test_bytes_when_a_record_is_incomplete_are_held_no_longer_and_may_change() -> None:
    client, server = open_pair()
    client.records.seal(b"x" * 10_000)
    sealed = client.take_sealed()
    first = bytearray(sealed[:6_000])
    server.receive(first)
    first[:] = bytes(len(first))
    server.receive(sealed[6_000:])
    assert server.read == b"x" * 10_000


def test_record_when_it_is_broken_ends_this_connection_and_no_other() -> None:
    client, server = open_pair()
    other_client, other_server = open_pair()
    client.records.seal(b"x" * 1_000)
    sealed = bytearray(client.take_sealed())
    sealed[500] ^= 1
    with pytest.raises(SSL.Error, match="record mac"):
        server.receive(sealed)
    assert lib.ERR_peek_error() == 0
    other_client.records.seal(b"y")
    other_server.receive(other_client.take_sealed())
    assert other_server.read == b"y"
    assert server.take_sealed()  # The alert.
    with pytest.raises(SSL.Error):
        server.records.seal(b"z")
    assert lib.ERR_peek_error() == 0


def test_bytes_behind_a_broken_record_stay_as_long_as_openssl_may_read_them() -> None:
    client, server = open_pair()
    client.records.seal(b"x" * 1_000)
    broken = bytearray(client.take_sealed())
    broken[500] ^= 1
    received = bytes(broken) + b"y" * 100_000
    before = sys.getrefcount(received)
    with pytest.raises(SSL.Error):
        server.receive(received)
    assert sys.getrefcount(received) == before + 1
    server.receive_nothing_more()
    del server
    gc.collect()
    assert sys.getrefcount(received) == before


def test_stream_when_the_peer_closes_it_ends() -> None:
    client, server = open_pair()
    client.records.seal(b"last")
    client.connection.shutdown()
    with pytest.raises(SSL.ZeroReturnError):
        server.receive(client.take_sealed())
    assert server.read == b"last"


def test_connections_when_they_go_leave_nothing_behind() -> None:
    client, server = open_pair()
    client.records.seal(b"x" * 1_000)
    server.records.offer(client.take_sealed())  # Never read.
    del client, server
    gc.collect()
    assert lib.ERR_peek_error() == 0


def test_binding_when_pyopenssl_changes_then_the_parts_we_use_are_still_there() -> None:
    for name in (
        "BIO_new_mem_buf", "BIO_read", "BIO_set_mem_eof_return", "ERR_clear_error", "SSL_get_error", "SSL_read", "SSL_set_bio",
        "SSL_write",
    ):  # fmt: skip
        assert callable(getattr(lib, name))
    connection = SSL.Connection(client_context())
    assert callable(connection._raise_ssl_error)
    assert {"_ssl", "_into_ssl", "_from_ssl"} <= set(vars(connection))
