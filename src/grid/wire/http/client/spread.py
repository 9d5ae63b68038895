"""Splits one long message into several, for parallel connections over a long line. Pure.

An idle connection may send some 15 kB before the first acknowledgment, twice as much before the next, and so on. So a block
of 350 kB takes five round trips, but only three over four connections. [docs/decisions/0291-parts-over-connections.md]
Longer messages are cut into pieces that take the next free connection, so that one that has become slow holds up little.
[docs/decisions/0513-pieces-take-turns.md]

It owns when and where a message is split, and how the answers are joined. It sends nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum

from grid.ports import Buffer, Range, ShareNumber, ShareWrite
from grid.values import define, field

LONG_LINE_S = 0.02
"""Split messages only if the round trip is at least this long. On shorter lines, an extra message costs more than the wait."""

PART_BYTES = 64 * 1024
"""Least bytes in a part: fewer would fit into the first windows of one connection."""

MUCH_SLOWER = 4
"""A connection that was slower by this factor than another one takes long messages only if no other is idle."""

MOST_PARTS = 4
"""Enough for a block of 350 kB to come within three round trips."""

KEPT_FREE = 2
"""Connections to a server that are kept for short messages."""

PIECE_BYTES = 288 * 1024
"""Bytes of a piece: a batch of a put is six pieces per server."""

STILL_S = 0.5
"""If nothing long was sent for this time, a line starts slowly again: systems close their windows after some idle round trips."""


class Direction(Enum):
    """The direction of the long part of a message."""

    DOWN = "down"
    UP = "up"


TURNS = {Direction.DOWN: 6, Direction.UP: MOST_PARTS}
"""Parts on their way at once between this process and one server. Parts of six writes to each of ten servers were more than routers keep
for a line of 1 Gbit/s, so some were lost."""


@define(eq=False)
class Line:
    """What is known of the line to one server.

    round_trip_s: the shortest that the system has measured; None if unknown. moved_at: when the last long message ended.
    """

    round_trip_s: float | None = None
    moved_at: dict[Direction, float] = field(factory=dict)

    @property
    def is_long(self) -> bool:
        """Whether waiting for the line costs more than messages and connections do."""
        return self.round_trip_s is not None and self.round_trip_s >= LONG_LINE_S

    def part_count(self, direction: Direction, size: int, free: int, now: float) -> int:
        """How many connections should carry a message of `size` bytes, if `free` are available."""
        if not self.is_long or not self._is_still(direction, now):
            return 1
        return max(1, min(MOST_PARTS, size // PART_BYTES, free - KEPT_FREE))

    def piece_count(self, direction: Direction, size: int, now: float) -> int:
        """In how many pieces a message of `size` bytes should take turns at the connections; 1: it should not."""
        fewest = MOST_PARTS if self._is_still(direction, now) else 1.5
        return -(-size // PIECE_BYTES) if self.is_long and size >= fewest * PIECE_BYTES else 1

    def _is_still(self, direction: Direction, now: float) -> bool:
        return now - self.moved_at.get(direction, float("-inf")) >= STILL_S

    def moved(self, direction: Direction, size: int, now: float) -> None:
        """Note that a message of that many bytes went over the line."""
        if size >= PART_BYTES:
            self.moved_at[direction] = now


def split_wants(wants: Mapping[ShareNumber, Sequence[Range]], count: int) -> list[dict[ShareNumber, list[Range]]]:
    """Split the wanted ranges into at most `count` parts of about equal size."""
    most = max(1, -(-sum(length for ranges in wants.values() for _, length in ranges) // count))
    parts: list[dict[ShareNumber, list[Range]]] = [{}]
    room = most
    for number, ranges in wants.items():
        for offset, length in ranges:
            while length > room and len(parts) < count:
                if room:
                    parts[-1].setdefault(number, []).append((offset, room))
                offset, length = offset + room, length - room
                parts.append({})
                room = most
            parts[-1].setdefault(number, []).append((offset, length))
            room = max(0, room - length)
    return parts


def join_answers(
    ranges: Sequence[Range], parts: Sequence[Sequence[Range]], answers: Sequence[Sequence[Buffer] | None]
) -> list[Buffer] | None:
    """Join the answers to all parts into the ranges of one share.

    None if an answer does not have the share; empty if one left out the data.
    """
    pieces: list[Buffer] = []
    for part, answer in zip(parts, answers, strict=True):
        if answer is None:
            return None
        pieces += answer
        if len(answer) != len(part):
            return []
    at = iter(zip((taken for part in parts for taken in part), pieces, strict=True))
    joined: list[Buffer] = []
    for _, length in ranges:
        (_, come), piece = next(at)
        held = [piece]
        while come < length:
            (_, more), piece = next(at)
            held.append(piece)
            come += more
        joined.append(held[0] if len(held) == 1 else b"".join(held))
    return joined


def split_writes(writes: Sequence[ShareWrite], count: int) -> list[list[ShareWrite]]:
    """Split writes into at most `count` parts of about equal size: the same bytes, offsets and order. Data that is split becomes views."""
    most = max(1, -(-sum(write.size for write in writes) // count))
    parts: list[list[ShareWrite]] = [[]]
    room = most
    for write in writes:
        offset = write.offset
        pieces: list[Buffer] = []
        for piece in write.pieces:
            view = memoryview(piece)
            while len(view) > room:
                pieces.append(view[:room])
                parts[-1].append(ShareWrite(write.share_number, offset, pieces))
                offset += sum(len(taken) for taken in pieces)
                view, pieces, room = view[room:], [], most
                parts.append([])
            pieces.append(view)
            room -= len(view)
        parts[-1].append(ShareWrite(write.share_number, offset, pieces))
    return [part for part in parts if part]
