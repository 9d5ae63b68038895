from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grid.errors import FormatError
from grid.ports import Range, ShareNumber, ShareWrite
from grid.wire.http.format.frames import (
    END_FRAME,
    FRAME,
    RECORD,
    AnswerParser,
    Frame,
    pack_answer,
    pack_write,
    parse_write_records,
)
from grid.wire.http.server.pieces import partition


def number(value: int) -> ShareNumber:
    return ShareNumber(value)


def frame(kind: int, share: int, count: int, data: bytes = b"") -> bytes:
    return FRAME.pack(kind, share, count) + data


ASKED = {number(1): [(0, 3), (9, 2)], number(4): [(5, 4)]}
ANSWER = {number(1): [b"abc", b"d"], number(4): [b""]}


def parse(data: bytes, sizes: list[int] | None = None, wants: object = ASKED) -> dict[int, list[bytes]]:
    parser = AnswerParser(wants)  # type: ignore[arg-type]
    position = 0
    for size in [*(sizes or ()), len(data)]:
        parser.feed(data[position : position + size])
        position += size
    return {int(share): [bytes(piece) for piece in pieces] for share, pieces in parser.finish().items()}


@given(st.lists(st.integers(1, 5), max_size=60))
def test_answer_when_fed_in_any_pieces_is_the_same(sizes: list[int]) -> None:
    assert parse(b"".join(pack_answer(ANSWER)), sizes) == ANSWER


def test_answer_when_a_range_comes_in_parts_is_joined() -> None:
    coded = (
        frame(Frame.SHARE, 1, 2)
        + frame(Frame.DATA, 1, 1, b"a")
        + frame(Frame.DATA, 1, 1, b"b")
        + frame(Frame.LAST, 1, 0)
        + frame(Frame.LAST, 1, 2, b"cd")
        + END_FRAME
    )
    assert parse(coded) == {1: [b"ab", b"cd"]}


@pytest.mark.parametrize(
    "coded",
    [
        frame(Frame.SHARE, 2, 1) + END_FRAME,
        frame(Frame.SHARE, 1, 1) + END_FRAME,
        frame(Frame.SHARE, 2, 0) + END_FRAME,
        frame(Frame.SHARE, 1, 0) + frame(Frame.LAST, 1, 1, b"1") + END_FRAME,
        frame(Frame.SHARE, 4, 1) + END_FRAME,
        frame(Frame.SHARE, 4, 1) + frame(Frame.LAST, 4, 5, b"12345") + END_FRAME,
        frame(Frame.SHARE, 4, 1) + frame(Frame.DATA, 4, 3, b"123") + frame(Frame.LAST, 4, 2, b"45") + END_FRAME,
        frame(Frame.SHARE, 4, 1) + frame(Frame.LAST, 1, 1, b"1") + END_FRAME,
        frame(Frame.SHARE, 4, 1) + frame(Frame.LAST, 4, 1, b"1") + frame(Frame.LAST, 4, 1, b"1") + END_FRAME,
        frame(Frame.SHARE, 4, 1) + frame(Frame.DATA, 4, 1, b"1") + END_FRAME,
        frame(Frame.SHARE, 4, 1) + frame(Frame.DATA, 4, 0) + END_FRAME,
        frame(Frame.LAST, 4, 1, b"1") + END_FRAME,
        2 * (frame(Frame.SHARE, 4, 1) + frame(Frame.LAST, 4, 1, b"1")) + END_FRAME,
        frame(9, 0, 0) + END_FRAME,
        END_FRAME + END_FRAME,
    ],
)
def test_answer_when_it_is_not_what_was_asked_for_is_refused(coded: bytes) -> None:
    with pytest.raises(FormatError):
        parse(coded)


@given(st.data())
def test_answer_when_cut_short_is_refused(data: st.DataObject) -> None:
    coded = b"".join(pack_answer(ANSWER))
    with pytest.raises(FormatError):
        parse(coded[: data.draw(st.integers(0, len(coded) - 1))])


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5), st.integers(0, 9), st.binary(max_size=4))))
def test_answer_when_arbitrary_is_parsed_or_refused(frames: list[tuple[int, int, int, bytes]]) -> None:
    try:
        parse(b"".join(frame(*item) for item in frames))
    except FormatError:
        pass


def test_find_answer_when_data_is_left_out_has_none() -> None:
    parser = AnswerParser(None, [(0, 4)])
    parser.feed(b"".join(pack_answer({number(3): [], number(7): [b"data"]})))
    assert {int(share): list(map(bytes, pieces)) for share, pieces in parser.finish().items()} == {3: [], 7: [b"data"]}


def test_write_when_packed_has_its_records_and_its_data() -> None:
    pieces, size = pack_write([ShareWrite(number(1), 5, [b"ab", b"c"]), ShareWrite(number(2), 0, [b"d"])])
    coded = b"".join(pieces)
    assert len(coded) == size
    assert parse_write_records(coded[2 : 2 + 2 * RECORD.size]) == [(1, 5, 3), (2, 0, 1)]
    assert coded[2 + 2 * RECORD.size :] == b"abcd"
    with pytest.raises(FormatError):
        parse_write_records(coded[2:-1])


RANGES = st.lists(st.tuples(st.integers(0, 100), st.integers(0, 50)), min_size=1, max_size=4)


@given(st.dictionaries(st.integers(0, 9).map(number), RANGES, max_size=4), st.integers(1, 30))
def test_partition_when_joined_is_the_request(wants: dict[ShareNumber, list[Range]], size: int) -> None:
    groups = list(partition(wants, lambda: size))
    assert [is_last for _, is_last in groups] == [False] * (len(groups) - 1) + [True]
    joined: dict[ShareNumber, list[Range]] = {}
    is_open = False
    for parts, _ in groups:
        assert sum(part.length for part in parts) <= size
        for part in parts:
            assert part.begins_share == (part.share_number not in joined)
            ranges = joined.setdefault(part.share_number, [])
            if is_open:
                offset, length = ranges.pop()
                assert part.offset == offset + length
                ranges.append((offset, length + part.length))
            else:
                ranges.append((part.offset, part.length))
            is_open = not part.ends_range
    assert joined == wants


def test_answer_with_a_share_whose_ranges_are_left_out_has_it_without_data() -> None:
    parser = AnswerParser({ShareNumber(4): [(0, 5)]})
    parser.feed(frame(Frame.SHARE, 4, 0) + END_FRAME)
    assert parser.finish() == {4: []}
