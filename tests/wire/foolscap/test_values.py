"""The values that cross the Foolscap wire. [spec wire 3, 4]"""

from __future__ import annotations

import contextlib

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from grid.errors import FormatError
from grid.limits import READ_CALL_BYTES
from grid.ports import ServerVersion, ShareNumber, TestWrite
from grid.wire.foolscap.values import (
    APPLICATION_KEY,
    BATCH_KEY,
    STORAGE_KEY,
    as_bytes,
    check_ranges,
    natural,
    pack_shares,
    pack_version,
    parse_test_write,
    parse_version,
    share_number,
    within_limits,
)

VERSION = ServerVersion(
    application="grid/1",
    maximum_immutable_share_size=2**64,
    maximum_mutable_share_size=5,
    available_space=7,
    batched_reads=True,
    batched_writes=True,
    batched_stores=True,
    batched_finds=True,
    packed_slots=True,
)


def test_version_when_packed_and_parsed_then_is_the_same() -> None:
    assert parse_version(pack_version(VERSION)) == VERSION


@pytest.mark.parametrize("is_read_only", [None, False, True])
def test_version_says_whether_the_server_is_read_only_if_it_knows(is_read_only: bool | None) -> None:
    version = evolve(VERSION, is_read_only=is_read_only)
    assert parse_version(pack_version(version)).is_read_only is is_read_only
    without = {key: value for key, value in pack_version(version).items() if key != BATCH_KEY}
    assert parse_version(without).is_read_only is None


def test_pack_version_when_packed_then_has_every_key_of_1_20() -> None:
    inner = pack_version(VERSION)[STORAGE_KEY]
    assert isinstance(inner, dict)
    assert inner.keys() == {
        b"maximum-immutable-share-size",
        b"maximum-mutable-share-size",
        b"available-space",
        b"tolerates-immutable-read-overrun",
        b"delete-mutable-shares-with-zero-length-writev",
        b"fills-holes-with-zero-bytes",
        b"prevents-read-past-end-of-share-data",
    }


def test_parse_version_when_no_extension_is_offered_then_offers_none() -> None:
    version = parse_version({STORAGE_KEY: {b"maximum-immutable-share-size": 9}, APPLICATION_KEY: b"tahoe-lafs/1.20.0"})
    assert not version.batched_reads
    assert not version.batched_writes
    assert not version.tolerates_read_overrun
    assert version.available_space == 9


def test_parse_version_when_the_bounds_offered_are_smaller_than_ours_then_offers_none() -> None:
    packed = {**pack_version(VERSION), BATCH_KEY: {b"read-bytes": 1, b"read-ranges": 1, b"write-bytes": 1}}
    version = parse_version(packed)
    assert not version.batched_reads
    assert not version.batched_writes


@pytest.mark.parametrize(
    "value",
    [
        None,
        {},
        {STORAGE_KEY: 1},
        {STORAGE_KEY: {}, APPLICATION_KEY: "text"},
        {STORAGE_KEY: {b"available-space": -1}},
        {STORAGE_KEY: {b"available-space": "many"}},
        {STORAGE_KEY: {b"maximum-mutable-share-size": 2**65}},
    ],
)
def test_parse_version_when_it_makes_no_sense_then_refuses(value: object) -> None:
    with pytest.raises(FormatError):
        parse_version(value)


JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.binary(max_size=5),
    lambda inner: st.dictionaries(st.binary(max_size=5), inner, max_size=3) | st.lists(inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from([STORAGE_KEY, APPLICATION_KEY, BATCH_KEY]), JUNK))
def test_parse_version_when_given_anything_then_raises_nothing_but_format_error(value: dict[bytes, object]) -> None:
    with contextlib.suppress(FormatError):
        parse_version(value)


@pytest.mark.parametrize("number", [-1, 256, 2**63])
def test_share_number_when_no_share_has_it_then_refuses(number: int) -> None:
    with pytest.raises(FormatError):
        share_number(number)
    assert share_number(255) == 255


def test_natural_when_out_of_bounds_then_refuses() -> None:
    assert natural(2**64 - 1) == 2**64 - 1
    for wrong in (-1, 2**64):
        with pytest.raises(FormatError):
            natural(wrong)


def test_check_ranges_when_one_is_negative_then_refuses() -> None:
    assert check_ranges([(0, 1), (2, 0)]) == [(0, 1), (2, 0)]
    for wrong in ((-1, 1), (1, -1)):
        with pytest.raises(FormatError):
            check_ranges([(0, 1), wrong])


def test_parse_test_write_when_well_formed_then_drops_the_operator() -> None:
    parsed = parse_test_write([(0, 1, b"eq", b"x")], [(3, b"data")], None)
    assert parsed == TestWrite(tests=[(0, 1, b"x")], writes=[(3, b"data")], new_length=None)


def test_parse_test_write_when_hostile_then_refuses() -> None:
    for tests, writes, new_length in (
        ([(0, 1, b"ne", b"x")], [], None),
        ([(-1, 1, b"eq", b"x")], [], None),
        ([(0, -1, b"eq", b"x")], [], None),
        ([], [(-1, b"x")], None),
        ([], [], -1),
    ):
        with pytest.raises(FormatError):
            parse_test_write(tests, writes, new_length)


def test_within_limits_when_a_share_would_outgrow_the_answer_then_leaves_its_data_out() -> None:
    half = bytes(READ_CALL_BYTES // 2)
    kept = within_limits({ShareNumber(0): [half], ShareNumber(1): [half], ShareNumber(2): [b"x"]})
    assert [len(kept[ShareNumber(share)]) for share in range(3)] == [1, 1, 0]


def test_pack_shares_when_given_views_then_gives_bytes_in_lists() -> None:
    packed = pack_shares({ShareNumber(1): (memoryview(b"ab"), b"c")})
    assert packed == {1: [b"ab", b"c"]}
    assert type(packed[1][0]) is bytes


def test_as_bytes_when_one_byte_string_then_does_not_copy() -> None:
    data = b"some sample"
    assert as_bytes([data]) is data
    assert as_bytes([bytearray(b"a"), memoryview(b"b")]) == b"ab"
