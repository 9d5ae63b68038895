"""The blacklist of objects."""

from __future__ import annotations

import os
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from grid.codec import base32
from grid.gateway.shared.blacklist import Blacklist, parse_blacklist

INDEX = bytes(range(16))
NAME = base32.encode(INDEX)


def test_entry_when_parsed_then_gives_its_reason() -> None:
    text = f"# a comment\n\n{NAME} not  yours\nrubbish here\n{base32.encode(bytes(16))}\n"
    assert parse_blacklist(text.encode()) == {INDEX: "not yours", bytes(16): "no reason is given"}


def test_file_when_missing_then_lists_nothing(tmp_path: Path) -> None:
    assert Blacklist(tmp_path / "access.blacklist").reason(INDEX) is None


def test_file_that_cannot_be_read_for_a_while_blocks_what_it_blocked(tmp_path: Path) -> None:
    file = tmp_path / "access.blacklist"
    file.write_text(f"{base32.encode(bytes(16))} stays blocked\n")
    blacklist = Blacklist(file)
    assert blacklist.reason(bytes(16)) == "stays blocked"
    file.unlink()
    file.mkdir()  # Opening it fails, also for root.
    assert blacklist.reason(bytes(16)) == "stays blocked"
    file.rmdir()
    assert blacklist.reason(bytes(16)) is None


def test_file_when_changed_or_removed_then_is_read_again(tmp_path: Path) -> None:
    file = tmp_path / "access.blacklist"
    blacklist = Blacklist(file)
    file.write_text(f"{NAME} first\n")
    assert blacklist.reason(INDEX) == "first"
    file.write_text(f"{NAME} second one\n")
    os.utime(file, ns=(1, 1))
    assert blacklist.reason(INDEX) == "second one"
    file.unlink()
    assert blacklist.reason(INDEX) is None


@given(st.binary(max_size=200))
def test_any_bytes_when_parsed_then_do_no_harm(data: bytes) -> None:
    assert all(len(index) == 16 for index in parse_blacklist(data))
