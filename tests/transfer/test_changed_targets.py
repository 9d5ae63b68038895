"""Files of a target that somebody has changed since they were sent."""

from __future__ import annotations

import asyncio
import os
import sqlite3
from pathlib import Path

import pytest
from attrs import evolve

from grid.caps import LitCap
from grid.engine.grid import Encoding
from grid.transfer.choices import Comparison
from grid.transfer.ends import Entry
from grid.transfer.grid_end import GridEnd
from grid.transfer.local_end import LocalEnd
from grid.transfer.opening import Request, transfer
from grid.transfer.outcome import Observer, Outcome, Plan
from grid.transfer.traits import keep_times
from tests.support.tree_grid import TreeGrid
from tests.transfer.test_changes_in_doubt import Session
from tests.transfer.test_engine import FAST, send


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A directory whose `a` has two files."""
    (tmp_path / "a").mkdir()
    for name in ("f", "g"):
        (tmp_path / "a" / name).write_bytes(b"first")
        os.utime(tmp_path / "a" / name, (1e9, 1e9))
    return tmp_path


def run(folder: Path, comparison: Comparison = "time") -> Outcome:
    """Send `a` to `b` as the command does."""
    plan = Plan(comparison=comparison)
    request = Request(sources=[f"{folder}/a"], target=f"{folder}/b", plan=plan)
    return asyncio.run(transfer(request, lambda text, *, is_target: LocalEnd(text, is_target=is_target), Observer()))


@pytest.mark.parametrize("comparison", ["time", "checksum"])
def test_file_that_is_overwritten_at_the_target_is_sent_again(folder: Path, comparison: Comparison) -> None:
    assert run(folder).copied == 2
    assert run(folder, comparison).unchanged == 2
    (folder / "b" / "f").write_bytes(b"other")
    outcome = run(folder, comparison)
    assert (outcome.copied, outcome.unchanged) == (1, 1)
    assert (folder / "b" / "f").read_bytes() == b"first"


def test_file_of_the_same_contents_is_not_sent_again_although_its_time_at_the_target_differs(folder: Path) -> None:
    run(folder)
    os.utime(folder / "b" / "f", (2e9, 2e9))
    for _ in range(2):
        outcome = run(folder, "checksum")
        assert (outcome.copied, outcome.unchanged) == (0, 2)
    assert (folder / "b" / "f").stat().st_mtime == 2e9


class _Store(LocalEnd):
    """A target that keeps no times, and lists its own."""

    keeps_times = False

    def as_listed(self, entry: Entry) -> Entry:
        return evolve(entry, mtime_ns=None, tag="")


def test_facts_that_only_a_listing_gives_are_compared_from_then_on(folder: Path) -> None:
    target = _Store(f"{folder}/b")
    assert not keep_times(LocalEnd("a"), target) and keep_times(LocalEnd("a"), LocalEnd("b"))
    send(folder / "a", target, folder)
    os.utime(folder / "b" / "f", (2e9, 2e9))
    assert send(folder / "a", target, folder, evolve(FAST, dry_run=True)).unchanged == 2
    assert send(folder / "a", target, folder).unchanged == 2
    (folder / "b" / "f").write_bytes(b"other")
    assert send(folder / "a", target, folder).copied == 1
    assert send(folder / "a", target, folder).unchanged == 2


def test_journal_of_an_earlier_version_has_no_facts_of_the_target_and_gets_them(folder: Path) -> None:
    target = _Store(f"{folder}/b")
    send(folder / "a", target, folder)
    with sqlite3.connect(folder / "journal.sqlite") as rows:
        rows.execute("DROP TABLE seen")
    assert send(folder / "a", target, folder).unchanged == 2
    (folder / "b" / "f").unlink()
    (folder / "b" / "f").write_bytes(b"other")
    os.utime(folder / "b" / "f", (3e9, 3e9))
    assert send(folder / "a", target, folder).copied == 1


def test_link_of_the_grid_that_leads_elsewhere_by_now_is_made_again_although_its_time_is_the_same(folder: Path) -> None:
    from grid.directory.edits import SetChild

    grid = TreeGrid(1, Encoding(k=1, n=1, happy=1))
    directory = grid.make()
    end = GridEnd(Session(grid), directory.cap, (), "work:")  # type: ignore[arg-type]

    async def store(entry: Entry, body: object) -> str:
        return LitCap(data=b"first").to_string()

    end.store = store  # type: ignore[method-assign]
    assert send(folder / "a", end, folder).copied == 2
    assert send(folder / "a", end, folder).unchanged == 2
    grid.run(directory.edit([SetChild("f", LitCap(data=b"other"))]))
    assert send(folder / "a", end, folder).copied == 1
