"""Netstrings: round trips, limits, and what is refused."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grid.codec.netstring import pack_netstring, parse_netstring
from grid.errors import FormatError
from tests.vectors.make_codec import PATH

REFUSED: list[str] = json.loads(PATH.read_text())["netstrings_refused"]


@given(st.binary(), st.binary(max_size=9), st.binary(max_size=9))
def test_parse_when_packed_gives_the_value_and_the_end(value: bytes, before: bytes, after: bytes) -> None:
    packed = pack_netstring(value)
    for data in (before + packed + after, memoryview(before + packed + after), bytearray(before + packed + after)):
        parsed, end = parse_netstring(data, len(before), len(value))
        assert parsed == value
        assert isinstance(parsed, bytes)
        assert end == len(before) + len(packed)
    for cut in range(len(packed)):
        with pytest.raises(FormatError):
            parse_netstring(packed[:cut], 0, len(value))


@pytest.mark.parametrize("text", REFUSED)
def test_parse_when_it_is_invalid_refuses(text: str) -> None:
    with pytest.raises(FormatError):
        parse_netstring(text.encode(), 0, 100)


def test_parse_when_the_value_is_longer_than_the_limit_refuses() -> None:
    packed = pack_netstring(bytes(1000))
    assert parse_netstring(packed, 0, 1000)[0] == bytes(1000)
    for limit in (0, 9, 10, 99, 999):
        with pytest.raises(FormatError):
            parse_netstring(packed, 0, limit)


def test_pack_when_the_value_is_any_buffer_gives_the_same() -> None:
    assert (
        pack_netstring(b"abc") == pack_netstring(bytearray(b"abc")) == pack_netstring(memoryview(b"abc")) == b"3:abc,"
    )
    assert pack_netstring(b"") == b"0:,"


@given(st.binary(), st.integers(0, 20), st.integers(0, 300))
def test_parse_when_given_anything_gives_a_value_or_refuses(data: bytes, offset: int, limit: int) -> None:
    try:
        value, end = parse_netstring(data, offset, limit)
    except FormatError:
        return
    assert data[offset:end] == pack_netstring(value)
    assert len(value) <= limit
