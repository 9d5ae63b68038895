"""The packed form of slot calls: round trips, and everything else is refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grid.errors import FormatError
from grid.limits import MAX_SLOT_HEAD, READ_CALL_BYTES
from grid.ports import LeaseSecrets, Range, ShareNumber, SlotAnswer, SlotSecrets, TestWrite
from grid.wire.packed.slots import (
    is_read_bounded,
    pack_slot_answer,
    pack_slot_wants,
    pack_slot_write,
    parse_slot_answer,
    parse_slot_wants,
    parse_slot_write,
)

SECRETS = SlotSecrets(write_enabler=b"w" * 32, lease=LeaseSecrets(renew=b"r" * 32, cancel=b"c" * 32))
OFFSETS = st.integers(0, 2**64 - 1)
NUMBERS = st.integers(0, 255).map(ShareNumber)
WRITES = st.dictionaries(
    NUMBERS,
    st.builds(
        TestWrite,
        tests=st.lists(st.tuples(OFFSETS, OFFSETS, st.binary(max_size=9)), max_size=3),
        writes=st.lists(st.tuples(OFFSETS, st.binary(max_size=9)), max_size=3),
        new_length=st.none() | OFFSETS,
    ),
    max_size=3,
)
RANGES = st.lists(st.tuples(OFFSETS, st.integers(0, 1000)), max_size=3)


def number(value: int) -> ShareNumber:
    return ShareNumber(value)


def packed(writes: dict[ShareNumber, TestWrite], ranges: list[Range]) -> tuple[bytes, bytes]:
    made = pack_slot_write(SECRETS, writes, ranges)
    assert made is not None
    return made


@given(WRITES, RANGES)
def test_slot_write_when_packed_then_parses_to_the_same(
    writes: dict[ShareNumber, TestWrite], ranges: list[Range]
) -> None:
    assert parse_slot_write(*packed(writes, ranges)) == (SECRETS, writes, ranges)


@given(WRITES, RANGES, st.data())
def test_slot_write_when_cut_short_or_lengthened_then_is_refused(
    writes: dict[ShareNumber, TestWrite], ranges: list[Range], data: st.DataObject
) -> None:
    head, raw = packed(writes, ranges)
    with pytest.raises(FormatError):
        parse_slot_write(head[: data.draw(st.integers(0, len(head) - 1))], raw)
    for wrong_head, wrong_data in ((head + b"\0", raw), (head, raw + b"x"), (head, raw[:-1])):
        if (wrong_head, wrong_data) != (head, raw):
            with pytest.raises(FormatError):
                parse_slot_write(wrong_head, wrong_data)


@given(st.binary(max_size=300), st.binary(max_size=20))
def test_slot_write_when_random_then_parses_or_is_refused(head: bytes, data: bytes) -> None:
    try:
        parse_slot_write(head, data)
    except FormatError:
        pass


def test_slot_write_when_counts_are_huge_then_is_refused_before_anything_is_made() -> None:
    head, _ = packed({number(1): TestWrite(tests=[(0, 1, b"x")])}, [])
    for position in (96, 100, 103, 107):  # Counts of ranges, shares, tests and writes.
        wrong = head[:position] + b"\xff\xff" + head[position + 2 :]
        with pytest.raises(FormatError):
            parse_slot_write(wrong, b"")


def test_slot_write_when_a_share_is_there_twice_then_is_refused() -> None:
    head, _ = packed({number(1): TestWrite(), number(2): TestWrite()}, [])
    with pytest.raises(FormatError, match="twice"):
        parse_slot_write(head[:102] + head[102:].replace(b"\2", b"\1"), b"")


def test_slot_write_when_it_is_one_piece_then_its_data_are_not_copied() -> None:
    raw = bytes(range(256)) * 64
    _, data = packed({number(1): TestWrite(tests=[(0, 1, b"x")], writes=[(7, raw)])}, [])
    assert data is raw
    _, writes, _ = parse_slot_write(*packed({number(1): TestWrite(writes=[(7, raw)])}, []))
    ((_, view),) = writes[number(1)].writes
    assert isinstance(view, memoryview)
    assert view.obj is raw


@pytest.mark.parametrize(
    ("writes", "ranges"),
    [
        ({number(1): TestWrite(tests=[(0, MAX_SLOT_HEAD, bytes(MAX_SLOT_HEAD))])}, []),
        ({number(1): TestWrite(tests=[(2**64, 1, b"")])}, []),
        ({number(1): TestWrite(new_length=2**64)}, []),
        ({}, [(0, READ_CALL_BYTES)]),
        ({}, [(0, 2)] * 33),
    ],
)
def test_slot_write_when_the_form_is_too_narrow_then_is_not_packed(
    writes: dict[ShareNumber, TestWrite], ranges: list[Range]
) -> None:
    assert pack_slot_write(SECRETS, writes, ranges) is None


def test_slot_write_when_it_asks_for_more_ranges_than_an_answer_may_have_then_is_refused() -> None:
    head, _ = packed({}, [(0, 2)] * 32)
    more = head[:96] + (33).to_bytes(4, "big") + head[100:102] + head[102:118] + head[102:]
    with pytest.raises(FormatError, match="asks for more"):
        parse_slot_write(more, b"")


@pytest.mark.parametrize(
    ("numbers", "ranges", "is_bounded"),
    [
        ({0, 1}, [(0, READ_CALL_BYTES // 2)], True),
        ({0, 1}, [(0, READ_CALL_BYTES // 2 + 1)], False),
        ({0, 1}, [(0, 1)] * 4096, True),
        ({0, 1}, [(0, 1)] * 4097, False),
        (set(), [(0, READ_CALL_BYTES // 64)], True),
        (set(), [(0, READ_CALL_BYTES // 64 + 1)], False),
        (set(), [(0, 1)] * 128, True),
        (set(), [(0, 1)] * 129, False),
    ],
)
def test_slot_read_when_it_may_bring_too_much_then_is_not_packed(
    numbers: set[int], ranges: list[Range], is_bounded: bool
) -> None:
    assert is_read_bounded(frozenset(map(number, numbers)), ranges) is is_bounded


def test_slot_write_when_it_asks_for_more_than_an_answer_may_have_then_is_refused() -> None:
    head, _ = packed({}, [(0, 1)])
    with pytest.raises(FormatError, match="asks for more"):
        parse_slot_write(head[:-8] + (2**40).to_bytes(8, "big"), b"")


@given(st.booleans(), st.dictionaries(NUMBERS, st.lists(st.binary(max_size=5), max_size=3), max_size=3))
def test_slot_answer_when_packed_then_parses_to_the_same(passed: bool, data: dict[ShareNumber, list[bytes]]) -> None:
    answer = parse_slot_answer(b"".join(pack_slot_answer(SlotAnswer(passed=passed, data=data))))
    assert answer.passed is passed
    assert {share: [bytes(piece) for piece in pieces] for share, pieces in answer.data.items()} == data


@pytest.mark.parametrize("answer", [b"", b"\2\0\0", b"\1", b"\1\0", b"\1\0\0x", b"\1\0\1"])
def test_slot_answer_when_malformed_then_is_refused(answer: bytes) -> None:
    with pytest.raises(FormatError):
        parse_slot_answer(answer)


@pytest.mark.parametrize("numbers", [frozenset(), frozenset({number(0), number(255)})])
def test_slot_wants_when_packed_then_parse_to_the_same(numbers: frozenset[ShareNumber]) -> None:
    assert parse_slot_wants(pack_slot_wants(numbers, [(0, 5), (7, 0)])) == (numbers, [(0, 5), (7, 0)])


@pytest.mark.parametrize("data", [b"", b"\0", b"\0\1", b"\1\1" + bytes(257), b"\0\0" + b"x"])
def test_slot_wants_when_malformed_then_are_refused(data: bytes) -> None:
    with pytest.raises(FormatError):
        parse_slot_wants(data)
