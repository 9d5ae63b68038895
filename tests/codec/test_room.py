"""Room that is not wiped."""

from __future__ import annotations

import pytest

from grid.codec.room import unwiped


@pytest.mark.parametrize("size", [0, 1, 2**21 + 3])
def test_room_when_written_holds_what_was_written(size: int) -> None:
    room = unwiped(size)
    assert len(room) == size
    assert room.format == "B"
    room[:] = b"\x5a" * size
    assert bytes(room) == b"\x5a" * size
