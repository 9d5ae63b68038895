"""Changes that a gateway remembers while it does not run."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from grid.caps import ChkCap, DirectoryCap, LitCap, SdmfWriteCap, UnknownChild
from grid.directory.edits import RemoveChild, SetChild
from grid.directory.pack import Child
from grid.errors import FormatError
from grid.gateway.history import undo_file, undo_journal
from grid.gateway.history.undo_file import SealedChange, UndoFile, seal, unseal
from grid.gateway.history.undo_journal import UndoJournal

CAP = DirectoryCap(SdmfWriteCap(write_key=bytes(16), fingerprint=bytes(32)))
OTHER = DirectoryCap(SdmfWriteCap(write_key=bytes([1] * 16), fingerprint=bytes(32)))
FILE = ChkCap(key=b"k" * 16, ueb_hash=b"u" * 32, needed=3, total=10, size=123_456)
UNKNOWN = UnknownChild(write=b"x-future:\xff", read=b"ro.x-future:1")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "undo"


def journal(path: Path, warnings: list[str] | None = None) -> UndoJournal:
    """That of a gateway that has just started."""
    return UndoJournal(UndoFile(path, os.urandom, (warnings if warnings is not None else []).append))


def remove(journal: UndoJournal, name: str, cap: DirectoryCap = CAP) -> None:
    journal.record(cap, [RemoveChild(name)], {name: Child(target=LitCap(data=name.encode()))}, 1.5)


def names(journal: UndoJournal, cap: DirectoryCap = CAP) -> list[str]:
    return [change.entries[0].name for change in journal.changes(cap)]


def test_changes_are_the_same_after_a_restart(path: Path) -> None:
    before = journal(path)
    metadata = {"mtime": 1.25, "tahoe": {"linkmotime": 7}, "ü": [None]}
    for old, new in ((FILE, None), (CAP, FILE), (UNKNOWN, UNKNOWN.__class__(read=b"ro.x-future:2"))):
        edits = [RemoveChild("ü") if new is None else SetChild("ü", new)]
        before.record(CAP, edits, {"ü": Child(target=old, metadata=metadata)}, 1.5)
    after = journal(path)
    for one, other in zip(before.changes(CAP), after.changes(CAP), strict=True):
        assert (one.number, one.time, one.index) == (other.number, other.time, other.index)
        assert one.entries == other.entries
    remove(after, "next")
    assert [change.number for change in after.changes(CAP)] == [4, 3, 2, 1]


def test_file_is_private_and_shows_neither_capabilities_nor_names(path: Path) -> None:
    remembered = journal(path)
    remembered.record(CAP, [RemoveChild("secret name")], {"secret name": Child(target=FILE)}, 1.0)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    data = path.read_bytes()
    assert b"URI:" not in data and b"secret" not in data


def test_only_the_write_capability_of_the_directory_opens_its_changes(path: Path) -> None:
    sealed = seal(CAP, 3, [("a", Child(target=FILE), None)], bytes(12))
    change = SealedChange(number=3, index=bytes(16), time=1.0, sealed=sealed)
    assert unseal(CAP, change) == [("a", Child(target=FILE), None)]
    read = CAP.read_cap()
    assert isinstance(read, DirectoryCap)
    forged = [SealedChange(number=4, index=bytes(16), time=1.0, sealed=sealed)]
    forged += [
        SealedChange(number=3, index=bytes(16), time=1.0, sealed=sealed[:place] + bytes([sealed[place] ^ 1]) + sealed[place + 1 :])
        for place in range(len(sealed))
    ]  # fmt: skip
    for wrong in forged:
        with pytest.raises(FormatError):
            unseal(CAP, wrong)
    for cap in (OTHER, read):
        with pytest.raises(FormatError):
            unseal(cap, change)


def test_changes_that_were_undone_or_are_too_old_do_not_return(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(undo_journal, "MAX_CHANGES", 3)
    before = journal(path)
    for name in "abcde":
        remove(before, name)
    before.drop(before.changes(CAP)[1])
    assert names(before) == names(journal(path)) == ["e", "c"]


def test_file_stays_small_however_many_changes_there_are(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(undo_journal, "MAX_CHANGES", 3)
    remembered = journal(path)
    most = 0
    for number in range(400):
        remove(remembered, f"{number:03}")
        most = max(most, path.read_bytes().count(b"\n"))
    assert most < 120
    assert names(journal(path)) == names(remembered) == ["399", "398", "397"]
    monkeypatch.setattr(undo_file, "MAX_FILE", 2 * undo_file.MAX_LINE + 2000)
    for number in range(40):
        remove(remembered, f"{number:03}")
        assert path.stat().st_size < 2500
    assert names(journal(path)) == names(remembered)


@pytest.mark.parametrize(
    "junk",
    [
        b"",
        b"junk",
        b'{"number": 1, "time',
        b"\xff\n{}\n[]\n",
        b'{"number": 1, "time": 1.0, "index": "zz", "sealed": "AA=="}\n',
    ],
)
def test_damaged_lines_are_skipped_and_what_follows_is_kept(path: Path, junk: bytes) -> None:
    remove(journal(path), "a")
    with path.open("ab") as file:
        file.write(junk)
    remove(journal(path), "b")
    assert names(journal(path)) == ["b", "a"]


def test_file_that_others_can_read_or_that_is_no_file_is_left_alone(path: Path) -> None:
    remove(journal(path), "a")
    path.chmod(0o644)
    warnings: list[str] = []
    remembered = journal(path, warnings)
    remove(remembered, "b")
    assert names(remembered) == ["b"]
    assert len(warnings) == 1 and "others can read or change it" in warnings[0]
    assert path.read_bytes().count(b"\n") == 1
    path.unlink()
    path.mkdir()
    remembered = journal(path)
    remove(remembered, "c")
    assert names(remembered) == ["c"]


def test_change_that_is_too_large_for_the_file_is_kept_in_memory(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(undo_file, "MAX_LINE", 100)
    remembered = journal(path)
    remove(remembered, "a")
    assert names(remembered) == ["a"] and names(journal(path)) == []
