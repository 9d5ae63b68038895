"""The extension block: its bytes, and refusals."""

from __future__ import annotations

from typing import Any

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from grid.codec.netstring import pack_netstring
from grid.errors import FormatError
from grid.immutable.share.geometry import Geometry
from grid.immutable.share.ueb import (
    UriExtension,
    check_ueb,
    describe_file,
    pack_ueb,
    parse_ueb,
    ueb_hash,
    ueb_size,
)

GEOMETRY = Geometry.of_file(56, 3, 10)
UEB = describe_file(GEOMETRY, crypttext_hash=b"c" * 32, crypttext_root_hash=b"r" * 32, share_root_hash=b"s" * 32)
PACKED = pack_ueb(UEB)
MANDATORY = {b"segment_size": b"57", b"crypttext_root_hash": b"r" * 32, b"share_root_hash": b"s" * 32}


def pack_fields(*fields: tuple[bytes, bytes]) -> bytes:
    return b"".join(key + b":" + pack_netstring(value) for key, value in fields)


@st.composite
def geometries(draw: st.DrawFn) -> Geometry:
    n = draw(st.integers(1, 256))
    k = draw(st.integers(1, n))
    return Geometry.of_file(draw(st.integers(1, 2**63)), k, n, draw(st.integers(1, 2**28)))


def formula(geometry: Geometry) -> int:
    """L of [spec immutable 9]."""

    def d(number: int) -> int:
        return len(str(number))

    k, n, seg, s, size = geometry.k, geometry.n, geometry.segment_size, geometry.segment_count, geometry.size
    c = len(f"{seg}-{k}-{n}")
    t = len(f"{geometry.padded_tail_size}-{k}-{n}")
    return 279 + c + d(c) + t + d(t) + d(k) + 1 + d(s) + d(d(s)) + d(seg) + d(d(seg)) + d(size) + d(d(size)) + d(n) + 1


def test_packed_block_has_the_fields_in_written_order() -> None:
    expected = pack_fields(
        (b"codec_name", b"crs"),
        (b"codec_params", b"57-3-10"),
        (b"crypttext_hash", b"c" * 32),
        (b"crypttext_root_hash", b"r" * 32),
        (b"needed_shares", b"3"),
        (b"num_segments", b"1"),
        (b"segment_size", b"57"),
        (b"share_root_hash", b"s" * 32),
        (b"size", b"56"),
        (b"tail_codec_params", b"57-3-10"),
        (b"total_shares", b"10"),
    )
    assert expected == PACKED
    assert len(PACKED) == ueb_size(GEOMETRY) == 308


@given(geometries())
def test_size_of_any_block_is_that_of_the_formula_and_below_400(geometry: Geometry) -> None:
    assert ueb_size(geometry) == formula(geometry) <= 400


@given(geometries())
def test_block_parsed_back_is_the_one_packed_and_agrees_with_its_file(geometry: Geometry) -> None:
    ueb = describe_file(geometry, crypttext_hash=b"c" * 32, crypttext_root_hash=b"r" * 32, share_root_hash=b"s" * 32)
    assert parse_ueb(pack_ueb(ueb)) == ueb
    assert check_ueb(ueb, geometry.size, geometry.k, geometry.n) == geometry


@given(st.permutations(list(MANDATORY.items())))
def test_block_of_the_mandatory_fields_alone_in_any_order_is_enough(fields: list[tuple[bytes, bytes]]) -> None:
    ueb = parse_ueb(pack_fields(*fields))
    assert ueb == UriExtension(segment_size=57, crypttext_root_hash=b"r" * 32, share_root_hash=b"s" * 32)
    assert check_ueb(ueb, 56, 3, 10) == GEOMETRY


def test_unknown_and_obsolete_keys_are_passed_over() -> None:
    extra = pack_fields((b"plaintext_hash", b"p" * 32), (b"plaintext_root_hash", b"q"), (b"Future-key", b""))
    assert parse_ueb(PACKED + extra) == UEB
    assert parse_ueb(extra + PACKED) == UEB


