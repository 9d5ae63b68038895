"""The bytes of directories: known answers, what is tolerated and what is refused, and arbitrary bytes."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grid.caps import ChkCap, DirectoryCap, LitCap, SdmfReadCap, SdmfWriteCap, UnknownChild
from grid.codec.netstring import pack_netstring, parse_netstring
from grid.crypto.aes import crypt_once
from grid.directory import pack
from grid.directory.edits import RemoveChild, SetChild, apply_edits
from grid.directory.metadata import pack_metadata, parse_metadata
from grid.directory.names import normalize_name
from grid.directory.pack import (
    Child,
    Target,
    make_entry,
    open_write_cap,
    pack_directory,
    parse_directory,
    seal_write_cap,
)
from grid.errors import CapError, ExistingChildError, FormatError, MustBeDeepImmutableError
from grid.limits import KEPT_METADATA_BYTES, MAX_METADATA_DEPTH, MAX_METADATA_SIZE, MAX_NAME_SIZE

WRITE_KEY = bytes(range(16))
LIT = LitCap(data=b"small")
LIT_TEXT = LIT.to_string().encode()
CHK = ChkCap(key=bytes(16), ueb_hash=bytes(32), needed=3, total=10, size=1000)
SSK = SdmfWriteCap(write_key=bytes(16), fingerprint=bytes(32))
KNOWN_W = b"URI:SSK:prwxby42av6kvcawg5rwbbvshm:texgssrba2hrhv5qwhb3o7guaybaixwrk36gg6lladuwb66rszba"
NOTHING_SEALED = bytes.fromhex(
    "d05f738a043b8404b7495ccb5d5501866971af5bc2acc121f3a8c3c9e4c67eaa2cf628b320d73bc02284aa976c0018c7"
)
KNOWN_DIRECTORY = bytes.fromhex(
    "39363a323ac3a92c31363a5552493a4c49543a6f6e77776333646d2c34383ad05f738a043b8404b7495ccb5d5501866971af5bc2acc121"
    "f3a8c3c9e4c67eaa2cf628b320d73bc02284aa976c0018c72c31353a7b226e223a20225c7530306663227d2c2c"
)


def entry(
    name: bytes, read: bytes = LIT_TEXT, sealed: bytes = b"", metadata: bytes = b"{}", more: bytes = b""
) -> bytes:
    return pack_netstring(b"".join(map(pack_netstring, (name, read, sealed, metadata))) + more)


def pack_mutable(children: dict[str, Child]) -> bytes:
    return pack_directory({n: make_entry(n, c, mutable=True, write_key=WRITE_KEY) for n, c in children.items()})


def test_write_cap_when_sealed_then_is_the_known_answer() -> None:
    sealed = seal_write_cap(KNOWN_W, WRITE_KEY)
    assert sealed.hex() == (
        "118616c39a39f7b721f0c578a4baed13"
        "608833b0df038e05b9cf3ee14283c28072af2f4c0fa3997689377e95df9cc2d5af0454490f6928b9ef32b43dbce2856c4ccae8"
        "af4e0e5d837f9d03c0b7ec80f161ecb4c3ea9c927900eb1c502764b7986703ca9db43fc5"
        "4eb2bc57220bb95a9ae6c27d19fee2063ffe7eb0f49e96c733009f4509247699"
    )
    assert open_write_cap(sealed, WRITE_KEY) == KNOWN_W
    assert open_write_cap(sealed[:-1] + b"?", WRITE_KEY) == KNOWN_W
    assert seal_write_cap(b"", WRITE_KEY) == NOTHING_SEALED
    assert open_write_cap(NOTHING_SEALED[:-1], WRITE_KEY) == b""


def test_directories_when_packed_then_are_the_known_answers() -> None:
    assert pack_mutable({"é": Child(target=LIT, metadata={"n": "ü"})}) == KNOWN_DIRECTORY
    packed = pack_directory({"a": make_entry("a", Child(target=LIT), mutable=False)})
    assert packed == b"32:1:a,16:URI:LIT:onwwc3dm,0:,2:{},,"
    cap = DirectoryCap(LitCap(data=packed))
    assert cap.to_string() == "URI:DIR2-LIT:gmzdumj2mewdcnr2kvjesosmjfkdu33oo53wgm3enuwdaormgi5hw7jmfq"
    assert DirectoryCap(LitCap(data=b"")).to_string() == "URI:DIR2-LIT:"
    assert pack_directory({}) == b""
    assert parse_directory(b"", mutable=False) == {}


@pytest.mark.parametrize(
    "target", [LIT, CHK, SSK, SSK.read_cap(), DirectoryCap(SSK), DirectoryCap(CHK), UnknownChild(read=b"ro.x:y")]
)
def test_child_when_packed_then_writers_and_readers_each_see_their_own(target: Target) -> None:
    data = pack_mutable({"name": Child(target=target, metadata={"k": [1, None, "x"]})})
    seen = parse_directory(data, mutable=True, write_key=WRITE_KEY)["name"].child
    assert seen == Child(target=target, metadata={"k": [1, None, "x"]})
    reading = parse_directory(data, mutable=True)["name"].child
    assert reading is not None
    assert reading.target == (target if isinstance(target, UnknownChild) else target.read_cap())


def test_entries_when_rewritten_then_keep_their_bytes_in_the_order_of_names() -> None:
    first = entry("é".encode(), more=b"more")
    hidden = entry(b"hidden", read=b"imm.URI:SSK:" + SSK.fields_text().encode())
    data = entry(b"z") + first + hidden
    entries = parse_directory(data, mutable=True, write_key=WRITE_KEY)
    assert set(entries) == {"z", "é", "hidden"} and entries["hidden"].child is None
    assert pack_directory(entries) == hidden + entry(b"z") + first


def test_name_when_there_twice_then_the_later_listed_entry_counts() -> None:
    data = entry("é".encode(), metadata=b'{"a": 1}') + entry(b"e\xcc\x81", metadata=b'{"a": 2}')
    hidden = entry("é".encode(), read=b"URI:LIT:!")
    for raw in (data, data + hidden):
        [(name, found)] = parse_directory(raw, mutable=True).items()
        assert name == "é" and found.child is not None and found.child.metadata == {"a": 2}


def test_entries_of_one_name_when_something_else_changes_keep_their_bytes_in_their_order() -> None:
    earlier, later = entry(b"e\xcc\x81", read=CHK.to_string().encode()), entry("é".encode())
    hidden = entry("é".encode(), read=b"URI:LIT:!")
    for rows in ([earlier, later], [earlier, later, hidden], [hidden, earlier, later]):
        entries = parse_directory(b"".join(rows) + entry(b"a"), mutable=True, write_key=WRITE_KEY)
        assert set(entries) == {"é", "a"}
        edited = apply_edits(entries, [SetChild("z", LIT)], now=1.0, retrying=False, write_key=WRITE_KEY).entries
        assert pack_directory({"é": edited["é"], "a": edited["a"]}) == entry(b"a") + b"".join(rows)
        for change in (RemoveChild("é"), SetChild("é", LIT)):
            changed = apply_edits(entries, [change], now=1.0, retrying=False, write_key=WRITE_KEY).entries
            again = parse_directory(pack_directory(changed), mutable=True, write_key=WRITE_KEY)
            assert set(again) == set(changed), "none of the others comes back under the name"
            assert all(not found.rows for found in again.values())


def test_directory_with_more_entries_than_any_is_not_packed_whatever_their_names(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pack, "MAX_DIRECTORY_ENTRIES", 3)
    entries = parse_directory(entry(b"a") * 3, mutable=True, write_key=WRITE_KEY)
    assert len(entries) == 1 and pack_directory(entries) == entry(b"a") * 3
    with pytest.raises(FormatError):
        pack_directory({**entries, "b": make_entry("b", Child(target=LIT), mutable=False)})


@pytest.mark.parametrize("data", [entry(b"a")[:-1], entry(b"a") + b"x", b"+1:x,", b"1_0:x,", b"99999999999:"])
def test_directory_when_it_is_not_a_row_of_netstrings_then_is_unreadable(data: bytes) -> None:
    with pytest.raises(FormatError):
        parse_directory(entry(b"0") + data, mutable=True, write_key=WRITE_KEY)


NAMELESS = (
    pack_netstring(b""), pack_netstring(b"x"), pack_netstring(pack_netstring(b"a") * 3), pack_netstring(b"5:abc,"),
    entry(b"\xff"), entry(b"n" * (MAX_NAME_SIZE + 1)), entry("é".encode() * (MAX_NAME_SIZE // 2 + 1)),
)  # fmt: skip
NAMED = (
    entry(b"a", metadata=b"x"), entry(b"a", metadata=b"[]"), entry(b"a", metadata=b"\xff"), entry(b"a", metadata=b""),
    entry(b"a", metadata=b'{"a":' + b"[" * 5000 + b"]" * 5000 + b"}"), entry(b"a", metadata=b"[" * 60_000),
    entry(b"a", metadata=b'{"a":' + b"[" * 150 + b"]" * 150 + b"}"), entry(b"a", metadata=b'{"a": ' + b"9" * 60_000 + b"}"),
    entry(b"a", read=b"URI:SSK:nonsense"), entry(b"a", read=b"URI:LIT:" + b"a" * 70_000),
)  # fmt: skip


@pytest.mark.parametrize("bad", [*NAMELESS, *NAMED])
def test_entry_when_it_is_malformed_then_is_not_listed_and_keeps_its_bytes(bad: bytes) -> None:
    data = entry(b"0") + bad + entry(b"z")
    entries = parse_directory(data, mutable=True, write_key=WRITE_KEY)
    assert {name for name, found in entries.items() if found.child} == {"0", "z"} and len(entries) == 3
    assert ("a" in entries) == (bad in NAMED)
    changed = {**entries, "m": make_entry("m", Child(target=LIT), mutable=True, write_key=WRITE_KEY)}
    del changed["0"]
    packed = pack_directory(changed)
    assert bad in packed
    assert parse_directory(packed, mutable=True, write_key=WRITE_KEY).keys() == changed.keys()


def test_entry_when_malformed_with_a_name_that_another_has_then_both_stay() -> None:
    bad, other, good = entry(b"a", metadata=b"x"), entry(b"a", metadata=b"y"), entry(b"a")
    for data in (bad + other + good, good + bad + other, bad + good + other):
        entries = parse_directory(data, mutable=True)
        found = entries["a"].child
        assert len(entries) == 3 and found is not None and found.target == LIT
        packed = pack_directory(entries)
        assert all(each in packed for each in (bad, other, good)) and len(packed) == len(data)


def test_entry_when_malformed_then_an_overwrite_of_its_name_takes_its_place() -> None:
    bad = entry(b"a", metadata=b"x") + entry(b"\xff")
    entries = parse_directory(bad, mutable=True, write_key=WRITE_KEY)
    for overwrite in (True, False):
        edit = SetChild("a", LIT, overwrite=overwrite)
        if not overwrite:
            with pytest.raises(ExistingChildError):
                apply_edits(entries, [edit], now=0.0, retrying=False, write_key=WRITE_KEY)
            continue
        edited = apply_edits(entries, [edit], now=0.0, retrying=False, write_key=WRITE_KEY)
        assert len(edited.entries) == 2 and entry(b"\xff") in pack_directory(edited.entries)
        assert entry(b"a", metadata=b"x") not in pack_directory(edited.entries)


def test_entry_when_its_metadata_is_longer_than_any_then_is_listed_without() -> None:
    long = entry(b"long", metadata=b'{"a": "' + b"x" * MAX_METADATA_SIZE + b'"}')
    huge = entry(b"huge", metadata=b"[" * 2**20, more=b"more")
    data = huge + long
    entries = parse_directory(data, mutable=True, write_key=WRITE_KEY)
    assert {name: found.child for name, found in entries.items()} == {
        "huge": Child(target=LIT),
        "long": Child(target=LIT),
    }
    assert pack_directory(entries) == data
    longest = b'{"a": "' + b"x" * (MAX_METADATA_SIZE - 9) + b'"}'
    child = parse_directory(entry(b"a", metadata=longest), mutable=True)["a"].child
    assert child is not None and len(str(child.metadata["a"])) == MAX_METADATA_SIZE - 9


def test_metadata_when_very_large_then_is_parsed_on_demand() -> None:
    lists = b'{"a": [' + b"[]," * 21_000 + b'"last"]}'
    count = KEPT_METADATA_BYTES // (96 * 21_000) + 5
    data = b"".join(entry(b"%04d" % number, metadata=lists) for number in range(count))
    entries = parse_directory(data, mutable=True)
    first, last = (entries[name].child for name in ("0000", f"{count - 1:04}"))
    assert first is not None and last is not None
    assert first.metadata is first.metadata and last.metadata is not last.metadata
    assert first.metadata == last.metadata and last.metadata["a"][-1] == "last"  # type: ignore[index]


def test_tolerance_when_reading_then_is_that_of_the_table() -> None:
    entries = parse_directory(
        entry(b"", read=LIT_TEXT + b"  ") + entry(b"a/b", sealed=b"short") + entry(b"e", read=b""),
        mutable=True,
        write_key=WRITE_KEY,
    )
    targets = [found.child.target for found in entries.values() if found.child]
    assert targets == [LIT, LIT, UnknownChild()]
    assert parse_directory(entry(b"a", sealed=b"x"), mutable=False)["a"].child is None


def test_write_cap_when_in_the_read_slot_then_is_taken_at_face_value() -> None:
    found = parse_directory(entry(b"a", read=SSK.to_string().encode()), mutable=True)["a"].child
    assert found is not None and found.target == SSK


def test_verify_cap_when_in_a_directory_then_shows_as_unknown_and_is_not_stored() -> None:
    for cap in (SSK.verify_cap(), CHK.verify_cap()):
        for mutable in (True, False):
            seen = parse_directory(entry(b"v", read=cap.to_string().encode()), mutable=mutable).get("v")
            assert seen is not None and (seen.child is None or isinstance(seen.child.target, UnknownChild))
        with pytest.raises(CapError):
            make_entry("v", Child(target=cap), mutable=True, write_key=WRITE_KEY)


@pytest.mark.parametrize("target", [SSK, SSK.read_cap(), DirectoryCap(SSK), UnknownChild(write=b"w:", read=b"ro.r:")])
def test_immutable_directory_when_given_what_may_change_then_refuses_and_skips_it(target: Target) -> None:
    with pytest.raises(MustBeDeepImmutableError, match="name"):
        make_entry("name", Child(target=target), mutable=False)
    if not isinstance(target, UnknownChild):
        data = entry(b"name", read=target.to_string().encode()) + entry(b"other")
        entries = parse_directory(data, mutable=False)
        assert entries["name"].child is None and entries["other"].child is not None


def test_unknown_child_when_in_an_immutable_directory_then_is_shown_as_immutable() -> None:
    made = make_entry("u", Child(target=UnknownChild(read=b"ro.future:1")), mutable=False)
    found = parse_directory(pack_directory({"u": made}), mutable=False)["u"].child
    assert b"8:future:1," in bytes(made.data).replace(b"imm.", b"")
    assert found is not None and found.target == UnknownChild(read=b"imm.future:1")


def test_metadata_when_packed_then_is_as_python_writes_it() -> None:
    assert pack_metadata({"é": 1.5, "a": {"b": [True, None]}}) == b'{"\\u00e9": 1.5, "a": {"b": [true, null]}}'
    deep: object = 0
    for _ in range(MAX_METADATA_DEPTH + 1):
        deep = [deep]
    for wrong in ({"a": deep}, {"a": b"bytes"}, {"a": [float("inf")]}, {"a": float("nan")}):
        with pytest.raises(FormatError):
            pack_metadata(wrong)
    assert parse_metadata(b' {"a" : 1} ') == {"a": 1}


def test_metadata_when_nested_to_the_limit_then_is_packed_and_parsed() -> None:
    deep: dict[str, object] = {"a": 0}
    for _ in range(MAX_METADATA_DEPTH - 1):
        deep = {"a": deep}
    assert parse_metadata(pack_metadata(deep)) == deep
    with pytest.raises(FormatError, match="deep"):
        pack_metadata({"a": deep})
    with pytest.raises(FormatError, match="deep"):
        parse_metadata(json.dumps({"a": deep}).encode())
    brackets = {"text": "[{" * MAX_METADATA_DEPTH, "wide": [[]] * MAX_METADATA_DEPTH}
    assert parse_metadata(pack_metadata(brackets)) == brackets


@pytest.mark.parametrize("number", ["NaN", "-Infinity", "1e999", "-1E+0999", "9" * 400 + ".5"])
def test_metadata_when_it_has_an_invalid_number_then_it_is_null(number: str) -> None:
    raw = f'{{"a": [{number}, 1e300, 2.5, 1e-999], "b": "1e999"}}'.encode()
    assert parse_metadata(raw) == {"a": [None, 1e300, 2.5, 0.0], "b": "1e999"}


HOSTILE = st.one_of(
    st.binary(max_size=80),
    st.builds(
        entry,
        st.one_of(
            st.binary(max_size=6), st.text(max_size=6).map(str.encode), st.sampled_from([b"a", b"\xcc\x80" * 40])
        ),
        st.one_of(st.binary(max_size=30), st.sampled_from([LIT_TEXT, b"", b"imm.x", SSK.to_string().encode()])),
        st.one_of(st.just(b""), st.binary(max_size=80)),
        st.one_of(st.binary(max_size=30), st.sampled_from([b"{}", b'{"a": 1}', b'{"a": NaN}', b"[" * 2000])),
        st.binary(max_size=3),
    ),
    st.binary(max_size=60).map(pack_netstring),
)


@given(st.lists(HOSTILE, max_size=6), st.booleans())
def test_directory_when_of_any_bytes_then_raises_format_error_or_keeps_every_entry(
    pieces: list[bytes], mutable: bool
) -> None:
    key = WRITE_KEY if mutable else None
    try:
        entries = parse_directory(b"".join(pieces), mutable=mutable, write_key=key)
    except FormatError:
        return
    packed = pack_directory(entries)
    again = parse_directory(packed, mutable=mutable, write_key=key)
    assert len(packed) == len(pack_directory(again))
    assert sorted(bytes(e.data) for e in again.values()) == sorted(bytes(e.data) for e in entries.values())
    assert {n: e for n, e in again.items() if e.child} == {n: e for n, e in entries.items() if e.child}
    for found in entries.values():
        assert pack_netstring(found.data) in b"".join(pieces)
    for piece in pieces:
        assert piece in packed or not _is_malformed_entry(piece, mutable)


def _is_malformed_entry(raw: bytes, mutable: bool) -> bool:
    """Whether it is one entry, which is there and not understood."""
    try:
        [found] = parse_directory(raw, mutable=mutable).values()
    except (FormatError, ValueError):
        return False
    try:
        fields = parse_netstring(raw, 0, len(raw))[0]
        offset = 0
        for _ in range(3):
            _, offset = parse_netstring(fields, offset, len(fields))
        parse_metadata(parse_netstring(fields, offset, len(fields))[0])
    except FormatError:
        return found.child is None
    return False


@given(st.dictionaries(st.text(max_size=8), st.sampled_from([LIT, CHK, SSK, SSK.read_cap()]), max_size=8))
def test_directory_when_packed_and_parsed_then_is_the_same(
    targets: dict[str, LitCap | SdmfWriteCap | SdmfReadCap],
) -> None:
    children = {normalize_name(name): Child(target=target) for name, target in targets.items()}
    data = pack_mutable(children)
    entries = parse_directory(data, mutable=True, write_key=WRITE_KEY)
    assert {name: found.child for name, found in entries.items()} == children
    assert list(entries) == sorted(entries) and pack_directory(entries) == data


def test_slots_of_children_without_a_write_cap_are_encrypted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    texts: list[bytes] = []

    def noted(key: bytes, text: bytes) -> bytes:
        texts.append(text)
        return crypt_once(key, text)

    monkeypatch.setattr(pack, "crypt_once", noted)
    for key in (b"one such key is k", b"and here is a key"):
        sealed = {pack.seal_write_cap(b"", key) for _ in range(20)}
        assert [pack.open_write_cap(each, key) for each in sealed] == [b""]
    assert texts == [b"", b""]
