"""JSON objects read member by member: what the library reads, within bounds."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grid.errors import FormatError
from grid.gateway.tree.json_members import WINDOWS, read_members

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8) | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.text(max_size=8), VALUES.map(lambda v: [v]), max_size=6), st.booleans(), st.integers(0, 3))
def test_members_when_read_are_those_that_the_library_reads(
    members: dict[str, object], ascii_only: bool, indent: int
) -> None:
    data = json.dumps(members, ensure_ascii=ascii_only, indent=indent or None).encode("utf-8", "surrogatepass")
    assert dict(read_members(data)) == members
    assert dict(read_members(b" \n" + data + b"\t ")) == members


@pytest.mark.parametrize("size", [WINDOWS[0] - 9, WINDOWS[0], WINDOWS[1] - 3, WINDOWS[1], WINDOWS[2] - 2])
@pytest.mark.parametrize("letter", ["x", "é", "\U0001f600"])
def test_member_when_long_is_read_whole(size: int, letter: str) -> None:
    text = letter * (size // len(letter.encode()) - 2)
    members = {"first": [1], "long": text, "last": [2]}
    assert dict(read_members(json.dumps(members, ensure_ascii=False).encode())) == members


@pytest.mark.parametrize(
    "data",
    [
        b"", b" ", b"[]", b"1", b"{", b'{"a"}', b'{"a":}', b'{"a":[1]', b'{"a":[1],}', b'{"a":[1]}x', b'{"a":[1]}{}', b"{,}",
        b'{a:[1]}', b'{1:[1]}', b'{"a" [1]}', b'{"a":[1] "b":[1]}', b'{"a":[NaN]}', b'{"\xff":[1]}', b'{"a":["\xff"]}',
        b'{"a":' + b"[" * 100_000, b'{"a":' + b"[" * 5000 + b"]" * 5000 + b"}", b'{"a":[' + b"9" * 100_000 + b"]}",
        b'{"a":"' + b"x" * WINDOWS[-1] + b'"}', b'{"a":[' + b"[]," * WINDOWS[-1] + b"[]]}", "\ufeff{}".encode(),
    ],
)  # fmt: skip
def test_body_when_it_is_no_object_or_too_long_is_refused(data: bytes) -> None:
    with pytest.raises(FormatError):
        list(read_members(data))


@given(st.binary(max_size=60))
def test_body_when_it_is_any_bytes_is_read_or_refused(data: bytes) -> None:
    for body in (data, b'{"a":' + data, b"{" + data + b"}"):
        try:
            list(read_members(body))
        except FormatError:
            continue
