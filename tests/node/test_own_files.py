"""The token that `grid web` hands over, and the aliases that the gateway reads."""

from __future__ import annotations

import stat
from hashlib import sha256
from pathlib import Path

import pytest

from grid.node.own_files import HANDED_OVER, TOKEN_S, ClientFiles, hand_over

WRITE = "URI:DIR2:" + "a" * 26 + ":" + "a" * 52


def test_token_is_found_until_it_is_taken_once_and_its_file_does_not_hold_it(tmp_path: Path) -> None:
    token = hand_over(tmp_path, 1000.0)
    files = ClientFiles(tmp_path)
    assert files.handed_over(1001.0) == sha256(token.encode()).digest()
    assert token not in (tmp_path / HANDED_OVER).read_text()
    assert stat.S_IMODE((tmp_path / HANDED_OVER).stat().st_mode) == 0o600
    assert files.take() and not files.take()
    assert files.handed_over(1001.0) is None


def test_token_is_found_for_some_minutes_only_and_not_before_it_was_made(tmp_path: Path) -> None:
    hand_over(tmp_path, 1000.0)
    files = ClientFiles(tmp_path)
    assert [files.handed_over(now) is not None for now in (900.0, 1000.0, 1000.0 + TOKEN_S - 1, 1000.0 + TOKEN_S)] == [
        False, True, True, False,
    ]  # fmt: skip


@pytest.mark.parametrize(
    "text", ["", "x", "00 1300", "zz" * 32 + " 1300", "00" * 32 + " nan", "00" * 32 + " 1300 1", "\0"]
)
def test_file_of_another_form_holds_no_token(tmp_path: Path, text: str) -> None:
    (tmp_path / HANDED_OVER).write_text(text)
    assert ClientFiles(tmp_path).handed_over(1000.0) is None


def test_aliases_that_name_directories_are_read_sorted_and_others_left_out(tmp_path: Path) -> None:
    lines = [f"work: {WRITE}", "file: URI:LIT:mfrgg", "broken: URI:DIR2:x", f"b: {WRITE}", "unknown: lafs://x"]
    (tmp_path / "aliases").write_text("\n".join(lines))
    assert [name for name, _ in ClientFiles(tmp_path).aliases()] == ["b", "work"]
    assert ClientFiles(tmp_path / "missing").aliases() == []
    (tmp_path / "aliases").write_bytes(b"\xff")
    assert list(ClientFiles(tmp_path).aliases()) == []
