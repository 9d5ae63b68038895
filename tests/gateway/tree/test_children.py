"""Children described by JSON, read member by member within bounds."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grid.caps import LitCap, MdmfReadCap, SdmfReadCap, SdmfVerifyCap, SdmfWriteCap, StorageIndex, UnknownChild
from grid.directory.node_json import describe_child
from grid.directory.pack import Child
from grid.errors import (
    CapError,
    FormatError,
    GridError,
    MustBeDeepImmutableError,
    MustBeReadOnlyError,
    UnknownWriteCapError,
)
from grid.gateway.tree.children import WINDOWS, GivenChild, as_children, as_edits, parse_children, read_members

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
def test_body_when_it_is_not_an_object_or_too_long_is_refused(data: bytes) -> None:
    with pytest.raises(FormatError):
        list(read_members(data))


@given(st.binary(max_size=60))
def test_body_when_it_is_any_bytes_is_read_or_refused(data: bytes) -> None:
    for body in (data, b'{"a":' + data, b"{" + data + b"}"):
        try:
            list(read_members(body))
        except FormatError:
            continue


WRITE = SdmfWriteCap(write_key=bytes(16), fingerprint=bytes(32))
READ = WRITE.read_cap()
LIT = LitCap(data=b"some")
OTHER = MdmfReadCap(read_key=bytes(16), fingerprint=bytes(32))


def parse_one(immutable: bool = False, **properties: object) -> GivenChild:
    body = json.dumps({"n": ["filenode", properties]}).encode()
    return parse_children(body, immutable=immutable, may_be_empty=False)["n"]


def test_child_when_it_has_a_write_cap_then_the_read_cap_given_is_ignored() -> None:
    assert parse_one(rw_uri=WRITE.to_string(), ro_uri=OTHER.to_string()).target == WRITE


def test_child_when_its_write_slot_has_a_read_cap_then_it_is_kept_as_that() -> None:
    assert parse_one(rw_uri=READ.to_string()).target == READ


def test_child_when_its_read_slot_has_a_write_cap_then_it_loses_its_authority() -> None:
    target = parse_one(ro_uri=WRITE.to_string()).target
    assert isinstance(target, SdmfReadCap)
    assert target == READ


@pytest.mark.parametrize(
    ("immutable", "properties", "error"),
    [
        (False, {"rw_uri": "lafs://future"}, UnknownWriteCapError),
        (False, {"ro_uri": "ro." + WRITE.to_string()}, MustBeReadOnlyError),
        (False, {"ro_uri": "imm." + READ.to_string()}, MustBeDeepImmutableError),
        (False, {"ro_uri": "URI:CHK:nonsense"}, CapError),
        (False, {"rw_uri": 7}, FormatError),
        (False, {"ro_uri": "x" * 70_000}, FormatError),
        (False, {"ro_uri": LIT.to_string(), "metadata": []}, FormatError),
        (True, {"rw_uri": WRITE.to_string()}, MustBeDeepImmutableError),
        (True, {"ro_uri": READ.to_string()}, MustBeDeepImmutableError),
        (True, {"rw_uri": "lafs://future", "ro_uri": "lafs://future-read"}, CapError),
        (
            False,
            {"ro_uri": SdmfVerifyCap(storage_index=StorageIndex(bytes(16)), fingerprint=bytes(32)).to_string()},
            CapError,
        ),
    ],
)
def test_child_when_its_caps_do_not_belong_there_then_says_so(
    immutable: bool, properties: dict[str, object], error: type[GridError]
) -> None:
    with pytest.raises(error) as raised:
        parse_one(immutable, **properties)
    assert "URI:SSK" not in str(raised.value)


def test_child_of_an_unknown_kind_when_both_slots_are_given_then_both_are_kept() -> None:
    target = parse_one(rw_uri="lafs://w", ro_uri="lafs://r").target
    assert target == UnknownChild(write=b"lafs://w", read=b"ro.lafs://r")


@pytest.mark.parametrize(
    ("immutable", "given", "kept"), [(False, "lafs://r", b"ro.lafs://r"), (True, "ro.lafs://r", b"imm.lafs://r")]
)
def test_child_of_an_unknown_kind_when_it_only_reads_then_a_prefix_says_so(
    immutable: bool, given: str, kept: bytes
) -> None:
    assert parse_one(immutable, ro_uri=given).target == UnknownChild(read=kept)


@pytest.mark.parametrize("properties", [{}, {"ro_uri": None}, {"rw_uri": "", "ro_uri": "  "}])
@pytest.mark.parametrize("immutable", [False, True])
def test_child_when_it_has_no_caps_then_it_is_kept_as_of_an_unknown_kind(
    immutable: bool, properties: dict[str, object]
) -> None:
    given = parse_one(immutable, **properties, metadata={"a": 1})
    assert (given.target, given.metadata) == (UnknownChild(), {"a": 1})


def test_children_when_taken_from_a_listing_then_are_understood() -> None:
    children = {
        "a": Child(target=WRITE, metadata={"x": 1}),
        "b": Child(target=LIT),
        "c": Child(target=UnknownChild(write=b"lafs://w", read=b"ro.lafs://r")),
        "d": Child(target=UnknownChild(), metadata={"deleted": True}),
    }
    body = json.dumps({name: describe_child(child) for name, child in children.items()}).encode()
    assert as_children(parse_children(body, immutable=False, may_be_empty=False)) == children


@pytest.mark.parametrize(
    "body",
    [
        b"", b"[]", b"{", b"\xff", b'{"a": 1}', b'{"a": ["filenode"]}', b'{"a": ["filenode", []]}', b"7", b'"x"', b"[" * 100_000,
        b'{"a": ["filenode", {"ro_uri": "URI:LIT:", "metadata": {"x": NaN}}]}',
        b'{"a": ["filenode", {"ro_uri": "URI:LIT:", "metadata": {"x": 1e999}}]}',
        b'{"\\ud800": ["filenode", {"ro_uri": "URI:LIT:"}]}',
    ],
)  # fmt: skip
def test_body_when_it_describes_no_children_then_says_so(body: bytes) -> None:
    with pytest.raises(FormatError):
        parse_children(body, immutable=False, may_be_empty=False)


def test_body_when_it_is_empty_and_may_be_then_has_no_children() -> None:
    assert parse_children(b" \n", immutable=True, may_be_empty=True) == {}


def test_names_when_they_are_not_normal_then_they_become_so_and_the_later_counts() -> None:
    body = '{"e\u0301": ["x", {"ro_uri": "URI:LIT:"}], "\u00e9": ["x", {"ro_uri": "URI:LIT:onwwc3dm"}]}'.encode()
    children = parse_children(body, immutable=False, may_be_empty=False)
    assert list(children) == ["\u00e9"]
    assert children["\u00e9"].target != LitCap(data=b"")


def test_edits_when_no_metadata_is_given_then_keep_the_old() -> None:
    body = b'{"a": ["x", {"ro_uri": "URI:LIT:"}], "b": ["x", {"ro_uri": "URI:LIT:", "metadata": {}}]}'
    first, second = as_edits(parse_children(body, immutable=False, may_be_empty=False), "only-files")
    assert (first.metadata, second.metadata) == (None, {})
    assert first.overwrite == "only-files"


@given(st.binary(max_size=200) | st.text(max_size=200).map(lambda text: text.encode("utf-8", "replace")))
def test_body_when_it_is_anything_then_only_errors_of_ours_come_out(body: bytes) -> None:
    try:
        parse_children(body, immutable=False, may_be_empty=True)
    except GridError:
        pass
