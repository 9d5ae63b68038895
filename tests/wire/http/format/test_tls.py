"""The TLS layer: how many bytes on the socket wake it, and that it never waits for bytes that may not come."""

from __future__ import annotations

from typing import Any

import pytest

from grid.wire.http.format import tls
from grid.wire.http.format.tls import TlsLayer, client_context, expect
from tests.wire.http.rig import tls_context

KIB = 1024


class Handle:
    """A socket that notes its wake mark."""

    def __init__(self) -> None:
        self.marks: list[int] = []

    def setsockopt(self, level: int, option: int, mark: int) -> None:
        self.marks.append(mark)


class Wire:
    """A transport whose bytes go to the layer of the other side when the test says so."""

    def __init__(self) -> None:
        self.socket = Handle()
        self.sent = b""

    def write(self, data: bytes) -> None:
        self.sent += data

    def loseConnection(self) -> None:
        pass

    def abortConnection(self) -> None:
        raise AssertionError("nothing here is a reason to hang up")


class Upper:
    """The protocol above, which awaits a body of that length."""

    def __init__(self, awaited: int = 0) -> None:
        self.awaited = awaited
        self.received = 0
        self.layer: Any = None

    def makeConnection(self, layer: Any) -> None:
        self.layer = layer

    def dataReceived(self, data: bytes) -> None:
        self.received += len(data)
        expect(self.layer, max(0, self.awaited - self.received))


def connected(awaited: int) -> tuple[TlsLayer, Upper, TlsLayer]:
    """A client, the protocol above the server, and the server, after the handshake."""
    upper = Upper(awaited)
    client = TlsLayer(client_context(), Upper(), server_side=False)
    server = TlsLayer(tls_context(), upper, server_side=True)
    for side in (client, server):
        side.transport = Wire()
    server.connectionMade()
    client.connectionMade()
    while client.transport.sent or server.transport.sent:
        for one, other in ((client, server), (server, client)):
            raw, one.transport.sent = one.transport.sent, b""
            if raw:
                other.dataReceived(raw)
    return client, upper, server


def sealed(client: TlsLayer, size: int) -> bytes:
    """That many bytes as the client sends them."""
    client.write(bytes(size))
    raw, client.transport.sent = client.transport.sent, b""
    return bytes(raw)


def test_mark_when_much_is_to_come_is_high_and_goes_down_to_its_end() -> None:
    size = 2_000 * KIB
    client, upper, server = connected(size)
    raw = sealed(client, size)
    marks: list[int] = []
    position = 0
    while position < len(raw):
        mark = server.transport.socket.marks[-1] if server.transport.socket.marks else 1
        # The kernel wakes the reader from the mark on: were it more than what comes, nobody would ever read on.
        assert mark <= len(raw) - position
        taken = max(mark, 10_000)
        server.dataReceived(raw[position : position + taken])
        marks.append(mark)
        position += taken
    assert upper.received == size
    assert max(marks) == tls._WAKE_SIZE
    assert server.transport.socket.marks[-1] == 1
    assert len(marks) < 30


@pytest.mark.parametrize("step", [1, 999, 16_384, 70_000, 600_000])
def test_mark_is_never_more_than_what_is_still_to_come(step: int) -> None:
    size = 300 * KIB
    client, upper, server = connected(size)
    raw = sealed(client, size)
    for position in range(0, len(raw), step):
        server.dataReceived(raw[position : position + step])
        marks = server.transport.socket.marks
        assert not marks or marks[-1] <= max(1, len(raw) - position - step)
    assert upper.received == size
    assert server.transport.socket.marks[-1:] in ([], [1])


def test_mark_when_nothing_is_expected_any_more_is_one_at_once() -> None:
    client, _, server = connected(4_000 * KIB)
    server.dataReceived(sealed(client, 100 * KIB))
    assert server.transport.socket.marks == [tls._WAKE_SIZE]
    server.expect(0)
    assert server.transport.socket.marks == [tls._WAKE_SIZE, 1]


def test_mark_without_a_layer_is_of_the_transport_itself() -> None:
    wire = Wire()
    for raw in (10**9, 100 * KIB, 100, 0):
        expect(wire, raw)
    assert wire.socket.marks == [tls._WAKE_SIZE, 100 * KIB, 1, 1]


def test_layer_when_the_handshake_is_nonsense_closes() -> None:
    closed: list[bool] = []
    server = TlsLayer(tls_context(), Upper(), server_side=True)
    server.transport = Wire()
    server.transport.abortConnection = lambda: closed.append(True)
    server.connectionMade()
    server.dataReceived(b"GET / HTTP/1.1\r\n\r\n")
    assert closed == [True]
