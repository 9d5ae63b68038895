"""The kernel's counts for connections."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable

import pytest

from perf.sampling.traffic import Traffic, connections, difference


@pytest.fixture
def pair() -> tuple[socket.socket, socket.socket]:
    """Two ends of a connection, and nobody listens any more."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        near = socket.create_connection(listener.getsockname())
        far, _ = listener.accept()
    return near, far


def settled(look: Callable[[], Traffic | None], wanted: tuple[int, int]) -> Traffic | None:
    """The counts once they are as wanted: the last bytes are counted when they are acknowledged."""
    for _ in range(500):
        found = look()
        if found is not None and (found.bytes_out, found.bytes_in) == wanted:
            return found
        time.sleep(0.01)
    return look()


def test_connections_count_bytes_both_ways_of_the_end_asked_for(pair: tuple[socket.socket, socket.socket]) -> None:
    near, far = pair
    with near, far:
        mine, others = [os.getpid()], [far.getsockname()[1]]
        before = connections(mine, others)
        near.sendall(b"x" * 1000)
        assert len(far.recv(1000, socket.MSG_WAITALL)) == 1000
        far.sendall(b"y" * 70)
        assert len(near.recv(70, socket.MSG_WAITALL)) == 70
        found = settled(lambda: difference(before, connections(mine, others)), (1000, 70))
        assert found == Traffic(bytes_out=1000, bytes_in=70, segments_out=1, segments_in=1)


def test_difference_when_a_connection_has_gone_is_unknown(pair: tuple[socket.socket, socket.socket]) -> None:
    near, far = pair
    with far, near:
        before = connections([os.getpid()])
    assert difference(before, connections([os.getpid()])) is None


def test_difference_counts_a_new_connection_from_its_beginning() -> None:
    new = Traffic(bytes_out=5, bytes_in=6, segments_out=1, segments_in=2)
    assert difference({}, {7: new}) == new
    assert difference({7: new}, {7: new}) == Traffic()
