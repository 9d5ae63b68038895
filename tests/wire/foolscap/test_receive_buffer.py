"""The receive buffer compared with Foolscap's own, which it replaces."""

from __future__ import annotations

import tracemalloc
from typing import Any

from foolscap.stringchain import StringChain
from hypothesis import given
from hypothesis import strategies as st

from grid.wire.foolscap.receive_buffer import ReceiveBuffer

_STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.binary(max_size=40)),
        st.tuples(st.just("appendleft"), st.binary(max_size=40)),
        st.tuples(st.just("popleft"), st.integers(0, 90)),
        st.tuples(st.just("put back"), st.integers(1, 65), st.integers(0, 65)),
        st.tuples(st.just("clear")),
        st.tuples(st.just("collect"), st.integers(0, 30), st.integers(1, 100)),
    ),
    max_size=40,
)


@given(steps=_STEPS)
def test_buffer_when_driven_as_foolscap_drives_its_own_then_gives_the_same(steps: list[tuple[Any, ...]]) -> None:
    ours, theirs = ReceiveBuffer(), StringChain()
    for name, *arguments in steps:
        if name == "collect":
            ours.collect(*arguments)
        elif name == "put back":
            count, skipped = arguments
            taken = ours.popleft(count)
            assert taken == theirs.popleft(count)
            ours.appendleft(taken[skipped:])
            theirs.appendleft(taken[skipped:])
        elif name == "popleft" and not len(theirs):
            assert ours.popleft(*arguments) == b""
        else:
            assert getattr(ours, str(name))(*arguments) == getattr(theirs, str(name))(*arguments)
        assert len(ours) == len(theirs)
    rest = theirs.popleft(len(theirs)) if len(theirs) else b""
    assert ours.peek(7) == rest[: len(ours.peek(7))]
    assert ours.popleft(10_000) == rest


def test_buffer_when_a_prefix_is_put_back_then_the_piece_is_not_copied() -> None:
    buffer = ReceiveBuffer()
    piece = bytes(100_000)
    buffer.append(piece)
    prefix = buffer.popleft(65)
    buffer.appendleft(prefix[5:])
    buffer.popleft(10)
    assert buffer._pieces[0] is piece
    assert len(buffer) == 100_000 - 15


def test_buffer_when_a_whole_piece_is_taken_then_it_is_the_same_object() -> None:
    buffer = ReceiveBuffer()
    piece = bytes(1000)
    buffer.append(piece)
    assert buffer.popleft(1000) is piece
    assert len(buffer) == 0


def test_long_string_when_its_length_is_known_is_in_memory_once() -> None:
    buffer = ReceiveBuffer()
    size, piece = 8 * 2**20, bytes(2**16)
    buffer.append(b"head" + piece)
    buffer.collect(4, size)
    tracemalloc.start()
    try:
        for _ in range(size // len(piece)):
            buffer.append(bytes(2**16))
        first = buffer.popleft(65)
        buffer.appendleft(first[4:])
        assert len(buffer.popleft(size)) == size
        assert tracemalloc.get_traced_memory()[1] < 1.3 * size
    finally:
        tracemalloc.stop()
    assert buffer.popleft(100_000) == piece


def test_long_string_when_it_comes_in_pieces_then_its_room_doubles() -> None:
    buffer = ReceiveBuffer()
    size, piece = 8 * 2**20, bytes(2**16)
    buffer.append(piece)
    buffer.collect(0, size)
    rooms = set()
    for come in range(2 * len(piece), size + 1, len(piece)):
        buffer.append(piece)
        assert buffer._string is not None
        room = buffer._string._bytes.getbuffer().nbytes
        assert come <= room <= min(size, 2 * come)
        rooms.add(room)
    assert len(rooms) <= 8
