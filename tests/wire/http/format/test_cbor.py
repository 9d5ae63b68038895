from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grid.errors import FormatError
from grid.wire.http.format import cbor
from grid.wire.http.format.cbor import Packed, Tagged, pack_cbor, pack_cbor_bytes, parse_cbor


def plain(value: Any) -> Any:
    """The value with byte strings as bytes."""
    if isinstance(value, memoryview):
        return bytes(value)
    if isinstance(value, list):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, Tagged):
        return Tagged(value.tag, plain(value.value))
    return value


# From RFC 8949, appendix A.
VECTORS: list[tuple[str, Any]] = [
    ("00", 0),
    ("17", 23),
    ("1818", 24),
    ("1903e8", 1000),
    ("1a000f4240", 1000000),
    ("1bffffffffffffffff", 2**64 - 1),
    ("20", -1),
    ("3bffffffffffffffff", -(2**64)),
    ("f4", False),
    ("f5", True),
    ("f6", None),
    ("40", b""),
    ("4401020304", b"\1\2\3\4"),
    ("6449455446", "IETF"),
    ("62c3bc", "\u00fc"),
    ("80", []),
    ("8301820203820405", [1, [2, 3], [4, 5]]),
    ("a26161016162820203", {"a": 1, "b": [2, 3]}),
    ("d9010283010203", Tagged(258, [1, 2, 3])),
]


@pytest.mark.parametrize(("text", "value"), VECTORS)
def test_value_when_in_the_standard_is_packed_and_parsed_so(text: str, value: Any) -> None:
    assert plain(parse_cbor(bytes.fromhex(text))) == value
    assert pack_cbor_bytes(value) == bytes.fromhex(text)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1800", 0),
        ("1b0000000000000001", 1),
        ("5f42010243030405ff", b"\1\2\3\4\5"),
        ("7f657374726561646d696e67ff", "streaming"),
        ("9fff", []),
        ("9f018202039f0405ffff", [1, [2, 3], [4, 5]]),
        ("bf61610161629f0203ffff", {"a": 1, "b": [2, 3]}),
        ("d90102980101", Tagged(258, [1])),
        ("a1420102f5", {b"\1\2": True}),
    ],
)
def test_value_when_encoded_in_another_valid_way_is_the_same(text: str, value: Any) -> None:
    assert plain(parse_cbor(bytes.fromhex(text))) == value


@pytest.mark.parametrize(
    "text",
    [
        "",
        "18",
        "1b00",
        "43",
        "4301",
        "5b7fffffffffffffff",
        "9b7fffffffffffffff",
        "bb7fffffffffffffff00",
        "8301",
        "a101",
        "9f01",
        "5f01ff",
        "5f5f4101ffff",
        "7f4101ff",
        "62c328",
        "1c",
        "1f",
        "df00",
        "f7",
        "f93c00",
        "fb3ff199999999999a",
        "ff",
        "81ff",
        "a201000100",
        "a1f500",
        "a1800",
        "a18000",
        "0000",
        "8181818181818181818181818100",
    ],
)
def test_message_when_not_one_value_of_the_subset_is_refused(text: str) -> None:
    with pytest.raises(FormatError):
        parse_cbor(bytes.fromhex(text + "0" * (len(text) % 2)))


def test_message_when_of_too_many_items_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cbor, "MAX_CBOR_ITEMS", 10)
    assert parse_cbor(bytes([0x89]) + bytes(9)) == [0] * 9
    with pytest.raises(FormatError):
        parse_cbor(bytes([0x8A]) + bytes(10))


def test_byte_strings_when_parsed_are_views_into_the_message() -> None:
    message = pack_cbor_bytes([b"x" * 1000])
    (raw,) = parse_cbor(message)
    assert raw.obj is message


def test_byte_strings_when_packed_are_not_copied_if_long_and_joined_if_short() -> None:
    long, other = b"x" * 5000, bytearray(4096)
    pieces = pack_cbor({"a": 1, "b": [long, b"short", 2, other], "c": None})
    assert [len(piece) for piece in pieces] == [len(pieces[0]), 5000, len(pieces[2]), 4096, 3]
    assert pieces[1] is long and pieces[3] is other
    assert b"".join(pieces) == pack_cbor_bytes({"a": 1, "b": [long, b"short", 2, other], "c": None})


def test_value_when_packed_before_is_put_in_as_it_is() -> None:
    assert pack_cbor_bytes([1, Packed(pack_cbor_bytes({"a": [2]}))]) == pack_cbor_bytes([1, {"a": [2]}])


KEYS = st.one_of(st.integers(-(2**64), 2**64 - 1), st.text(max_size=5), st.binary(max_size=5))
VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), KEYS),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(KEYS, inner, max_size=4),
        st.builds(Tagged, st.integers(0, 2**32), inner),
    ),
    max_leaves=8,
)


@given(VALUES)
def test_value_when_packed_parses_to_itself(value: Any) -> None:
    try:
        assert plain(parse_cbor(pack_cbor_bytes(value))) == value
    except FormatError as error:
        assert "nested" in str(error)


@given(st.binary(max_size=60))
def test_message_when_arbitrary_is_parsed_or_refused(message: bytes) -> None:
    try:
        parse_cbor(message)
    except FormatError:
        pass


@given(VALUES, st.data())
def test_message_when_cut_short_is_refused(value: Any, data: st.DataObject) -> None:
    message = pack_cbor_bytes(value)
    with pytest.raises(FormatError):
        parse_cbor(message[: data.draw(st.integers(0, len(message) - 1))])
