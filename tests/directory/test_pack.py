"""The octets of directories: the known answers, what is tolerated and what is not, and any octets at all."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grid.caps import ChkCap, DirectoryCap, LitCap, SdmfReadCap, SdmfWriteCap, UnknownChild
from grid.codec.netstring import pack_netstring
from grid.directory.pack import (
    Child,
    Target,
    make_entry,
    normalize_name,
    open_write_cap,
    pack_directory,
    pack_metadata,
    parse_directory,
    parse_metadata,
    seal_write_cap,
)
from grid.errors import CapError, FormatError, MustBeDeepImmutableError
from grid.limits import MAX_METADATA_DEPTH

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


def test_entries_when_rewritten_then_keep_their_octets_in_the_order_of_names() -> None:
    first = entry("é".encode(), more=b"more")
    hidden = entry(b"hidden", read=b"imm.URI:SSK:" + SSK.fields_text().encode())
    data = entry(b"z") + first + hidden
    entries = parse_directory(data, mutable=True, write_key=WRITE_KEY)
    assert set(entries) == {"z", "é", "hidden"} and entries["hidden"].child is None
    assert pack_directory(entries) == hidden + entry(b"z") + first


def test_name_when_there_twice_then_the_later_listed_entry_counts() -> None:
    data = entry("é".encode(), metadata=b'{"a": 1}') + entry(b"e\xcc\x81", metadata=b'{"a": 2}')
    hidden = entry("é".encode(), read=b"URI:LIT:!")
    for octets in (data, data + hidden):
        [(name, found)] = parse_directory(octets, mutable=True).items()
        assert name == "é" and found.child is not None and found.child.metadata == {"a": 2}


@pytest.mark.parametrize(
    "data",
    [
        entry(b"\xff"), entry(b"a", metadata=b"x"), entry(b"a", metadata=b"[]"), entry(b"a", metadata=b"\xff"),
        entry(b"a")[:-1], entry(b"a") + b"x", pack_netstring(pack_netstring(b"a") * 3), b"+1:x,", b"1_0:x,", b"99999999999:",
        entry(b"a", metadata=b'{"a":' + b"[" * 5000 + b"]" * 5000 + b"}"),
        entry(b"a", metadata=b'{"a":' + b"[" * 150 + b"]" * 150 + b"}"), entry(b"a", metadata=b'{"a": ' + b"9" * 5000 + b"}"),
    ],
)  # fmt: skip
def test_directory_when_an_entry_is_malformed_then_is_unreadable(data: bytes) -> None:
    with pytest.raises(FormatError):
        parse_directory(entry(b"0") + data, mutable=True, write_key=WRITE_KEY)


def test_tolerance_when_reading_then_is_that_of_the_table() -> None:
    entries = parse_directory(
        entry(b"", read=LIT_TEXT + b"  ") + entry(b"a/b", sealed=b"short") + entry(b"e", read=b""),
        mutable=True,
        write_key=WRITE_KEY,
    )
    targets = [found.child.target for found in entries.values() if found.child]
    assert targets == [LIT, LIT, UnknownChild()]
    with pytest.raises(FormatError):
        parse_directory(entry(b"a", sealed=b"x"), mutable=False)


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
    assert b"8:future:1," in made.octets.replace(b"imm.", b"")
    assert found is not None and found.target == UnknownChild(read=b"imm.future:1")


def test_metadata_when_packed_then_is_as_python_writes_it() -> None:
    assert pack_metadata({"é": 1.5, "a": {"b": [True, None]}}) == b'{"\\u00e9": 1.5, "a": {"b": [true, null]}}'
    deep: object = 0
    for _ in range(MAX_METADATA_DEPTH + 1):
        deep = [deep]
    for wrong in ({"a": deep}, {"a": b"octets"}, {"a": [float("inf")]}, {"a": float("nan")}):
        with pytest.raises(FormatError):
            pack_metadata(wrong)
    assert parse_metadata(b' {"a" : 1} ') == {"a": 1}


@pytest.mark.parametrize("number", ["NaN", "-Infinity", "1e999", "-1E+0999", "9" * 400 + ".5"])
def test_metadata_when_it_has_what_is_no_number_then_it_is_null(number: str) -> None:
    octets = f'{{"a": [{number}, 1e300, 2.5, 1e-999], "b": "1e999"}}'.encode()
    assert parse_metadata(octets) == {"a": [None, 1e300, 2.5, 0.0], "b": "1e999"}


def test_name_when_given_then_is_normalized_or_refused() -> None:
    assert normalize_name("e\u0301") == "\u00e9"
    with pytest.raises(FormatError):
        normalize_name("\ud800")


@given(st.binary(max_size=200), st.booleans())
def test_directory_when_of_any_octets_then_raises_format_error_only(data: bytes, mutable: bool) -> None:
    for octets in (data, entry(data), entry(b"a", read=data), entry(b"a", metadata=data), pack_netstring(data)):
        try:
            entries = parse_directory(octets, mutable=mutable, write_key=WRITE_KEY if mutable else None)
        except FormatError:
            continue
        assert parse_directory(pack_directory(entries), mutable=mutable).keys() == entries.keys()


@given(st.dictionaries(st.text(max_size=8), st.sampled_from([LIT, CHK, SSK, SSK.read_cap()]), max_size=8))
def test_directory_when_packed_and_parsed_then_is_the_same(
    targets: dict[str, LitCap | SdmfWriteCap | SdmfReadCap],
) -> None:
    children = {normalize_name(name): Child(target=target) for name, target in targets.items()}
    data = pack_mutable(children)
    entries = parse_directory(data, mutable=True, write_key=WRITE_KEY)
    assert {name: found.child for name, found in entries.items()} == children
    assert list(entries) == sorted(entries) and pack_directory(entries) == data