def test_repeated_key_counts_with_its_last_value() -> None:
    assert parse_ueb(pack_fields((b"size", b"not a number")) + PACKED) == UEB
    assert parse_ueb(PACKED + pack_fields((b"segment_size", b"60"))).segment_size == 60


def test_any_buffer_parses_alike() -> None:
    assert parse_ueb(memoryview(bytearray(PACKED))) == UEB


@pytest.mark.parametrize("missing", sorted(MANDATORY))
def test_block_without_a_mandatory_field_is_refused(missing: bytes) -> None:
    with pytest.raises(FormatError, match=missing.decode()):
        parse_ueb(pack_fields(*((key, value) for key, value in MANDATORY.items() if key != missing)))


def test_every_truncation_is_refused_or_lacks_only_optional_fields() -> None:
    refused = 0
    for length in range(len(PACKED)):
        try:
            ueb = parse_ueb(PACKED[:length])
        except FormatError:
            refused += 1
        else:
            assert PACKED[:length] == pack_ueb(ueb)
    assert refused == len(PACKED) - 3


@pytest.mark.parametrize("junk", [b"\n", b",", b"x", b"x:", b"x:1", b"x:1:", b"x:1:a", b"x:2:a,", b":0:,", b"\xff:0:,"])
def test_trailing_junk_is_refused(junk: bytes) -> None:
    with pytest.raises(FormatError):
        parse_ueb(PACKED + junk)


@pytest.mark.parametrize(
    "value", [b"", b"-3", b"+57", b"057", b" 57", b"57\n", b"5_7", b"57.0", "٥٧".encode(), b"9" * 21]
)
@pytest.mark.parametrize("key", [b"segment_size", b"size", b"needed_shares", b"total_shares", b"num_segments"])
def test_number_that_is_not_plain_decimal_is_refused(key: bytes, value: bytes) -> None:
    with pytest.raises(FormatError):
        parse_ueb(PACKED + pack_fields((key, value)))


@pytest.mark.parametrize("key", [b"crypttext_hash", b"crypttext_root_hash", b"share_root_hash"])
@pytest.mark.parametrize("length", [0, 31, 33])
def test_hash_of_wrong_length_is_refused(key: bytes, length: int) -> None:
    with pytest.raises(FormatError):
        parse_ueb(PACKED + pack_fields((key, bytes(length))))


def test_block_that_is_too_long_is_refused() -> None:
    room = 2000 - len(PACKED) - len(b"x:1685:,")
    assert parse_ueb(PACKED + pack_fields((b"x", bytes(room - 1)))) == UEB
    with pytest.raises(FormatError):
        parse_ueb(PACKED + pack_fields((b"x", bytes(room))))


@pytest.mark.parametrize(
    "change",
    [
        {"size": 57},
        {"needed_shares": 4},
        {"total_shares": 11},
        {"num_segments": 2},
        {"codec_name": b"rs"},
        {"codec_params": b"57-3-11"},
        {"tail_codec_params": b"56-3-10"},
        {"segment_size": 60},
        {"segment_size": 0},
        {"segment_size": 56},
        {"segment_size": 3 * 2**40},
    ],
)
def test_block_that_disagrees_with_the_cap_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(FormatError):
        check_ueb(evolve(UEB, **change), 56, 3, 10)


def test_hash_of_a_block_is_that_of_all_its_bytes() -> None:
    assert ueb_hash(PACKED) != ueb_hash(PACKED + pack_fields((b"x", b"")))
    assert ueb_hash(memoryview(PACKED)) == ueb_hash(PACKED)


@given(st.binary(max_size=400))
def test_arbitrary_bytes_are_refused_with_a_format_error(data: bytes) -> None:
    with pytest.raises(FormatError):
        parse_ueb(data)


@given(st.data())
def test_damaged_block_parses_or_is_refused_with_a_format_error(data: st.DataObject) -> None:
    damaged = bytearray(PACKED)
    for _ in range(data.draw(st.integers(1, 4))):
        damaged[data.draw(st.integers(0, len(PACKED) - 1))] = data.draw(st.integers(0, 255))
    try:
        check_ueb(parse_ueb(damaged), 56, 3, 10)
    except FormatError:
        return
    assert len(parse_ueb(damaged).share_root_hash) == 32
