"""The file system on an in-memory grid: its cost, and its behavior on hostile directories."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from grid.caps import DirectoryCap, KnownCap, LitCap
from grid.directory import node
from grid.directory.edits import Edited, apply_edits
from grid.directory.pack import Child
from grid.errors import ChildOfWrongTypeError, ExistingChildError, FormatError, GridError, NoSuchChildError
from grid.filesystem.descriptions import IsDirectoryError
from grid.filesystem.linker import Linker
from grid.filesystem.paths import GridPath
from grid.filesystem.tree import Tree, Wanted
from grid.mutable.sources import MemorySource
from grid.ports import Sink
from tests.support.tree_grid import TreeGrid

TEXT = bytes(range(251)) * 4000
SMALL = LitCap(data=b"small")


@pytest.fixture(scope="module")
def grid() -> TreeGrid:
    return TreeGrid()


@pytest.fixture
def tree(grid: TreeGrid) -> Tree:
    return Tree(grid.client())


@pytest.fixture
def root(grid: TreeGrid) -> DirectoryCap:
    return grid.make().cap


def at(root: KnownCap, path: str) -> GridPath:
    return GridPath(root=root, names=tuple(path.split("/")) if path else ())


def put(grid: TreeGrid, tree: Tree, root: KnownCap, files: Mapping[str, bytes]) -> None:
    async def store() -> None:
        caps = [(at(root, name), await tree.put(MemorySource(text))) for name, text in files.items()]
        await tree.link(caps)

    grid.run(store())


def read(grid: TreeGrid, tree: Tree, wanted: list[Wanted], gap: int = 0) -> list[bytes | GridError]:
    return grid.run(tree.read_ranges(wanted, gap))


def test_ranges_when_read_in_one_batch_look_each_path_up_once(
    grid: TreeGrid, tree: Tree, root: DirectoryCap, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(grid, tree, root, {"a/one": TEXT, "a/two": TEXT[::-1]})
    looked: list[GridPath] = []
    find = tree.find

    async def counted(path: GridPath) -> Child:
        looked.append(path)
        return await find(path)

    monkeypatch.setattr(tree, "find", counted)
    one, two = at(root, "a/one"), at(root, "a/two")
    spans = [(n * 9000, n * 9000 + 50) for n in range(100)]
    wanted = [Wanted(path=path, start=start, end=end) for start, end in spans for path in (one, two)]
    answers = read(grid, tree, wanted)
    assert answers == [text[start:end] for start, end in spans for text in (TEXT, TEXT[::-1])]
    assert looked == [one, two]


def test_ranges_when_near_each_other_are_fetched_together(
    grid: TreeGrid, tree: Tree, root: DirectoryCap, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(grid, tree, root, {"file": TEXT})
    path = at(root, "file")
    fetched: list[tuple[int, int | None]] = []
    straight = tree.read

    async def noted(cap: KnownCap, sink: Sink, offset: int = 0, length: int | None = None) -> None:
        fetched.append((offset, length))
        await straight(cap, sink, offset, length)

    monkeypatch.setattr(tree, "read", noted)
    wanted = [Wanted(path=path, start=n * 100, end=n * 100 + 60) for n in reversed(range(1000))]
    assert read(grid, tree, wanted, gap=40) == [TEXT[n * 100 : n * 100 + 60] for n in reversed(range(1000))]
    assert fetched == [(0, 99_960)]


def test_ranges_when_some_cannot_be_read_leave_the_others_alone(grid: TreeGrid, tree: Tree, root: DirectoryCap) -> None:
    put(grid, tree, root, {"a/file": TEXT})
    wanted = [
        Wanted(path=at(root, "none"), start=0, end=1),
        Wanted(path=at(root, "a/file"), start=-3, end=None),
        Wanted(path=at(root, "a"), start=0, end=1),
        Wanted(path=at(root, "a/file"), start=len(TEXT), end=len(TEXT) + 5),
    ]
    missing, tail, directory, beyond = read(grid, tree, wanted)
    assert isinstance(missing, NoSuchChildError)
    assert isinstance(directory, IsDirectoryError)
    assert (tail, beyond) == (TEXT[-3:], b"")


def test_directory_when_it_leads_back_to_itself_is_listed_as_a_loop(
    grid: TreeGrid, tree: Tree, root: DirectoryCap
) -> None:
    grid.run(tree.make_directories(at(root, "a/b")))
    grid.run(tree.link([(at(root, "a/b/up"), root), (at(root, "a/b/plain"), SMALL)]))
    found = grid.run(tree.listing(at(root, "a/b")))
    assert {each.name: each.is_loop for each in found} == {"plain": False, "up": True}


def test_names_when_no_path_can_hold_them_are_not_listed(grid: TreeGrid, tree: Tree) -> None:
    names = ["..", ".", "a/b", "nul\0", "fine"]
    root = grid.make(children={name: Child(target=SMALL) for name in names}).cap
    assert [each.name for each in grid.run(tree.listing(at(root, "")))] == ["fine"]


@pytest.mark.parametrize("name", ["..", ".", "nul\0", "n" * 256, "\u00fc" * 128])
def test_name_when_no_listing_would_show_it_is_refused_and_nothing_is_created(
    grid: TreeGrid, tree: Tree, root: DirectoryCap, name: str
) -> None:
    put(grid, tree, root, {"old": b"1"})
    for path in (name, f"new/{name}", f"{name}/new"):
        for operation in (
            tree.link([(at(root, path), SMALL)]),
            tree.link(new=[(at(root, "fine"), SMALL), (at(root, path), SMALL)]),
            tree.make_directories(at(root, path)),
            tree.move(at(root, "old"), at(root, path)),
        ):
            with pytest.raises(FormatError):
                grid.run(operation)
    assert set(grid.run(grid.store.directory(root).list())) == {"old"}


def test_names_when_they_are_there_already_can_still_be_read_and_removed(grid: TreeGrid, tree: Tree) -> None:
    inner = grid.make(children={"file": Child(target=SMALL)}).cap
    root = grid.make(children={"..": Child(target=inner)}).cap
    assert read(grid, tree, [Wanted(path=at(root, "../file"), start=None, end=None)]) == [b"small"]
    grid.run(tree.link([(at(root, "../other"), SMALL)]))
    grid.run(tree.remove([at(root, "..")], recursive=True))
    assert grid.run(grid.store.directory(root).list()) == {}


def test_mutable_file_when_listed_with_sizes_has_its_own(grid: TreeGrid, tree: Tree, root: DirectoryCap) -> None:
    cap = grid.run(grid.store.put_mutable(MemorySource(b"changes")))
    grid.run(tree.link([(at(root, "file"), cap)]))
    assert [each.size for each in grid.run(tree.listing(at(root, ""), sizes=True))] == [7]
    assert [each.size for each in grid.run(tree.listing(at(root, "")))] == [None]


def test_links_when_removed_together_go_or_stay_together(grid: TreeGrid, tree: Tree, root: DirectoryCap) -> None:
    put(grid, tree, root, {"a/one": b"1", "a/two": b"2", "b/three": b"3"})
    with pytest.raises(NoSuchChildError):
        grid.run(tree.remove([at(root, "a/one"), at(root, "b/none")]))
    with pytest.raises(IsDirectoryError):
        grid.run(tree.remove([at(root, "a/one"), at(root, "b")]))
    assert [each.name for each in grid.run(tree.listing(at(root, "a")))] == ["one", "two"]
    grid.run(tree.remove([at(root, "a/one"), at(root, "b")], recursive=True))
    assert [each.name for each in grid.run(tree.listing(at(root, "a")))] == ["two"]
    assert [each.name for each in grid.run(tree.listing(at(root, "")))] == ["a"]


def test_file_when_linked_over_a_directory_or_below_a_file_is_refused(
    grid: TreeGrid, tree: Tree, root: DirectoryCap
) -> None:
    put(grid, tree, root, {"a/file": b"text"})
    with pytest.raises(ExistingChildError):
        grid.run(tree.link([(at(root, "a"), SMALL)]))
    with pytest.raises(ExistingChildError):
        grid.run(tree.link(new=[(at(root, "a/file"), SMALL)]))
    with pytest.raises(ChildOfWrongTypeError):
        grid.run(tree.link([(at(root, "a/file/b"), SMALL)]))
    with pytest.raises(ChildOfWrongTypeError):
        grid.run(tree.listing(at(root, "a/file")))


def test_file_when_another_client_has_created_it_with_the_same_contents_is_refused_even_after_a_collision(
    grid: TreeGrid, root: DirectoryCap, monkeypatch: pytest.MonkeyPatch
) -> None:
    def apply_again(*arguments: Any, retrying: bool, **options: Any) -> Edited:
        return apply_edits(*arguments, retrying=True, **options)

    monkeypatch.setattr(node, "apply_edits", apply_again)
    lock = [(at(root, "lock"), SMALL)]
    grid.run(Tree(grid.client()).link(new=lock))
    with pytest.raises(ExistingChildError):
        grid.run(Tree(grid.client()).link(new=lock))


@pytest.mark.parametrize(("new", "taken"), [("a/new", "a/new"), ("b/new", "b/new"), ("b/new", "c")])
def test_files_when_one_of_them_cannot_be_linked_are_not_linked(
    grid: TreeGrid, tree: Tree, root: DirectoryCap, new: str, taken: str
) -> None:
    put(grid, tree, root, {f"{taken}/below" if taken == "c" else taken: b"theirs"})
    links = [(at(root, "a/old"), SMALL), (at(root, "c"), SMALL)]
    with pytest.raises(ExistingChildError):
        grid.run(tree.link(links, new=[(at(root, new), SMALL)]))
    with pytest.raises(NoSuchChildError):
        grid.run(tree.find(at(root, "a/old")))


def test_files_of_one_directory_when_some_must_be_new_are_linked_in_one_publish(
    grid: TreeGrid, tree: Tree, root: DirectoryCap
) -> None:
    put(grid, tree, root, {"old": b"before", "both": b"taken"})
    links = [(at(root, "old"), SMALL)]
    with pytest.raises(ExistingChildError):
        grid.run(tree.link(links, new=[(at(root, "new"), SMALL), (at(root, "both"), SMALL)]))
    assert grid.names(root) == ["both", "old"]
    grid.run(tree.link(links, new=[(at(root, "new"), SMALL)]))
    assert [grid.run(tree.find(at(root, name))).target for name in ("new", "old")] == [SMALL, SMALL]


def test_empty_directory_when_a_file_is_linked_in_it_while_it_is_removed_stays(
    grid: TreeGrid, tree: Tree, root: DirectoryCap, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = Tree(grid.client())
    grid.run(tree.make_directories(at(root, "d")))
    edit = Linker.edit

    async def add_and_edit(self: Linker, *arguments: Any) -> None:
        monkeypatch.setattr(Linker, "edit", edit)
        await other.link([(at(root, "d/file"), SMALL)])
        await edit(self, *arguments)

    monkeypatch.setattr(Linker, "edit", add_and_edit)
    assert grid.run(tree.remove_empty(at(root, "d"))) is False
    assert grid.run(other.find(at(root, "d/file"))).target == SMALL
    assert grid.run(tree.remove_empty(at(root, "d"))) is False
    grid.run(tree.remove([at(root, "d/file")]))
    assert grid.run(tree.remove_empty(at(root, "d"))) is True
    assert grid.names(root) == []
    grid.run(tree.link([(at(root, "file"), SMALL)]))
    with pytest.raises(ChildOfWrongTypeError):
        grid.run(tree.remove_empty(at(root, "file")))
