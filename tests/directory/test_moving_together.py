"""Moving several links at once: all of them or none, with one publish in each directory."""

from __future__ import annotations

import pytest

from grid.directory.edits import SetChild
from grid.directory.moving import follow_trail, move_all
from grid.directory.store import Trail
from grid.errors import ExistingChildError, GridError, NoSuchChildError
from tests.directory.test_moving import FILE, branch, made, shift
from tests.support.tree_grid import TreeGrid


@pytest.fixture(scope="module")
def grid() -> TreeGrid:
    """One grid for all tests here; they make directories of their own."""
    return TreeGrid()


def test_links_when_moved_together_then_each_directory_is_published_once(grid: TreeGrid) -> None:
    source, target = made(grid, "a", "b", "c"), made(grid, "d")
    grid.run(source.make_directories(["sub"]))
    grid.sent()
    grid.run(move_all(grid.store, Trail.of(source.cap), ["a", "b", "sub", "a"], Trail.of(target.cap)))
    together = {kind: sent for kind, sent in grid.sent().items() if not kind.startswith("Read")}
    assert grid.names(source.cap) == ["c"] and grid.names(target.cap) == ["a", "b", "d", "sub"]
    shift(grid, source.cap, "c", target.cap, "c")
    assert together == {kind: sent for kind, sent in grid.sent().items() if not kind.startswith("Read")} != {}


def test_links_when_one_name_is_taken_or_missing_then_none_is_moved(grid: TreeGrid) -> None:
    source, target = made(grid, "a", "b"), made(grid, "b")
    for names, error in ((["a", "b"], ExistingChildError), (["a", "no"], NoSuchChildError)):
        with pytest.raises(error):
            grid.run(move_all(grid.client(), Trail.of(source.cap), names, Trail.of(target.cap)))
        assert grid.names(source.cap) == ["a", "b"] and grid.names(target.cap) == ["b"]


def test_links_when_the_target_is_below_one_of_them_then_none_is_moved(grid: TreeGrid) -> None:
    root = branch(grid, "a/b")
    grid.run(root.edit([SetChild("file", FILE)]))
    target = grid.run(follow_trail(grid.store, root.cap, ["a", "b"]))
    with pytest.raises(GridError, match="below it"):
        grid.run(move_all(grid.client(), Trail.of(root.cap), ["file", "a"], target))
    assert grid.names(root.cap) == ["a", "file"] and grid.names(target.end) == []
