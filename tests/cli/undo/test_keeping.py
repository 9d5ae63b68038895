"""Keeping what commands replace in many places."""

from __future__ import annotations

from pathlib import Path

import click
import pytest

from grid.caps import DirectoryCap, LitCap, SdmfWriteCap
from grid.cli.undo.changes import Change
from grid.cli.undo.journal import Journal, Recorder
from grid.cli.undo.keeping import Keeper
from grid.directory.pack import Child

DIRECTORY = DirectoryCap(SdmfWriteCap(write_key=bytes(16), fingerprint=bytes(32)))
OLD, NEW = Child(target=LitCap(data=b"old")), LitCap(data=b"new")


@pytest.fixture
def journal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Journal:
    found = Journal(tmp_path / "state" / "undo")
    change = Change(number=0, time=1.0, command="sync", client="/client", links=())
    monkeypatch.setattr("grid.cli.undo.journal.open_recorder", lambda context: Recorder(found, change))
    return found


def keeper() -> Keeper:
    return Keeper(click.Context(click.Command("sync")))


def test_entries_of_several_directories_are_one_change_until_it_is_ended(journal: Journal) -> None:
    keeping_all = keeper()
    keep = keeping_all.below("work:docs", "docs")
    keep(DIRECTORY, [(("sub", "a"), OLD, None), (("sub", "b"), OLD, NEW), (("sub", "c"), OLD, OLD.target)])
    keep(DIRECTORY, [(("d",), OLD, None)])
    keeping_all.end_change()
    keep(DIRECTORY, [((), OLD, NEW)])
    first, second = journal.changes()
    assert [(link.name, link.shown) for link in first.links] == [
        ("a", "work:docs/sub/a"),
        ("b", "work:docs/sub/b"),
        ("d", "work:docs/d"),
    ]
    assert [link.new for link in first.links] == [None, Child(target=NEW), None]
    assert [(link.name, link.shown) for link in second.links] == [("docs", "work:docs")]
    assert second.number == first.number + 1


def test_journal_that_cannot_be_written_is_reported_once(journal: Journal, capsys: pytest.CaptureFixture[str]) -> None:
    journal.path.parent.mkdir()
    journal.path.write_bytes(b"something else\n")
    keep = keeper().below("work:docs", "docs")
    for _ in range(3):
        keep(DIRECTORY, [(("a",), OLD, None)])
    assert capsys.readouterr().err.count("warning: not kept for `grid undo`") == 1


def test_nothing_to_keep_opens_no_journal(journal: Journal) -> None:
    keeper().below("work:docs", "docs")(DIRECTORY, [(("a",), OLD, OLD.target)])
    assert not journal.path.exists()


def test_links_are_added_without_reading_the_journal(journal: Journal, monkeypatch: pytest.MonkeyPatch) -> None:
    keep = keeper().below("work:docs", "docs")
    keep(DIRECTORY, [(("a",), OLD, None)])
    with monkeypatch.context() as patch:
        patch.setattr(Journal, "_read", lambda self: pytest.fail("it was read"))
        for number in range(50):
            keep(DIRECTORY, [((f"{number}",), OLD, None)])
    (change,) = journal.changes()
    assert len(change.links) == 51


def test_links_added_after_a_torn_line_are_kept(journal: Journal) -> None:
    keep = keeper().below("work:docs", "docs")
    keep(DIRECTORY, [(("a",), OLD, None)])
    with journal.path.open("ab") as file:
        file.write(b'{"number": 1, "ti')
    keep(DIRECTORY, [(("b",), OLD, None)])
    (change,) = journal.changes()
    assert [link.name for link in change.links] == ["a", "b"]
