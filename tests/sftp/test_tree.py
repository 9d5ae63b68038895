"""Changes of the tree beside other clients': each is refused or made, and none undoes another's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import pytest

from grid.caps import DirectoryCap, LitCap
from grid.directory.edits import RemoveChild, SetChild
from grid.directory.gathering import Directories
from grid.directory.pack import Child
from grid.sftp.faults import SftpFault
from grid.sftp.tree import Tree
from tests.support.tree_grid import TreeGrid

OURS, THEIRS = LitCap(data=b"ours"), LitCap(data=b"theirs")

Children = dict[str, Child]


@pytest.fixture(scope="module")
def grid() -> TreeGrid:
    return TreeGrid()


def tree_of(grid: TreeGrid, root: DirectoryCap) -> Tree:
    """The tree as another gateway sees it."""
    store = grid.client()
    return Tree(root, cast(Any, store), Directories(store))


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
    tree = Tree(grid.make().cap, cast(Any, None), cast(Any, directories))
    rename = tree.rename(("old",), ("new",), overwrite=True)
    if found == OURS:
        grid.run(rename)
        assert directories.edits == ()
    else:
        with pytest.raises(SftpFault):
            grid.run(rename)
