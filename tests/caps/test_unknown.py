"""Children of unknown kinds: the table of the specification, and arbitrary input."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grid.caps import UnknownCap, UnknownChild, parse_cap, settle_unknown_child
from grid.errors import CapError
from tests.vectors.make_caps import PATH

ROWS: list[dict[str, Any]] = json.loads(PATH.read_text())["unknown_children"]


def sample_bytes(text: str | None) -> bytes | None:
    return None if text is None else text.encode()


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['write']}-{row['read']}-{row['deep_immutable']}")
def test_settle_when_slots_are_given_keeps_what_the_table_says(row: dict[str, Any]) -> None:
    child = settle_unknown_child(
        sample_bytes(row["write"]), sample_bytes(row["read"]), deep_immutable=row["deep_immutable"]
    )
    if row["error"] is None:
        assert child == UnknownChild(write=sample_bytes(row["slots"][0]), read=sample_bytes(row["slots"][1]))
        assert child.error is None
    else:
        assert type(child.error).__name__ == row["error"]
        assert (child.write, child.read) == (None, None)


slots = st.one_of(st.none(), st.binary(max_size=9), st.sampled_from([b"ro.X", b"imm.X"]))


@given(slots, slots, st.booleans())
def test_settle_when_stored_and_read_back_gives_the_same_child(
    write: bytes | None, read: bytes | None, deep_immutable: bool
) -> None:
    child = settle_unknown_child(write, read, deep_immutable=deep_immutable)
    if child.error is not None:
        assert isinstance(child.error, CapError)
        assert (child.write, child.read) == (None, None)
        return
    stored = child.stored_read(deep_immutable=deep_immutable)
    # A prefix of a prefix is lost on the way, as the slot implies one only.
    if child.read is not None and stored and not stored.startswith((b"ro.", b"imm.") if deep_immutable else b"ro."):
        assert settle_unknown_child(child.write, stored, deep_immutable=deep_immutable) == child
        assert child.read.startswith(b"imm." if deep_immutable else (b"ro.", b"imm."))


@given(slots, slots)
def test_settle_when_the_directory_is_immutable_never_keeps_a_write_cap(
    write: bytes | None, read: bytes | None
) -> None:
    assert settle_unknown_child(write, read, deep_immutable=True).write is None


def test_stored_read_when_the_slot_implies_the_prefix_drops_it() -> None:
    read_only, immutable = UnknownChild(read=b"ro.Y"), UnknownChild(read=b"imm.Y")
    assert read_only.stored_read(deep_immutable=False) == b"Y"
    assert immutable.stored_read(deep_immutable=False) == b"imm.Y"
    assert immutable.stored_read(deep_immutable=True) == b"Y"
    assert UnknownChild().stored_read(deep_immutable=False) == b""


def test_settle_when_the_read_cap_is_known_keeps_it_beside_the_unknown_write_cap() -> None:
    child = settle_unknown_child(b"lafs://write", b"URI:LIT:nbswy3dp")
    assert child == UnknownChild(write=b"lafs://write", read=b"ro.URI:LIT:nbswy3dp")
    assert child.read is not None
    assert not isinstance(parse_cap(child.read), UnknownCap)


def test_repr_when_shown_holds_neither_slot() -> None:
    assert "SECRET" not in repr(settle_unknown_child(b"SECRET1", b"SECRET2"))
