"""Capability strings: known answers, malformed strings, and arbitrary input."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import grid.caps
from grid.caps import (
    ChkCap,
    ChkVerifyCap,
    DirectoryCap,
    LitCap,
    UnknownCap,
    has_cap_prefix,
    is_literal,
    parse_cap,
    require_usable,
)
from grid.errors import CapError
from grid.limits import MAX_CAP_LENGTH, MAX_FILE_SIZE
from tests.vectors.make_caps import PATH

VECTORS: dict[str, list[dict[str, Any]]] = json.loads(PATH.read_text())
PREFIXES = [
    f"URI:{word}:"
    for word in (
        *("LIT", "CHK", "CHK-Verifier", "SSK", "SSK-RO", "SSK-Verifier", "MDMF", "MDMF-RO", "MDMF-Verifier"),
        *("DIR2", "DIR2-RO", "DIR2-Verifier", "DIR2-MDMF", "DIR2-MDMF-RO", "DIR2-MDMF-Verifier"),
        *("DIR2-CHK", "DIR2-CHK-Verifier", "DIR2-LIT", "DIR", "CHK-RO"),
    )
]


@pytest.mark.parametrize("row", VECTORS["caps"], ids=lambda row: row["cap"][:40])
def test_parse_cap_when_it_is_known_gives_its_kind_fields_and_text(row: dict[str, Any]) -> None:
    cap = parse_cap(row["cap"])
    assert not isinstance(cap, UnknownCap)
    assert cap == parse_cap(row["cap"].encode())
    assert isinstance(cap, DirectoryCap) == row.get("directory", False)
    body = cap.body if isinstance(cap, DirectoryCap) else cap
    assert type(body) is getattr(grid.caps, row["kind"])
    for name, value in row["fields"].items():
        held = getattr(body, name)
        assert (held.hex() if isinstance(held, bytes) else held) == value
    assert cap.to_string() == row["cap"]
    assert (cap.authority, cap.is_mutable) == (row["authority"], row["mutable"])


@pytest.mark.parametrize("row", VECTORS["other_spellings"], ids=lambda row: ascii(row["text"][-30:]))
def test_parse_cap_when_spelled_differently_gives_the_canonical_cap(row: dict[str, Any]) -> None:
    cap = parse_cap(row["text"])
    assert cap == parse_cap(row["cap"])
    assert not isinstance(cap, UnknownCap)
    assert cap.to_string() == row["cap"]


@pytest.mark.parametrize("row", VECTORS["refused"], ids=lambda row: ascii(row["text"][:40]))
def test_parse_cap_when_it_is_malformed_keeps_the_bytes_and_the_error(row: dict[str, Any]) -> None:
    cap = parse_cap(row["text"], deep_immutable=row["deep_immutable"])
    assert isinstance(cap, UnknownCap)
    assert cap.text == row["text"].encode()
    assert (type(cap.error).__name__ if cap.error else None) == row["error"]


def test_parse_cap_when_immutable_caps_are_in_an_immutable_directory_gives_them() -> None:
    immutable = [row["cap"] for row in VECTORS["caps"] if not row["mutable"]]
    assert len(immutable) > 20
    for text in immutable:
        for spelling in (text, "imm." + text, "ro." + text):
            assert parse_cap(spelling, deep_immutable=True) == parse_cap(text)


@pytest.mark.parametrize("prefix", ["", *PREFIXES])
def test_parse_cap_when_the_text_is_huge_keeps_it_unread(prefix: str) -> None:
    for filler in ("a", "1", ":", "\n", "ro."):
        text = (prefix + filler * 1_000_000)[:1_000_000]
        cap = parse_cap(text)
        assert isinstance(cap, UnknownCap)
        assert cap.text == text.encode()
        assert isinstance(cap.error, CapError)


def test_parse_cap_when_the_text_is_as_long_as_allowed_reads_it() -> None:
    data = bytes((MAX_CAP_LENGTH - 8) * 5 // 8)
    text = LitCap(data=data).to_string()
    assert len(text) == MAX_CAP_LENGTH
    assert parse_cap(text) == LitCap(data=data)
    assert isinstance(parse_cap(text + "aaaaaaaa"), UnknownCap)


def test_parse_cap_when_a_number_has_thousands_of_digits_is_an_error_not_a_crash() -> None:
    for prefix in ("URI:CHK:", "URI:CHK-Verifier:", "URI:DIR2-CHK:"):
        for digits in (33, 4300, 4301, 60000):
            cap = parse_cap(f"{prefix}{'a' * 26}:{'a' * 52}:3:10:{'9' * digits}")
            assert isinstance(cap, UnknownCap)
            assert isinstance(cap.error, CapError)


hexlike = st.text("abcdefghijklmnopqrstuvwxyz234567", max_size=60)
fields = st.one_of(
    hexlike, st.just("a" * 26), st.just("a" * 52), st.text("0123456789", max_size=5), st.text(max_size=3)
)
cap_like = st.builds(
    lambda attenuation, prefix, parts: attenuation + prefix + ":".join(parts),
    st.sampled_from(["", "ro.", "imm."]),
    st.sampled_from(PREFIXES),
    st.one_of(
        st.lists(fields, max_size=6),
        st.lists(st.integers(0, 400).map(str), min_size=3, max_size=4).map(
            lambda numbers: ["a" * 26, "a" * 52, *numbers]
        ),
    ),
)


@given(st.one_of(st.text(), st.binary(), cap_like), st.booleans())
@example("\ud800URI:LIT:", False)
@example("URI:LIT:\udcff", True)
def test_parse_cap_when_given_anything_answers_with_a_cap_that_prints_and_parses_again(
    text: str | bytes, deep_immutable: bool
) -> None:
    cap = parse_cap(text, deep_immutable=deep_immutable)
    if isinstance(cap, UnknownCap):
        assert cap.text == (text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass"))
        assert cap.error is None or isinstance(cap.error, CapError)
        with pytest.raises(CapError):
            require_usable(cap)
        return
    assert parse_cap(cap.to_string(), deep_immutable=deep_immutable) == cap
    assert parse_cap(cap.to_string()) == cap


@given(st.sampled_from([row["cap"] for row in VECTORS["caps"]]), st.data())
def test_parse_cap_when_a_character_is_changed_never_gives_the_same_cap(text: str, data: st.DataObject) -> None:
    position = data.draw(st.integers(0, len(text) - 1))
    character = data.draw(st.characters(max_codepoint=127).filter(lambda c: c != text[position]))
    changed = parse_cap(text[:position] + character + text[position + 1 :])
    assert changed != parse_cap(text)


def test_require_usable_when_numbers_cannot_be_those_of_a_file_raises() -> None:
    def make(needed: int, total: int, size: int) -> ChkCap:
        return ChkCap(key=bytes(16), ueb_hash=bytes(32), needed=needed, total=total, size=size)

    for cap in (make(1, 1, 1), make(256, 256, MAX_FILE_SIZE), make(1, 256, 55)):
        assert require_usable(cap) is cap
        assert require_usable(cap.verify_cap()) == cap.verify_cap()
        assert require_usable(DirectoryCap(cap)) == DirectoryCap(cap)
    for cap in (make(0, 1, 9), make(2, 1, 9), make(1, 257, 9), make(3, 10, 0), make(3, 10, MAX_FILE_SIZE + 1)):
        for form in (cap, cap.verify_cap(), DirectoryCap(cap), DirectoryCap(cap.verify_cap())):
            with pytest.raises(CapError):
                require_usable(form)
    assert require_usable(LitCap(data=b"")) == LitCap(data=b"")


def test_require_usable_when_the_cap_is_unknown_says_why() -> None:
    with pytest.raises(CapError, match="known kind"):
        require_usable(parse_cap("lafs://from_the_future"))
    with pytest.raises(CapError, match="read cap"):
        require_usable(parse_cap("ro.URI:SSK:"))


def test_predicates_when_text_begins_as_caps_do_say_so() -> None:
    for text in ("URI:x", "ro.URI:x", "imm.URI:x", "URI:LIT:"):
        assert has_cap_prefix(text)
    for text in ("", "uri:x", "tahoe:x", "ro.imm.URI:x", " URI:x", "ro.x"):
        assert not has_cap_prefix(text)
    assert [is_literal(text) for text in ("URI:LIT:", "ro.URI:LIT:x", "imm.URI:LIT:x")] == [True] * 3
    assert not is_literal("URI:DIR2-LIT:")
    assert isinstance(parse_cap("URI:CHK-Verifier:" + "a" * 26 + ":" + "a" * 52 + ":1:1:1"), ChkVerifyCap)
