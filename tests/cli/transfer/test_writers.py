"""Copying to and from an in-memory grid: its cost, and failures that affect only one file."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from grid.caps import ChkCap, DirectoryCap, LitCap
from grid.cli.terminal.progress import TransferDisplay
from grid.cli.transfer.copy_plan import CopyError
from grid.cli.transfer.database import LocalDatabase
from grid.cli.transfer.local_tree import ScanRules, scan_directory
from grid.cli.transfer.remote_tree import scan_remote
from grid.cli.transfer.to_local import LocalWriter
from grid.cli.transfer.to_remote import RemoteWriter
from grid.cli.transfer.tree import Branch, Leaf, RemoteOrigin
from grid.cli.transfer.upload import Uploader
from grid.directory.edits import SetChild
from grid.directory.pack import Child
from tests.support.tree_grid import TreeGrid


@pytest.fixture
def grid() -> TreeGrid:
    return TreeGrid()


@pytest.fixture
def database(tmp_path: Path) -> Iterator[LocalDatabase]:
    opened = LocalDatabase(tmp_path / "db", pytest.fail)
    yield opened
    opened.close()


@pytest.fixture
def display() -> TransferDisplay:
    return TransferDisplay(as_json=False)


def remote_writer(grid: TreeGrid, database: LocalDatabase, display: TransferDisplay, spool: Path) -> RemoteWriter:
    uploader = Uploader(grid.store, database, display.tally, display.update, follow_links=True)
    return RemoteWriter(grid.store, uploader, display, jobs=4, spool=spool)


def local_tree(root: Path) -> Branch:
    return scan_directory(str(root), ScanRules(follow_links=True)).root


def tree_of(grid: TreeGrid, cap: DirectoryCap) -> Branch:
    scan = grid.run(scan_remote(grid.client(), RemoteOrigin(cap=cap, where="w:")))
    assert not scan.left_out and not scan.unknown
    return scan.root


def write_files(root: Path, *names: str) -> None:
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(name.encode() * 50)


def test_tree_when_copied_there_costs_one_publish_for_each_directory(
    grid: TreeGrid, database: LocalDatabase, display: TransferDisplay, tmp_path: Path
) -> None:
    source = tmp_path / "source"
    write_files(source, *(f"old/{number}" for number in range(20)), "new/sub/a", "new/b", "top")
    target = grid.make()
    grid.run(target.make_directory("old"))
    grid.sent()
    writer = remote_writer(grid, database, display, tmp_path)
    grid.run(writer.copy_into(target, local_tree(source)))
    writes = grid.sent()
    made = tree_of(grid, target.cap)
    assert made.count() == (23, 4) and not display.tally.failures
    # new/sub, new, old and the target itself: a publish sends one message to each server.
    assert writes["WriteSlot"] == dict.fromkeys((f"s{index}" for index in range(10)), 4)


def test_names_when_equal_on_the_grid_are_reported_and_one_is_copied(
    grid: TreeGrid, database: LocalDatabase, display: TransferDisplay, tmp_path: Path
) -> None:
    source = tmp_path / "source"
    write_files(source, "\u00e9", "e\u0301")
    target = grid.make()
    grid.run(remote_writer(grid, database, display, tmp_path).copy_into(target, local_tree(source)))
    assert grid.names(target.cap) == ["\u00e9"] and len(display.tally.failures) == 1


def test_kinds_when_they_conflict_stop_nothing_else(
    grid: TreeGrid, database: LocalDatabase, display: TransferDisplay, tmp_path: Path
) -> None:
    source = tmp_path / "source"
    write_files(source, "file-here/inside", "directory-here", "fine")
    target = grid.make()
    grid.run(target.edit([SetChild("file-here", LitCap(data=b"old"))]))
    grid.run(target.make_directory("directory-here"))
    grid.run(remote_writer(grid, database, display, tmp_path).copy_into(target, local_tree(source)))
    assert grid.names(target.cap) == ["directory-here", "file-here", "fine"]
    assert len(display.tally.failures) == 2
    assert grid.run(target.list())["file-here"].target == LitCap(data=b"old")


def test_directories_when_they_hold_each_other_are_cut_where_they_come_back(grid: TreeGrid) -> None:
    top = grid.make()
    below = grid.run(top.make_directory("below"))
    grid.run(below.edit([SetChild("up", top.cap), SetChild("self", below.cap.read_cap())]))
    scan = grid.run(scan_remote(grid.client(), RemoteOrigin(cap=top.cap, where="w:")))
    assert scan.root.count() == (0, 2) and len(scan.left_out) == 2


def test_directories_when_they_unfold_without_end_are_refused(grid: TreeGrid, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("grid.cli.transfer.remote_tree.MAX_TREE_ENTRIES", 1000)
    cap = grid.run(grid.store.create_immutable_directory({"end": Child(target=LitCap(data=b"."))}))
    for _ in range(40):
        cap = grid.run(grid.store.create_immutable_directory({name: Child(target=cap) for name in ("a", "b")}))
    with pytest.raises(CopyError, match="more than 1000 files and directories"):
        grid.run(scan_remote(grid.client(), RemoteOrigin(cap=cap, where="w:")))


def test_paths_when_long_and_many_are_refused_before_they_fill_the_memory(
    grid: TreeGrid, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("grid.cli.transfer.remote_tree.MAX_TREE_PATHS", 50_000)
    nothing = DirectoryCap(LitCap(data=b""))
    cap = grid.run(grid.store.create_immutable_directory({f"{number}": Child(target=nothing) for number in range(100)}))
    for depth in range(40):
        if depth == 3:
            assert grid.run(scan_remote(grid.client(), RemoteOrigin(cap=cap, where="w:"))).root.count() == (0, 104)
        cap = grid.run(grid.store.create_immutable_directory({"n" * 20: Child(target=cap)}))
    with pytest.raises(CopyError, match="the paths below w: are too long"):
        grid.run(scan_remote(grid.client(), RemoteOrigin(cap=cap, where="w:")))


def test_directory_when_it_cannot_be_read_stops_no_other(grid: TreeGrid) -> None:
    top = grid.make()
    lost = DirectoryCap(ChkCap(key=bytes(16), ueb_hash=bytes(32), needed=3, total=10, size=500))
    grid.run(top.edit([SetChild("lost", lost), SetChild("fine", LitCap(data=b"fine"))]))
    scan = grid.run(scan_remote(grid.client(), RemoteOrigin(cap=top.cap, where="w:")))
    assert set(scan.root.leaves) == {"fine"} and not scan.root.branches
    (line,) = scan.left_out
    assert line.startswith("w:lost: ")


def copy_here(grid: TreeGrid, database: LocalDatabase, display: TransferDisplay, tree: Branch, target: Path) -> None:
    writer = LocalWriter(grid.store, database, display, jobs=4, keep_metadata=True)
    grid.run(writer.copy_into(str(target), tree))


def test_metadata_when_hostile_is_not_taken_at_its_word(
    grid: TreeGrid, database: LocalDatabase, display: TransferDisplay, tmp_path: Path
) -> None:
    hostile: list[dict[str, object]] = [
        {"st_mode": 0o106777, "mtime": 1.5e9},
        {"st_mode": "rwx", "mtime": "yesterday"},
        {"st_mode": -1, "mtime": float("nan")},
        {"st_mode": True, "mtime": 1e300},
        {"st_mode": 2**80, "mtime": -5.5},
    ]
    children = {
        str(number): Child(target=LitCap(data=b"x"), metadata=metadata) for number, metadata in enumerate(hostile)
    }
    tree = Branch("", None)
    for name, child in children.items():
        assert isinstance(child.target, LitCap)
        tree.leaves[name] = Leaf(name, RemoteOrigin(cap=child.target, where=name, metadata=child.metadata))
    target = tmp_path / "target"
    copy_here(grid, database, display, tree, target)
    assert not display.tally.failures
    modes = {path.name: path.stat().st_mode & 0o7777 for path in target.iterdir()}
    assert modes["0"] == 0o777 and all(mode <= 0o777 for mode in modes.values())
    assert (target / "0").stat().st_mtime == 1.5e9 and (target / "4").stat().st_mtime == -5.5


def test_names_when_the_file_system_ignores_case_are_refused_but_for_the_first(
    grid: TreeGrid,
    database: LocalDatabase,
    display: TransferDisplay,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cap = grid.run(
        grid.store.create_immutable_directory(
            {name: Child(target=LitCap(data=name.encode())) for name in ("A", "a", "b")}
        )
    )
    copy_here(grid, database, display, tree_of(grid, cap), tmp_path / "both")
    assert sorted(os.listdir(tmp_path / "both")) == ["A", "a", "b"] and not display.tally.failures
    monkeypatch.setattr("grid.cli.transfer.to_local._ignores_case", lambda directory: True)
    copy_here(grid, database, display, tree_of(grid, cap), tmp_path / "one")
    assert sorted(os.listdir(tmp_path / "one")) == ["A", "b"] and len(display.tally.failures) == 1


def test_file_when_its_place_is_a_directory_stops_no_other_and_leaves_nothing_half_written(
    grid: TreeGrid, database: LocalDatabase, display: TransferDisplay, tmp_path: Path
) -> None:
    cap = grid.run(
        grid.store.create_immutable_directory({name: Child(target=LitCap(data=b"x")) for name in ("taken", "fine")})
    )
    (tmp_path / "target" / "taken").mkdir(parents=True)
    copy_here(grid, database, display, tree_of(grid, cap), tmp_path / "target")
    assert sorted(os.listdir(tmp_path / "target")) == ["fine", "taken"] and len(display.tally.failures) == 1
