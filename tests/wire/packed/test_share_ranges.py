"""The packed form of batched reads and writes."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grid.errors import FormatError
from grid.limits import READ_CALL_BYTES, READ_CALL_RANGES
from grid.ports import ShareNumber, ShareWrite
from grid.wire.packed import share_ranges

SHARES = st.integers(0, 255).map(ShareNumber)
RANGES = st.lists(st.tuples(st.integers(0, 2**64 - 1), st.integers(0, 1000)), min_size=1, max_size=5)


def number(value: int) -> ShareNumber:
    return ShareNumber(value)


@given(st.dictionaries(SHARES, RANGES, max_size=10))
def test_wants_when_packed_and_parsed_then_are_the_same(wants: dict[ShareNumber, list[tuple[int, int]]]) -> None:
    assert share_ranges.parse_wants(share_ranges.pack_wants(wants)) == wants


@given(RANGES)
def test_ranges_when_packed_and_parsed_then_are_the_same(ranges: list[tuple[int, int]]) -> None:
    assert share_ranges.parse_ranges(share_ranges.pack_ranges(ranges)) == ranges


@given(st.dictionaries(SHARES, st.lists(st.binary(max_size=50), max_size=5), max_size=10))
def test_answer_when_packed_and_parsed_then_is_the_same(answer: dict[ShareNumber, list[bytes]]) -> None:
    parsed = share_ranges.parse_answer(share_ranges.pack_answer(answer))
    assert {share: [bytes(piece) for piece in pieces] for share, pieces in parsed.items()} == answer


@given(st.lists(st.tuples(SHARES, st.integers(0, 2**64 - 1), st.lists(st.binary(max_size=9), max_size=3)), max_size=5))
def test_writes_when_packed_and_parsed_then_are_the_same(writes: list[tuple[ShareNumber, int, list[bytes]]]) -> None:
    packed = share_ranges.pack_writes([ShareWrite(share, offset, pieces) for share, offset, pieces in writes])
    parsed = [
        (write.share_number, write.offset, bytes(write.pieces[0])) for write in share_ranges.parse_writes(*packed)
    ]
    assert parsed == [(share, offset, b"".join(pieces)) for share, offset, pieces in writes]


def test_wants_when_they_name_no_ranges_then_are_empty() -> None:
    assert share_ranges.parse_wants(b"") == {}
    assert share_ranges.parse_ranges(b"") == []


def test_wants_when_as_many_as_allowed_then_are_accepted() -> None:
    wants = {number(3): [(0, 1)] * READ_CALL_RANGES}
    assert share_ranges.parse_wants(share_ranges.pack_wants(wants)) == wants


def test_wants_when_more_than_allowed_then_are_refused() -> None:
    with pytest.raises(FormatError):
        share_ranges.parse_wants(share_ranges.pack_wants({number(3): [(0, 1)] * (READ_CALL_RANGES + 1)}))


def test_wants_when_they_ask_for_too_much_in_sum_then_are_refused() -> None:
    whole = {number(0): [(0, READ_CALL_BYTES)]}
    assert share_ranges.parse_wants(share_ranges.pack_wants(whole)) == whole
    with pytest.raises(FormatError):
        share_ranges.parse_wants(share_ranges.pack_wants({**whole, number(1): [(0, 1)]}))


def test_wants_when_cut_within_a_record_then_are_refused() -> None:
    packed = share_ranges.pack_wants({number(0): [(1, 2)]})
    for end in range(1, len(packed)):
        with pytest.raises(FormatError):
            share_ranges.parse_wants(packed[:end])


def test_ranges_when_they_name_a_share_then_are_refused() -> None:
    with pytest.raises(FormatError):
        share_ranges.parse_ranges(share_ranges.pack_wants({number(1): [(1, 2)]}))


@pytest.mark.parametrize("range_", [(-1, 1), (2**64, 1), (0, -1), (0, 2**32)])
def test_pack_wants_when_a_number_is_out_of_bounds_then_raises_value_error(range_: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="out of bounds"):
        share_ranges.pack_wants({number(0): [range_]})


def test_answer_when_cut_or_extended_then_is_refused() -> None:
    packed = share_ranges.pack_answer({number(1): [b"ab", b""], number(9): [b"cde"]})
    for end in range(len(packed)):
        with pytest.raises(FormatError):
            share_ranges.parse_answer(packed[:end])
    with pytest.raises(FormatError):
        share_ranges.parse_answer(packed + b"\0")


def test_answer_when_a_share_comes_twice_then_is_refused() -> None:
    head = b"\0\1" + b"\5\0\0"
    assert share_ranges.parse_answer(head) == {5: []}
    with pytest.raises(FormatError):
        share_ranges.parse_answer(b"\0\2" + b"\5\0\0" * 2)


def test_answer_when_it_claims_more_shares_than_there_are_then_is_refused() -> None:
    with pytest.raises(FormatError):
        share_ranges.parse_answer(b"\xff\xff")


def test_writes_when_lengths_do_not_add_up_then_are_refused() -> None:
    records, data = share_ranges.pack_writes([ShareWrite(number(0), 5, [b"abc"])])
    for wrong in (data[:-1], data + b"x"):
        with pytest.raises(FormatError):
            share_ranges.parse_writes(records, wrong)
    with pytest.raises(FormatError):
        share_ranges.parse_writes(records[:-1], data)


@given(st.binary(max_size=200))
def test_parsers_when_given_any_bytes_then_raise_nothing_but_format_error(data: bytes) -> None:
    for parse in (share_ranges.parse_wants, share_ranges.parse_ranges, share_ranges.parse_answer):
        with contextlib.suppress(FormatError):
            parse(data)
    with contextlib.suppress(FormatError):
        share_ranges.parse_writes(data, data)
