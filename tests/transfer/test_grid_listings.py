"""What a transfer lists of the grid: directories that are linked several times, that contain themselves, and that unfold."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from attrs import evolve

from grid.caps import LitCap, UnknownChild
from grid.directory.edits import SetChild
from grid.directory.node import Directory
from grid.directory.pack import Child
from grid.transfer.ends import EndError, Entry, LeftOut, SourceChangedError
from grid.transfer.grid_end import GridEnd
from tests.support.tree_grid import TreeGrid
from tests.transfer.test_changes_in_doubt import Session
from tests.transfer.test_engine import FAST, send

FILE = Child(target=LitCap(data=b"x"), metadata={})


@pytest.fixture(scope="module")
def grid() -> TreeGrid:
    """A grid of one server."""
    from grid.engine.grid import Encoding

    return TreeGrid(1, Encoding(k=1, n=1, happy=1))


def found(grid: TreeGrid, directory: Directory) -> list[Entry | LeftOut]:
    """Everything that a transfer lists."""

    async def case() -> list[Entry | LeftOut]:
        end = GridEnd(Session(grid), directory.cap, (), "work:")  # type: ignore[arg-type]
        return [each async for each in end.entries()]

    return asyncio.run(case())


def test_directory_that_is_linked_twice_is_listed_at_both_places(grid: TreeGrid) -> None:
    shared = grid.make(children={"f": FILE}).cap
    top = grid.make(children={"a": Child(target=shared), "b": Child(target=shared)})
    assert sorted(each.name for each in found(grid, top) if isinstance(each, Entry)) == ["a/f", "b/f"]


def test_directory_that_contains_itself_is_left_out_and_lacks_nothing(grid: TreeGrid) -> None:
    below = grid.make(children={"f": FILE})
    top = grid.make(children={"a": Child(target=below.cap)})
    grid.run(below.edit([SetChild("again", top.cap)]))
    names = {each.name: each for each in found(grid, top)}
    assert set(names) == {"a/f", "a/again"}
    assert names["a/again"] == LeftOut("a/again", "this directory contains itself")


def test_file_of_an_unknown_kind_is_left_out_and_its_copy_stays(grid: TreeGrid, tmp_path: Path) -> None:
    top = grid.make(children={"f": FILE, "new": Child(target=UnknownChild(read=b"ro.URI:NEW:x"), metadata={})})
    target = tmp_path / "target"
    target.mkdir()
    for name in ("new", "gone"):
        (target / name).write_bytes(b"x")
    end = GridEnd(Session(grid), top.cap, (), "work:")  # type: ignore[arg-type]
    outcome = send(end, target, tmp_path, evolve(FAST, delete=True, dry_run=True))
    assert [each.name for each in outcome.left_out] == ["new"]
    assert list(outcome.planned) == [("send", "f"), ("remove", "gone")]


def test_name_that_is_too_long_for_the_target_is_a_failure_and_one_that_leads_elsewhere_is_left_out(
    grid: TreeGrid, tmp_path: Path
) -> None:
    long = "\u00fc" * 128
    top = grid.make(children={"f": FILE, long: FILE, "..": FILE})
    end = GridEnd(Session(grid), top.cap, (), "work:")  # type: ignore[arg-type]
    outcome = send(end, tmp_path / "target", tmp_path, evolve(FAST, dry_run=True))
    ((name, error),) = outcome.failures
    assert name == long and "cannot hold it: it has a name longer than 255 bytes" in str(error)
    assert [each.name for each in outcome.left_out] == [".."]
    assert list(outcome.planned) == [("send", "f")]


def test_directories_that_unfold_without_end_are_refused(grid: TreeGrid, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("grid.transfer.grid_listing.MOST_REPEATED", 20)
    cap = grid.make(children={"f": FILE}).cap
    for _ in range(6):
        cap = grid.make(children={"a": Child(target=cap), "b": Child(target=cap)}).cap
    with pytest.raises(EndError, match="linked again and again"):
        found(grid, grid.store.directory(cap))


def test_directories_that_are_nested_too_deeply_are_a_gap(grid: TreeGrid, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("grid.transfer.grid_listing.MAX_DEPTH", 2)
    cap = grid.make(children={"f": FILE}).cap
    for _ in range(3):
        cap = grid.make(children={"d": Child(target=cap)}).cap
    gaps = [each for each in found(grid, grid.store.directory(cap)) if isinstance(each, LeftOut)]
    assert [(each.name, each.is_gap) for each in gaps] == [("d/d/d", True)]


def test_mutable_file_that_changes_while_it_is_read_is_no_source(grid: TreeGrid) -> None:
    cap = grid.run(grid.store.put_mutable(b"first"))
    top = grid.make(children={"f": Child(target=cap, metadata={})})

    async def case() -> None:
        end = GridEnd(Session(grid), top.cap, (), "work:")  # type: ignore[arg-type]
        opened = await end.open(Entry(name="f"))
        assert (opened.entry.size, [bytes(each) async for each in opened.read(0, 5)]) == (5, [b"first"])
        await opened.require_unchanged()
        grid.run(grid.client().open_mutable(cap).overwrite(b"other"))
        with pytest.raises(SourceChangedError):
            await opened.require_unchanged()
        assert (await end.open(Entry(name="f"))).entry.facts != opened.entry.facts, "nothing is resumed"

    asyncio.run(case())
