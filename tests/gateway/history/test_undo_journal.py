"""The changes that a gateway remembers so that they can be undone, and their bounds."""

from __future__ import annotations

import pytest

from grid.caps import DirectoryCap, LitCap, SdmfWriteCap
from grid.directory.edits import RemoveChild, SetChild
from grid.directory.pack import Child
from grid.gateway.history import undo_journal
from grid.gateway.history.undo_journal import UndoJournal

CAP = DirectoryCap(SdmfWriteCap(write_key=bytes(16), fingerprint=bytes(32)))
OTHER = DirectoryCap(SdmfWriteCap(write_key=bytes([1] * 16), fingerprint=bytes(32)))


def child(text: bytes) -> Child:
    return Child(target=LitCap(data=text), metadata={})


def remove(journal: UndoJournal, name: str, cap: DirectoryCap = CAP, text: bytes = b"x") -> None:
    journal.record(cap, [RemoveChild(name)], {name: child(text)}, 1.0)


def test_changes_when_listed_are_those_of_the_directory_and_the_newest_first() -> None:
    journal = UndoJournal()
    remove(journal, "a")
    remove(journal, "b", OTHER)
    remove(journal, "c")
    assert [change.entries[0].name for change in journal.changes(CAP)] == ["c", "a"]
    assert journal.find(OTHER, journal.changes(CAP)[0].number) is None


def test_changes_when_the_capability_only_reads_are_none() -> None:
    journal = UndoJournal()
    remove(journal, "a")
    read = CAP.read_cap()
    assert isinstance(read, DirectoryCap)
    assert journal.changes(read) == []
    assert journal.find(read, journal.changes(CAP)[0].number) is None


def test_rename_and_new_metadata_are_not_recorded() -> None:
    journal = UndoJournal()
    journal.record(CAP, [SetChild("b", LitCap(data=b"x")), RemoveChild("a")], {"a": child(b"x")}, 1.0)
    journal.record(CAP, [SetChild("a", LitCap(data=b"x"))], {"a": child(b"x")}, 1.0)
    assert journal.changes(CAP) == []


def test_move_is_forgotten_and_a_removal_before_it_is_not() -> None:
    journal = UndoJournal()
    remove(journal, "a")
    remove(journal, "b")
    journal.forget_moved(CAP, ["a"])
    assert len(journal.changes(CAP)) == 2
    journal.forget_moved(CAP, ["b"])
    assert [change.entries[0].name for change in journal.changes(CAP)] == ["a"]


def test_oldest_changes_go_when_there_are_too_many_or_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(undo_journal, "MAX_CHANGES", 3)
    journal = UndoJournal()
    for number in range(5):
        remove(journal, str(number))
    assert [change.entries[0].name for change in journal.changes(CAP)] == ["4", "3", "2"]
    monkeypatch.setattr(undo_journal, "MAX_SIZE", 2 * journal.changes(CAP)[0].size + 1)
    remove(journal, "5")
    assert [change.entries[0].name for change in journal.changes(CAP)] == ["5", "4"]
    remove(journal, "6", text=b"y" * 3000)
    assert [change.entries[0].name for change in journal.changes(CAP)] == ["5", "4"]


def test_change_of_very_many_entries_is_not_kept() -> None:
    journal = UndoJournal()
    previous = {str(number): child(b"x") for number in range(undo_journal.MAX_ENTRIES + 1)}
    journal.record(CAP, [RemoveChild(name) for name in previous], previous, 1.0)
    assert journal.changes(CAP) == []
