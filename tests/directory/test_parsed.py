"""Parsed directories kept by capability and contents: counts of parses, and who sees what."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from grid.caps import DirectoryCap, KnownCap, LitCap
from grid.directory import node, parsed
from grid.directory.edits import SetChild
from grid.directory.file_store import FileStore
from grid.directory.large import LARGE
from grid.directory.pack import Child, Entry, make_entry, pack_directory, parse_directory
from grid.directory.parsed import Parsed, ParsedDirectories
from tests.support.tree_grid import TreeGrid

FILE = LitCap(data=b"file")


@pytest.fixture(scope="module")
def grid() -> TreeGrid:
    """One grid for all tests here; they make directories of their own."""
    return TreeGrid()


@pytest.fixture
def parses(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes of the directories that are parsed from now on."""
    sizes: list[int] = []

    def counted(data: bytes, **options: Any) -> dict[str, Entry]:
        sizes.append(len(data))
        return parse_directory(data, **options)

    monkeypatch.setattr(node, "parse_directory", counted)
    return sizes


def many(count: int) -> dict[str, Child]:
    return {f"{number:05}": Child(target=FILE, metadata={"tahoe": {"linkcrtime": 1.5}}) for number in range(count)}


def listed(grid: TreeGrid, store: FileStore, cap: DirectoryCap) -> Mapping[str, Child]:
    return grid.run(store.directory(cap).list())


@pytest.mark.parametrize("format", ["sdmf", "mdmf"])
def test_list_when_nothing_changed_then_neither_fetches_nor_parses(
    grid: TreeGrid, parses: list[int], format: str
) -> None:
    cap = grid.make(children=many(1100), format=format).cap
    store = grid.client()
    first = listed(grid, store, cap)
    grid.sent()
    for _ in range(3):
        assert listed(grid, store, cap) is first
        sent = grid.sent()
        assert list(sent) == ["ReadFronts"] and list(sent["ReadFronts"].values()) == [1] * 5
    assert len(parses) == 1 and len(first) == 1100


def test_list_when_it_follows_an_edit_then_does_not_parse(grid: TreeGrid, parses: list[int]) -> None:
    store = grid.client()
    cap = grid.run(store.create_directory(many(300)))
    listed(grid, store, cap)
    for number in range(3):
        grid.run(store.directory(cap).edit([SetChild(f"new {number}", FILE)]))
        assert f"new {number}" in listed(grid, store, cap)
    assert len(parses) == 1


def test_list_when_another_client_has_edited_then_shows_its_edit(grid: TreeGrid, parses: list[int]) -> None:
    cap = grid.make(children=many(100)).cap
    store, other = grid.client(), grid.client()
    for number in range(3):
        assert len(listed(grid, store, cap)) == 100 + number
        grid.run(other.directory(cap).edit([SetChild(f"new {number}", FILE)]))
    assert len(listed(grid, store, cap)) == 103
    assert len(parses) == 4 + 1


def test_list_when_a_writer_has_listed_then_a_reader_still_gets_no_write_capability(
    grid: TreeGrid, parses: list[int]
) -> None:
    inner = grid.make().cap
    cap = grid.make(children={"inner": Child(target=inner)}).cap
    store = grid.client()
    read_cap = cap.read_cap()
    assert isinstance(read_cap, DirectoryCap)
    for _ in range(2):
        assert authority(listed(grid, store, cap)["inner"]) == "write"
        assert authority(listed(grid, store, read_cap)["inner"]) == "read"
    assert len(parses) == 2


def authority(child: Child) -> str:
    assert isinstance(child.target, KnownCap)
    return child.target.authority


def test_immutable_directory_when_listed_again_then_is_not_parsed(grid: TreeGrid, parses: list[int]) -> None:
    store = grid.client()
    cap = grid.run(store.create_immutable_directory({"a": Child(target=FILE)}))
    assert listed(grid, store, cap) is listed(grid, store, cap)
    assert len(parses) == 1


def test_kept_when_they_take_too_much_memory_then_forgets_the_one_used_longest_ago(
    monkeypatch: pytest.MonkeyPatch, grid: TreeGrid
) -> None:
    caps = [grid.make().cap for _ in range(4)]
    entries = parse_directory(_packed(10), mutable=False)
    each = [Parsed(data=pack_directory(entries), entries=entries) for _ in range(4)]
    monkeypatch.setattr(parsed, "MOST_KEPT_BYTES", 3 * each[0].memory())
    kept = ParsedDirectories()
    for number in (0, 1, 2):
        kept.put(caps[number], each[number])
    assert kept.get(caps[0], each[0].data) is each[0]
    kept.put(caps[3], each[3])
    found = [kept.get(cap, directory.data) for cap, directory in zip(caps, each, strict=True)]
    assert found == [each[0], None, each[2], each[3]]
    assert kept.memory == 3 * each[0].memory()
    kept.put(caps[0], each[0])
    assert kept.memory == 3 * each[0].memory()
    assert kept.get(caps[0], b"other") is None


def test_kept_when_a_directory_is_large_then_does_not_keep_it(grid: TreeGrid) -> None:
    cap = grid.make().cap
    entry = parse_directory(_packed(1), mutable=False)["00000"]
    large = Parsed(data=b"", entries={f"{number}": entry for number in range(LARGE + 1)})
    kept = ParsedDirectories()
    kept.put(cap, Parsed(data=b"small", entries={}))
    kept.put(cap, large)
    assert kept.get(cap, large.data) is None and kept.memory == 0


def _packed(count: int) -> bytes:
    return pack_directory({name: make_entry(name, child, mutable=False) for name, child in many(count).items()})
