"""Directories on a grid: the cost of changes, other writers, and paths."""

from __future__ import annotations

import pytest

from grid.caps import DirectoryCap, LitCap, MdmfWriteCap, SdmfWriteCap, UnknownChild
from grid.directory import node
from grid.directory.edits import RemoveChild, SetChild
from grid.directory.file_store import FileStore
from grid.directory.node import Directory
from grid.directory.pack import Child
from grid.directory.store import Trail
from grid.errors import (
    AuthorityError,
    ChildOfWrongTypeError,
    ExistingChildError,
    FormatError,
    NoSuchChildError,
    NotWriteableError,
)
from tests.support.tree_grid import TreeGrid

FILE = LitCap(data=b"file")
OTHER = LitCap(data=b"other")


@pytest.fixture(scope="module")
def grid() -> TreeGrid:
    """One grid for all tests here; they make directories of their own."""
    return TreeGrid()


def made(grid: TreeGrid, *names: str) -> Directory:
    """A directory in which each name is a file."""
    return grid.make(children={name: Child(target=FILE) for name in names})


def test_children_when_a_thousand_are_added_then_it_is_one_publish(grid: TreeGrid) -> None:
    directory = grid.make()
    grid.run(directory.list())
    grid.sent()
    edits = [SetChild(f"child {index:04}", LitCap(data=b"%d" % index)) for index in range(1000)]
    assert grid.run(directory.edit(edits)) == {}
    assert grid.sent() == {"WriteSlot": dict.fromkeys((f"s{index}" for index in range(10)), 1)}
    children = grid.run(grid.client().directory(directory.cap).list())
    assert {name: child.target for name, child in children.items()} == {edit.name: edit.target for edit in edits}
    assert list(children) == sorted(children)


@pytest.mark.parametrize("format", ["sdmf", "mdmf"])
def test_child_when_added_to_a_directory_just_read_then_costs_one_round_trip(grid: TreeGrid, format: str) -> None:
    cap = grid.make(children={"a": Child(target=FILE)}, format=format).cap
    assert isinstance(cap.body, SdmfWriteCap if format == "sdmf" else MdmfWriteCap)
    store = grid.client()
    grid.run(store.directory(cap).list())
    for name in ("b", "c", "d"):
        grid.sent()
        grid.run(store.directory(cap).edit([SetChild(name, FILE)]))
        assert grid.sent() == {"WriteSlot": dict.fromkeys((f"s{index}" for index in range(10)), 1)}
    assert grid.names(cap) == ["a", "b", "c", "d"]


def test_edits_when_they_change_nothing_then_nothing_is_written(grid: TreeGrid) -> None:
    directory = made(grid, "a")
    grid.sent()
    assert grid.run(directory.edit([RemoveChild("gone", must_exist=False)])) == {}
    assert grid.run(directory.edit([])) == {}
    assert "WriteSlot" not in grid.sent()


def test_edit_when_another_client_changed_the_directory_then_both_changes_are_there(grid: TreeGrid) -> None:
    mine = made(grid, "a", "b")
    theirs = grid.client().directory(mine.cap)
    grid.run(mine.list())
    grid.run(theirs.edit([SetChild("theirs", FILE), RemoveChild("b")]))
    assert grid.run(mine.edit([SetChild("mine", OTHER)])) == {}
    assert grid.names(mine.cap) == ["a", "mine", "theirs"]


def test_edit_when_the_remembered_contents_are_old_then_it_is_judged_by_the_current_ones(grid: TreeGrid) -> None:
    mine = made(grid, "a")
    theirs = grid.client().directory(mine.cap)
    grid.run(mine.list())
    grid.run(theirs.edit([SetChild("b", FILE), RemoveChild("a")]))
    assert grid.run(mine.edit([RemoveChild("b")]))["b"].target == FILE
    grid.run(theirs.list())
    grid.run(mine.edit([SetChild("c", FILE)]))
    grid.run(theirs.edit([RemoveChild("c"), SetChild("a", OTHER, overwrite=False)]))
    # The entry it remembers has been removed already, no matter by which process, and stays removed.
    assert list(grid.run(mine.edit([RemoveChild("c")]))) == ["c"]
    with pytest.raises(NoSuchChildError):
        grid.run(mine.edit([RemoveChild("c")]))
    with pytest.raises(ExistingChildError):
        grid.run(mine.edit([SetChild("a", FILE, overwrite=False)]))
    assert grid.names(mine.cap) == ["a"]


def test_edit_when_two_do_it_at_once_then_neither_is_lost(grid: TreeGrid) -> None:
    mine = made(grid, "a")
    theirs = grid.client().directory(mine.cap)
    same = grid.store.directory(mine.cap)
    grid.run(mine.list())
    grid.run(theirs.list())

    async def both() -> None:
        from twisted.internet.defer import Deferred, gatherResults

        edits = [
            (directory, f"{name}{index}")
            for index in range(2)
            for name, directory in (("mine", mine), ("same", same), ("theirs", theirs))
        ]
        await gatherResults([Deferred.fromCoroutine(d.edit([SetChild(name, FILE)])) for d, name in edits])

    grid.run(both())
    assert grid.names(mine.cap) == ["a", "mine0", "mine1", "same0", "same1", "theirs0", "theirs1"]


