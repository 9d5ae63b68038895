"""Writing answers to sockets: the pieces are small if there are many answers."""

from __future__ import annotations

from typing import Any

import pytest
from twisted.internet.defer import Deferred

from grid.gateway.http.writer import LEAST_PIECE, TOGETHER, Writer, piece_size
from tests.support.virtual_time import VirtualClock


class Socket:
    """An outlet that keeps everything written to it."""

    def __init__(self) -> None:
        self.clock: Any = VirtualClock()
        self.pieces: list[bytes] = []
        self.heads = 0

    def begin_answer(self) -> None:
        """A head."""
        self.heads += 1

    def write(self, data: bytes) -> None:
        """Bytes."""
        self.pieces.append(data)

    def abort(self) -> None:
        """Nothing here aborts."""
        raise AssertionError


@pytest.mark.parametrize(("answers", "size"), [(0, TOGETHER), (1, TOGETHER), (4, TOGETHER // 4), (10**6, LEAST_PIECE)])
def test_piece_when_there_are_many_answers_is_smaller(answers: int, size: int) -> None:
    assert piece_size(answers) == size


def test_bytes_when_the_client_pauses_wait_in_one_place_and_continue_in_order() -> None:
    socket = Socket()
    writer = Writer(socket, lambda: 10)
    data = bytes(range(25))
    task = Deferred.fromCoroutine(writer.write(memoryview(data)))
    assert task.called and [len(piece) for piece in socket.pieces] == [10, 10, 5]
    writer.pauseProducing()
    task = Deferred.fromCoroutine(writer.write(data))
    assert not task.called and len(socket.pieces) == 3
    writer.resumeProducing()
    assert task.called and b"".join(socket.pieces) == data * 2 and writer.written == 50


def test_empty_write_begins_no_answer_but_waits_for_room() -> None:
    socket = Socket()
    writer = Writer(socket, lambda: 10)
    writer.pauseProducing()
    task = Deferred.fromCoroutine(writer.write(b""))
    assert not task.called
    writer.resumeProducing()
    assert task.called and socket.heads == 0
