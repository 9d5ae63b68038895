from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grid.ports import Range, ShareNumber, ShareWrite
from grid.wire.http.client.spread import (
    LONG_LINE_S,
    MOST_PARTS,
    PART_BYTES,
    PIECE_BYTES,
    STILL_S,
    Direction,
    Line,
    join_answers,
    split_wants,
    split_writes,
)

RANGES = st.lists(st.tuples(st.integers(0, 300), st.integers(0, 90)), min_size=1, max_size=8)
SHARE = bytes(range(256))


def cut(ranges: list[Range]) -> list[bytes]:
    return [SHARE[offset : offset + length] for offset, length in ranges]


@pytest.mark.parametrize(
    ("round_trip_s", "size", "free", "count"),
    [
        (None, 2**20, 8, 1),
        (LONG_LINE_S / 2, 2**20, 8, 1),
        (0.1, 2 * PART_BYTES - 1, 8, 1),
        (0.1, 2 * PART_BYTES, 8, 2),
        (0.1, 2**20, 8, MOST_PARTS),
        (0.1, 2**20, 5, 3),
        (0.1, 2**20, 0, 1),
    ],
)
def test_part_count_when_the_line_is_long_leaves_connections_free(
    round_trip_s: float | None, size: int, free: int, count: int
) -> None:
    assert Line(round_trip_s=round_trip_s).part_count(Direction.DOWN, size, free, 0.0) == count


def test_part_count_when_the_line_has_just_been_used_is_one_in_that_direction() -> None:
    line = Line(round_trip_s=0.1)
    line.moved(Direction.DOWN, PART_BYTES - 1, 9.9)
    assert line.part_count(Direction.DOWN, 2**20, 8, 10.0) == MOST_PARTS
    line.moved(Direction.DOWN, PART_BYTES, 10.0)
    assert line.part_count(Direction.DOWN, 2**20, 8, 10.1) == 1
    assert line.part_count(Direction.UP, 2**20, 8, 10.1) == MOST_PARTS
    assert line.part_count(Direction.DOWN, 2**20, 8, 10.0 + STILL_S) == MOST_PARTS


@pytest.mark.parametrize(
    ("round_trip_s", "size", "still", "moving"),
    [
        (None, 2**24, 1, 1),
        (LONG_LINE_S / 2, 2**24, 1, 1),
        (LONG_LINE_S, PIECE_BYTES + PIECE_BYTES // 2 - 1, 1, 1),
        (LONG_LINE_S, PIECE_BYTES + PIECE_BYTES // 2, 1, 2),
        (LONG_LINE_S, 2 * PIECE_BYTES, 1, 2),
        (LONG_LINE_S, MOST_PARTS * PIECE_BYTES - 1, 1, MOST_PARTS),
        (LONG_LINE_S, 6 * PIECE_BYTES, 6, 6),
        (0.1, 20 * PIECE_BYTES + 1, 21, 21),
    ],
)
def test_piece_count_when_the_message_is_long_is_its_size_in_pieces(
    round_trip_s: float | None, size: int, still: int, moving: int
) -> None:
    line = Line(round_trip_s=round_trip_s)
    assert line.piece_count(Direction.UP, size, 10.0) == still
    line.moved(Direction.UP, PART_BYTES, 10.0)
    assert line.piece_count(Direction.UP, size, 10.1) == moving
    assert line.piece_count(Direction.DOWN, size, 10.1) == still


@given(st.dictionaries(st.integers(0, 5).map(ShareNumber), RANGES, min_size=1, max_size=4), st.integers(1, 5))
def test_wants_when_split_are_even_and_join_to_what_was_asked_for(
    wants: dict[ShareNumber, list[Range]], count: int
) -> None:
    parts = split_wants(wants, count)
    total = sum(length for ranges in wants.values() for _, length in ranges)
    assert 1 <= len(parts) <= count
    for part in parts:
        assert sum(length for ranges in part.values() for _, length in ranges) <= max(1, -(-total // count))
    for number, ranges in wants.items():
        of_share = [part[number] for part in parts if number in part]
        joined = join_answers(ranges, of_share, [cut(taken) for taken in of_share])
        assert joined is not None and [bytes(piece) for piece in joined] == cut(ranges)


def test_answers_when_one_lacks_the_share_or_its_data_join_to_none_or_to_nothing() -> None:
    ranges = [(0, 10)]
    parts = [[(0, 5)], [(5, 5)]]
    assert join_answers(ranges, parts, [[b"01234"], None]) is None
    assert join_answers(ranges, parts, [[b"01234"], []]) == []
    assert join_answers(ranges, parts, [[b"01234"], [b"56789"]]) == [b"0123456789"]


@given(
    st.lists(st.lists(st.binary(max_size=70), min_size=1, max_size=4), min_size=1, max_size=4),
    st.integers(1, 5),
)
def test_writes_when_split_are_even_and_put_the_same_bytes_in_the_same_places(
    shares: list[list[bytes]], count: int
) -> None:
    writes = [ShareWrite(ShareNumber(number), 7, pieces) for number, pieces in enumerate(shares)]
    parts = split_writes(writes, count)
    most = max(1, -(-sum(write.size for write in writes) // count))
    assert all(sum(write.size for write in part) <= most for part in parts)
    stored: dict[int, bytearray] = {number: bytearray(b"-" * 300) for number in range(len(shares))}
    for write in (write for part in parts for write in part):
        data = b"".join(bytes(piece) for piece in write.pieces)
        stored[write.share_number][write.offset : write.offset + len(data)] = data
    for number, pieces in enumerate(shares):
        data = b"".join(pieces)
        assert stored[number] == b"-" * 7 + data + b"-" * (293 - len(data))
