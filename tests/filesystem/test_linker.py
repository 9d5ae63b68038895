"""Changes that share a publish: few publishes, an answer for each change, and no change delays another."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from twisted.internet.defer import Deferred, gatherResults

from grid.caps import DirectoryCap, LitCap
from grid.directory.edits import Edit, RemoveChild, SetChild
from grid.directory.file_store import FileStore
from grid.directory.node import Directory
from grid.engine.grid import Encoding
from grid.errors import GridError, NoSpaceError
from grid.filesystem.linker import Linker
from tests.support.tree_grid import TreeGrid

FILE = LitCap(data=b"small")


class CountingStore:
    """A store whose edits of directories are counted."""

    def __init__(self, store: FileStore) -> None:
        self._store = store
        self.edits: list[int] = []

    def directory(self, cap: DirectoryCap) -> CountingDirectory:
        return CountingDirectory(self._store.directory(cap), self.edits)


class CountingDirectory:
    """A directory that counts the edits of each call."""

    def __init__(self, directory: Directory, edits: list[int]) -> None:
        self._directory, self._edits = directory, edits

    async def edit(self, edits: Sequence[Edit]) -> None:
        self._edits.append(len(edits))
        await self._directory.edit(edits)


@pytest.fixture(scope="module")
def grid() -> TreeGrid:
    return TreeGrid()


def all_at_once(grid: TreeGrid, cap: DirectoryCap, changes: Sequence[Sequence[Edit]]) -> tuple[list[str], list[int]]:
    """How each change ended, and how many edits each publish had."""
    store = CountingStore(grid.store)
    linker = Linker(store)  # type: ignore[arg-type]

    async def outcome(edits: Sequence[Edit]) -> str:
        try:
            await linker.edit(cap, edits)
        except GridError as error:
            return type(error).__name__
        return "made"

    async def run() -> list[str]:
        return await gatherResults([Deferred.fromCoroutine(outcome(edits)) for edits in changes])

    return grid.run(run()), store.edits


def test_changes_when_they_come_during_a_publish_share_the_next_one(grid: TreeGrid) -> None:
    cap = grid.make().cap
    outcomes, publishes = all_at_once(grid, cap, [[SetChild(f"f{n:02}", FILE)] for n in range(40)])
    assert set(outcomes) == {"made"}
    assert publishes == [1, 39]
    assert grid.names(cap) == [f"f{n:02}" for n in range(40)]


def test_change_when_it_is_refused_holds_up_no_other(grid: TreeGrid) -> None:
    cap = grid.make().cap
    changes: Sequence[Sequence[Edit]] = [
        [SetChild("first", FILE)],
        *([SetChild(name, FILE, overwrite=False)] for name in "aab"),
    ]
    outcomes, publishes = all_at_once(grid, cap, changes)
    assert outcomes == ["made", "made", "ExistingChildError", "made"]
    assert publishes == [1, 3, 1, 1, 1]
    assert grid.names(cap) == ["a", "b", "first"]


def test_changes_when_of_several_kinds_are_made_kind_by_kind(grid: TreeGrid) -> None:
    cap = grid.make().cap
    changes: Sequence[Sequence[Edit]] = [
        [SetChild("a", FILE)],
        [SetChild("b", FILE)],
        [RemoveChild("none")],
        [SetChild("c", FILE), RemoveChild("a")],
    ]
    outcomes, publishes = all_at_once(grid, cap, changes)
    assert outcomes == ["made", "made", "NoSuchChildError", "made"]
    assert publishes == [1, 1, 1, 2]
    assert grid.names(cap) == ["b", "c"]


def test_changes_that_hold_although_servers_are_full_are_not_tried_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    async def refuse(*arguments: object) -> None:
        raise NoSpaceError("no room")

    grid = TreeGrid(3, Encoding(k=2, n=3, happy=3))
    cap = grid.make().cap
    changes = [[SetChild(name, FILE, overwrite=False)] for name in ("a", "b", "c")]
    with monkeypatch.context() as patch:
        patch.setattr(grid.servers[0], "test_and_write", refuse)
        ended, edits = all_at_once(grid, cap, changes)
    assert ended == ["MayHoldError"] * 3
    assert edits == [1, 2]
    assert grid.names(cap) == ["a", "b", "c"]
