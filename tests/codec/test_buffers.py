"""Buffers that are not zeroed."""

from __future__ import annotations

import pytest

from grid.codec.buffers import unwiped, unwiped_string


@pytest.mark.parametrize("size", [0, 1, 2**21 + 3])
def test_room_when_written_holds_what_was_written(size: int) -> None:
    room = unwiped(size)
    assert len(room) == size
    assert room.format == "B"
    room[:] = b"\x5a" * size
    assert bytes(room) == b"\x5a" * size


@pytest.mark.parametrize("size", [0, 1, 2, 2**21 + 3])
def test_string_when_written_by_its_view_then_is_a_byte_string_with_that(size: int) -> None:
    string, view = unwiped_string(size)
    assert len(string) == len(view) == size
    assert view.format == "B"
    view[:] = b"\x5a" * size
    assert bytes(string) == b"\x5a" * size
    assert isinstance(string, bytes) or not size


def test_string_when_its_view_is_gone_then_stays_and_shares_nothing() -> None:
    first, view = unwiped_string(1)
    view[0] = 65
    del view
    second, other = unwiped_string(1)
    other[0] = 66
    assert (first, second) == (b"A", b"B")
    assert bytes([65]) == b"A"
