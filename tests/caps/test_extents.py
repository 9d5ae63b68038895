"""Capabilities of slices and sequences: known answers, and malformed texts. [spec extents 2, 4]"""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import grid.caps
from grid.caps import ChkCap, SequenceCap, SliceCap, UnknownCap, parse_cap, require_usable
from grid.codec.base32 import encode
from grid.errors import CapError
from tests.vectors.make_extents import PATH

VECTORS: dict[str, Any] = json.loads(PATH.read_text())


@pytest.mark.parametrize("row", VECTORS["caps"], ids=lambda row: row["cap"][4:30])
def test_parse_cap_when_it_is_an_extent_gives_its_kind_size_and_verify_cap(row: dict[str, Any]) -> None:
    text = row["cap"]
    bare = text.removeprefix("imm.")
    cap = parse_cap(text)
    assert type(cap) is getattr(grid.caps, row["kind"])
    assert isinstance(cap, SliceCap | SequenceCap)
    for spelling in (bare, "ro." + bare, text):
        assert parse_cap(spelling) == parse_cap(spelling, deep_immutable=True) == cap
    assert cap.to_string() == text
    assert (cap.size, cap.authority, cap.is_mutable) == (row["size"], "read", False)
    assert cap.read_cap() is cap
    verify = cap.verify_cap()
    assert (None if verify is None else verify.to_string()) == row["verify_cap"]
    assert (None if cap.storage_index is None else encode(cap.storage_index)) == row["storage_index"]
    assert require_usable(cap) is cap


@pytest.mark.parametrize("text", VECTORS["malformed"], ids=ascii)
def test_parse_cap_when_an_extent_is_malformed_keeps_the_bytes_and_the_error(text: str) -> None:
    for prefix in ("", "imm.", "ro."):
        cap = parse_cap(prefix + text)
        assert isinstance(cap, UnknownCap)
        assert cap.text == (prefix + text).encode()
        assert isinstance(cap.error, CapError)


@pytest.mark.parametrize("text", VECTORS["unusable"], ids=ascii)
def test_require_usable_when_numbers_cannot_be_those_of_an_extent_raises(text: str) -> None:
    cap = parse_cap(text)
    assert cap.to_string() == text if not isinstance(cap, UnknownCap) else pytest.fail("it parses")
    with pytest.raises(CapError, match=r"damaged|larger than the limit"):
        require_usable(cap)


@given(st.sampled_from([row["cap"] for row in VECTORS["caps"]]), st.data())
def test_parse_cap_when_a_character_of_an_extent_is_changed_never_gives_the_same_cap(
    text: str, data: st.DataObject
) -> None:
    position = data.draw(st.integers(4, len(text) - 1))
    character = data.draw(st.characters(max_codepoint=127).filter(lambda c: c != text[position]))
    changed = parse_cap(text[:position] + character + text[position + 1 :])
    assert changed != parse_cap(text)


fields = st.one_of(
    st.sampled_from(["a" * 26, "a" * 52, "CHK", "LIT", "", "0", "1", "007"]),
    st.integers(0, 2**70).map(str),
    st.text(max_size=4),
)


@given(
    st.sampled_from(["", "imm.", "ro."]),
    st.sampled_from(["GRID-SLICE", "GRID-SEQUENCE"]),
    st.one_of(
        st.lists(fields, max_size=10),
        st.lists(st.integers(0, 2**65).map(str), min_size=5, max_size=5).map(
            lambda numbers: ["a" * 26, "a" * 52, *numbers, "a" * 26]
        ),
    ),
    st.booleans(),
)
def test_parse_cap_when_given_anything_like_an_extent_answers_with_a_cap_that_parses_again(
    prefix: str, kind: str, parts: list[str], deep_immutable: bool
) -> None:
    cap = parse_cap(f"{prefix}URI:{kind}:{':'.join(parts)}", deep_immutable=deep_immutable)
    if isinstance(cap, UnknownCap):
        assert isinstance(cap.error, CapError)
    else:
        assert parse_cap(cap.to_string()) == cap
        try:
            require_usable(cap)
        except CapError as error:
            assert "a" * 26 not in str(error)


def test_repr_of_an_extent_shows_no_key() -> None:
    cap = parse_cap(VECTORS["caps"][0]["cap"])
    assert encode(b"\xff" * 16) not in repr(cap)
    assert f"{encode(bytes(range(16)))}:" not in repr(cap)
    assert "\\xff" not in repr(cap)


def test_slices_of_one_pack_when_parsed_share_it_and_its_text_is_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    pack = ChkCap(key=b"shared pack's key"[:16], ueb_hash=bytes(32), needed=3, total=10, size=10**6)
    slices = [SliceCap(pack=pack, offset=number * 100, length=100, key=bytes(16)) for number in range(50)]
    encoded: list[bytes] = []

    def noted(data: bytes) -> str:
        encoded.append(data)
        return encode(data)

    monkeypatch.setattr("grid.caps.values.base32.encode", noted)

    parsed = [parse_cap(cap.to_string()) for cap in slices]

    assert parsed == slices
    assert len({id(cap.pack) for cap in parsed if isinstance(cap, SliceCap)}) == 1
    assert encoded.count(pack.key) == encoded.count(pack.ueb_hash) == 1


@pytest.mark.parametrize("wrong", [{"offset": -1}, {"length": -1}, {"key": bytes(15)}, {"key": bytes(17)}])
def test_slice_with_impossible_numbers_or_key_is_refused(wrong: dict[str, Any]) -> None:
    pack = ChkCap(key=bytes(16), ueb_hash=bytes(32), needed=3, total=10, size=1000)
    with pytest.raises(ValueError, match="slice"):
        SliceCap(**{"pack": pack, "offset": 0, "length": 1, "key": bytes(16), **wrong})
