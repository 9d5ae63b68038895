"""Names that a watch prints: what they contain does not reach the terminal as commands to it."""

from __future__ import annotations

from pathlib import Path

import click
import pytest

from grid.cli.commands.watch import _Options, _Report, _tell_status, watch
from grid.cli.terminal.progress import TransferDisplay
from grid.transfer.ends import Entry
from grid.transfer.journal import UNSENT, Journal, Row, journal_path
from grid.transfer.selection import Selection

NAME = "a\x1b]0;title\x07b"
_OPTIONS = _Options(
    folder="folder", target="target", settle=0, every=1, transfers=1, selection=Selection(), verify=False, unique=False,
    bwlimit=None,
)  # fmt: skip
SHOWN = '"a\\x1b]0;title\\x07b"'


def test_names_with_escape_sequences_are_printed_quoted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    with TransferDisplay(as_json=False, hidden=True) as display:
        _Report(display, as_json=False, is_quiet=False)._note_stored(Entry(name=NAME))
    journal = Journal(journal_path(["folder"], str(Path("target").absolute())))
    try:
        journal.note([Row(source="folder", entry=Entry(name=NAME), state=UNSENT, error=f"{NAME}: no room")])
        journal.note_under_way(Entry(name=NAME, size=1), 0.0)
        _tell_status(click.Context(watch), _OPTIONS, as_json=False)
    finally:
        journal.close()
    said = capsys.readouterr().out
    assert "\x1b" not in said and "\x07" not in said
    stored, *_, under_way, failed = said.splitlines()
    assert stored == SHOWN and SHOWN in under_way and "no room" in failed and "1 failed" in said