def test_directory_when_its_cap_only_reads_then_lists_and_cannot_be_changed(grid: TreeGrid) -> None:
    inner = made(grid, "a")
    directory = grid.make(children={"inner": Child(target=inner.cap), "new": Child(target=_unknown())})
    reader = grid.store.directory(directory.cap.read_cap())
    children = grid.run(reader.list())
    assert children["inner"].target == inner.cap.read_cap()
    assert children["new"].target == UnknownChild(read=b"ro.x-read")
    assert grid.run(directory.list())["new"].target == _unknown()
    assert reader.is_mutable and not reader.is_writable
    for attempt in (reader.edit([]), reader.make_directory("x"), reader.make_directories(["x"])):
        with pytest.raises(NotWriteableError):
            grid.run(attempt)
    with pytest.raises(NotWriteableError):
        grid.run(grid.store.move(Trail.of(directory.cap), "inner", Trail.of(reader.cap), "inner"))
    verify = directory.cap.verify_cap()
    assert verify is not None
    with pytest.raises(AuthorityError):
        grid.run(grid.store.directory(verify).list())


def _unknown() -> UnknownChild:
    return UnknownChild(write=b"x-write", read=b"ro.x-read")


def test_path_when_looked_up_then_says_which_name_is_missing_or_no_directory(grid: TreeGrid) -> None:
    inner = made(grid, "é")
    outer = grid.make(children={"inner": Child(target=inner.cap), "file": Child(target=FILE, metadata={"m": 1})})
    assert grid.run(outer.get(())) == Child(target=outer.cap)
    assert grid.run(outer.get(["file"])).metadata == {"m": 1}
    assert grid.run(outer.get(["inner", "e\u0301"])).target == FILE
    for path, missing in ((["no", "é"], "no"), (["inner", "no"], "no")):
        with pytest.raises(NoSuchChildError) as caught:
            grid.run(outer.get(path))
        assert caught.value.name == missing
    with pytest.raises(ChildOfWrongTypeError) as wrong:
        grid.run(outer.get(["file", "x"]))
    assert wrong.value.name == "file"


def test_directories_when_made_along_a_path_then_only_the_missing_ones_and_once(grid: TreeGrid) -> None:
    root = grid.make()
    deep = grid.run(root.make_directories(["a", "b", "c"]))
    assert grid.run(root.make_directories(["a", "b", "c"])).cap == deep.cap
    sibling = grid.run(root.make_directories(["a", "b", "d"], format="mdmf"))
    assert isinstance(sibling.cap.body, MdmfWriteCap)
    link = grid.run(root.get(["a", "b"]))
    assert isinstance(link.target, DirectoryCap)
    assert grid.names(link.target) == ["c", "d"]
    assert "tahoe" in link.metadata and "tahoe" in grid.run(root.get(["a"])).metadata
    assert grid.run(root.make_directories([])) is root
    grid.run(root.edit([SetChild("file", FILE)]))
    with pytest.raises(ChildOfWrongTypeError):
        grid.run(root.make_directories(["file", "x"]))


def test_directory_when_made_where_there_is_a_child_then_only_if_it_may_overwrite(grid: TreeGrid) -> None:
    root = made(grid, "a")
    with pytest.raises(ExistingChildError):
        grid.run(root.make_directory("a"))
    new = grid.run(root.make_directory("a", overwrite=True))
    assert grid.run(root.get(["a"])).target == new.cap
    assert new.is_writable and grid.run(new.list()) == {}


def test_contents_when_they_are_no_directory_then_listing_says_so_and_editing_writes_nothing(grid: TreeGrid) -> None:
    cap = grid.run(grid.store.put_mutable(b"this is no directory"))
    for store in (grid.store, grid.client()):
        directory = store.directory(DirectoryCap(cap))
        with pytest.raises(FormatError):
            grid.run(directory.list())
        with pytest.raises(FormatError):
            grid.run(directory.edit([SetChild("a", FILE)]))
    assert grid.run(grid.client().open_mutable(cap).read_all()) == b"this is no directory"


def test_directory_when_larger_than_any_then_is_not_read_nor_changed(
    grid: TreeGrid, monkeypatch: pytest.MonkeyPatch
) -> None:
    mutable = made(grid, "a", "b", "c")
    data = LitCap(data=bytes(50))
    immutable = grid.run(grid.store.create_immutable_directory({"a": Child(target=data)}))
    monkeypatch.setattr(node, "MAX_DIRECTORY_SIZE", 99)
    for cap in (mutable.cap, immutable):
        with pytest.raises(FormatError):
            grid.run(grid.client().directory(cap).list())
    with pytest.raises(FormatError):
        grid.run(grid.client().directory(mutable.cap).edit([RemoveChild("a")]))
    monkeypatch.undo()
    assert grid.names(mutable.cap) == ["a", "b", "c"]


def test_file_when_opened_again_then_is_the_same_object_while_it_is_in_use(grid: TreeGrid) -> None:
    directory = grid.make()
    store: FileStore = grid.client()
    file = store.open_mutable(directory.cap)
    assert store.open_mutable(directory.cap.body) is file
    assert store.open_mutable(directory.cap.read_cap()) is not file
