from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from grid.wire.connections.sockets import CLIENTS_CHUNK as CHUNK_SIZE
from grid.wire.http.format.outbox import Outbox


class Socket:
    """Takes one write whenever it has room, and is full after each."""

    def __init__(self) -> None:
        self.taken: list[bytes] = []
        self.outbox: Outbox

    def write(self, data: bytes) -> None:
        self.taken.append(data)
        self.outbox.pause()


@given(st.lists(st.lists(st.integers(0, 3 * CHUNK_SIZE // 2), max_size=4), max_size=4))
def test_pieces_when_the_socket_is_slow_leave_in_order_and_in_chunks(pushes: list[list[int]]) -> None:
    socket = Socket()
    socket.outbox = outbox = Outbox(socket)
    expected = b""
    for number, sizes in enumerate(pushes):
        pieces = [bytes([number + 1]) * size for size in sizes]
        expected += b"".join(pieces)
        outbox.push(pieces)
    while not outbox.is_empty:
        outbox.resume()
    assert b"".join(socket.taken) == expected
    assert all(len(chunk) <= CHUNK_SIZE for chunk in socket.taken)
    assert len(socket.taken) <= len(expected) // CHUNK_SIZE + 1 + len(pushes)


def test_pieces_when_cleared_are_not_sent() -> None:
    socket = Socket()
    socket.outbox = outbox = Outbox(socket)
    outbox.push([bytes(CHUNK_SIZE), b"more"])
    outbox.clear()
    outbox.resume()
    assert b"".join(socket.taken) == bytes(CHUNK_SIZE)
    assert outbox.is_empty
