"""Counts what one answer will hold, share by share, and takes the room for each share before it is read. Blocking.

An answer that does not fit is measured to its end all the same, without reading any more, so that the caller knows how
much room to wait for. It owns no memory: the room is its caller's, who gives it back.
"""

from __future__ import annotations

from grid.errors import NoRoomError
from grid.limits import ANSWER_RANGE_BYTES
from grid.ports import Room


class AnswerSize:
    """The size of one answer."""

    def __init__(self, room: Room | None) -> None:
        """room: None admits any size."""
        self._room = room
        self._is_refused = False
        self._size = 0

    def admits(self, size: int, range_count: int) -> bool:
        """Whether a share's ranges, of that many bytes together, may be read now."""
        cost = size + ANSWER_RANGE_BYTES * (range_count + 1)
        self._size += cost
        if not self._is_refused and self._room is not None:
            self._is_refused = not self._room.take(cost)
        return not self._is_refused

    def require(self) -> None:
        """NoRoomError if something was not admitted."""
        if self._is_refused:
            raise NoRoomError(self._size)
