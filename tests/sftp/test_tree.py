"""Changes of the tree beside other clients': each is refused or made, and none undoes another's."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from typing import Any, cast

import pytest
from twisted.internet.defer import Deferred, gatherResults

from grid.caps import DirectoryCap, LitCap
from grid.directory.edits import RemoveChild, SetChild
from grid.directory.file_store import FileStore
from grid.directory.gathering import Directories
from grid.directory.pack import Child
from grid.directory.removals import Removals
from grid.errors import GridError
from grid.sftp.faults import SftpFault
from grid.sftp.tree import Tree
from tests.support.tree_grid import TreeGrid

OURS, THEIRS = LitCap(data=b"ours"), LitCap(data=b"theirs")

Children = dict[str, Child]


@pytest.fixture(scope="module")
def grid() -> TreeGrid:
    return TreeGrid()


def tree_of(grid: TreeGrid, root: DirectoryCap, removals: Removals | None = None) -> Tree:
    """The tree as another gateway sees it, or, with the removals of one, another session."""
    store = grid.client()
    return Tree(root, cast(Any, store), Directories(store), removals or Removals())


def unchanged(before: Any) -> dict[str, object]:
    return dict(before)


def test_file_that_must_be_new_when_another_client_creates_it_first_is_refused(grid: TreeGrid) -> None:
    root = grid.make().cap
    first, second = tree_of(grid, root), tree_of(grid, root)
    grid.run(first.link_file(("lock",), OURS, unchanged, "first"))
    with pytest.raises(SftpFault):
        grid.run(second.link_file(("lock",), OURS, unchanged, "second"))
    grid.run(first.link_file(("lock",), THEIRS, unchanged, "first"))
    assert grid.run(second.find(("lock",))).target == THEIRS


@pytest.mark.parametrize("old", [None, ("moved",), ("other", "moved")])
def test_empty_directory_when_something_is_stored_in_it_while_it_is_removed_is_put_back(
    grid: TreeGrid, monkeypatch: pytest.MonkeyPatch, old: tuple[str, ...] | None
) -> None:
    root = grid.make().cap
    tree, other = tree_of(grid, root), tree_of(grid, root)
    for path in (("d",), ("moved",), ("other",), ("other", "moved")):
        grid.run(tree.make_directory(path, unchanged))
    removed = grid.run(tree.directory(("d",)))
    changing, name = (FileStore, "move") if old == ("other", "moved") else (Directories, "change")
    change = getattr(changing, name)

    async def add_and_change(self: object, *arguments: Any, **options: Any) -> Any:
        if self in (tree.store, tree.directories):
            monkeypatch.setattr(changing, name, change)
            await other.link_file(("d", "file"), THEIRS, unchanged)
        return await change(self, *arguments, **options)

    monkeypatch.setattr(changing, name, add_and_change)
    with pytest.raises(SftpFault, match="meanwhile"):
        grid.run(tree.remove_directory(("d",)) if old is None else tree.rename(old, ("d",), overwrite=True))
    kept = "d" if old is None else "d~1"
    assert grid.run(other.find((kept, "file"))).target == THEIRS
    assert grid.run(other.find((kept,))).target == removed


def test_file_when_its_directory_is_removed_by_another_session_meanwhile_is_refused(grid: TreeGrid) -> None:
    root, removals = grid.make().cap, Removals()
    trees = [tree_of(grid, root, removals) for _ in range(2)]
    grid.run(trees[0].make_directory(("d",), unchanged))

    async def at_once() -> list[str]:
        works = (trees[0].remove_directory(("d",)), trees[1].link_file(("d", "file"), OURS, unchanged))
        return await gatherResults([Deferred.fromCoroutine(outcome(work)) for work in works])

    assert sorted(grid.run(at_once())) == ["SftpFault", "done"]


async def outcome(work: Coroutine[Any, Any, None]) -> str:
    try:
        await work
    except GridError as error:
        return type(error).__name__
    return "done"


class Colliding:
    """Directories whose first publish collides: each change is decided for both contents, and made for the second."""

    def __init__(self, *contents: Children) -> None:
        self.contents = contents
        self.edits: Sequence[SetChild | RemoveChild] = ()

    async def read(self, cap: DirectoryCap) -> Children:
        return self.contents[0]

    async def change(self, cap: DirectoryCap, decide: Callable[..., Sequence[SetChild | RemoveChild]]) -> None:
        for attempt, children in enumerate(self.contents):
            self.edits = decide(children.get, attempt > 0)


@pytest.mark.parametrize("found", [OURS, THEIRS])
def test_rename_when_it_collides_and_the_file_is_gone_was_made_only_if_its_file_is_there(
    grid: TreeGrid, found: LitCap
) -> None:
    directories = Colliding({"old": Child(target=OURS)}, {"new": Child(target=found)})
    tree = Tree(grid.make().cap, cast(Any, None), cast(Any, directories), Removals())
    rename = tree.rename(("old",), ("new",), overwrite=True)
    if found == OURS:
        grid.run(rename)
        assert directories.edits == ()
    else:
        with pytest.raises(SftpFault):
            grid.run(rename)
