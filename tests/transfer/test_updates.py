"""Files that another program has put at the target meanwhile: what `--update` and `--size-only` leave as it is."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from attrs import evolve

from grid.transfer.choices import Comparison
from grid.transfer.comparing import Comparer
from grid.transfer.ends import Entry
from grid.transfer.journal import DONE, FAILED, STORED, UNSENT, Journal, Row
from grid.transfer.local_end import LocalEnd
from grid.transfer.outcome import Plan
from grid.transfer.rates import unlimited
from grid.transfer.traits import identity_of
from tests.transfer.test_engine import FAST, contents, send

S = 10**9
HERE = Entry(name="file", size=5, mtime_ns=1000 * S)
NEWER = Entry(name="file", size=9, mtime_ns=2000 * S)


def unchanged(tmp_path: Path, comparison: Comparison, state: str, there: Entry, here: Entry = HERE) -> bool:
    """Whether the file may stay at the target, after a run that left its row in this state."""
    end, journal = LocalEnd(str(tmp_path)), Journal(tmp_path / "journal.sqlite")
    try:
        journal.note([Row(source=identity_of(end), entry=HERE, state=state, token="token")])
        journal.listings.note_there([there])
        comparer = Comparer(journal, end, Plan(comparison=comparison), [end], unlimited)
        findings = comparer.examine(end, [here])
        assert findings.unchanged + len(findings.wanted) + len(findings.stored) == 1
        return bool(findings.unchanged)
    finally:
        journal.close()


@pytest.mark.parametrize("state", [STORED, UNSENT])
def test_file_that_became_newer_at_the_target_stays_after_a_failure(tmp_path: Path, state: str) -> None:
    assert unchanged(tmp_path, "update", state, NEWER)
    assert not unchanged(tmp_path, "time", state, NEWER)
    assert unchanged(tmp_path, "size", state, evolve(NEWER, size=HERE.size))


def test_file_that_was_found_to_be_wrong_is_sent_again_however_it_looks(tmp_path: Path) -> None:
    for comparison in ("update", "size", "time"):
        assert not unchanged(tmp_path, comparison, FAILED, HERE)


def test_file_that_changed_just_after_it_was_sent_is_sent_again(tmp_path: Path) -> None:
    changed = evolve(HERE, mtime_ns=1001 * S)
    for comparison in ("update", "time"):
        assert not unchanged(tmp_path, comparison, DONE, HERE, changed)
        assert unchanged(tmp_path, comparison, UNSENT, HERE, changed), "as when nothing is known of it"


def test_file_that_could_not_be_sent_and_became_newer_at_the_target_is_not_overwritten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = evolve(FAST, comparison="update", retries=0)
    for folder in ("source", "target"):
        (tmp_path / folder).mkdir()
    (tmp_path / "source" / "file").write_bytes(b"older")
    os.utime(tmp_path / "source" / "file", ns=(HERE.mtime_ns or 0,) * 2)
    with monkeypatch.context() as patch:
        patch.setattr("grid.transfer.local_partials.os.replace", _fail)
        assert len(send(tmp_path / "source", tmp_path / "target", tmp_path, plan).failures) == 1
    (tmp_path / "target" / "file").write_bytes(b"newer at the target")

    assert send(tmp_path / "source", tmp_path / "target", tmp_path, plan).unchanged == 1

    assert contents(tmp_path / "target") == {"file": b"newer at the target"}


def _fail(*arguments: object) -> None:
    raise OSError(5, "Input/output error")
