"""Links on the grid that too few servers take, but that hold: what they replaced is reported, as after a success."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Any, TypeVar

import pytest
from attrs import frozen

from grid.caps import DirectoryCap, LitCap
from grid.directory.edits import Replaced
from grid.directory.file_store import FileStore
from grid.directory.pack import Child
from grid.engine.grid import Encoding
from grid.errors import ChildOfWrongTypeError, MayHoldError, NoSpaceError
from grid.transfer.ends import EndError, Entry
from grid.transfer.grid_end import GridEnd
from tests.support.tree_grid import TreeGrid

T = TypeVar("T")
OLD, NEW = LitCap(data=b"old"), LitCap(data=b"new")


@frozen
class Session:
    """Runs what a transfer asks for on a grid in virtual time."""

    grid: TreeGrid
    is_unique = False

    async def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return self.grid.run(coroutine)

    async def store(self) -> FileStore:
        return self.grid.store


def test_files_that_were_replaced_or_removed_by_a_change_in_doubt_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    async def refuse(*arguments: object) -> None:
        raise NoSpaceError("no room")

    grid = TreeGrid(3, Encoding(k=2, n=3, happy=3))
    cap = grid.make(children={"a": Child(target=OLD, metadata={}), "b": Child(target=OLD, metadata={})}).cap
    seen: list[tuple[DirectoryCap, Sequence[Replaced]]] = []
    end = GridEnd(
        Session(grid),  # type: ignore[arg-type]
        cap,
        (),
        "work:",
        on_replaced=lambda directory, entries: seen.append((directory, entries)),
    )

    async def change() -> None:
        failed = await end.settle(
            [(Entry(name="a", size=3), NEW.to_string()), (Entry(name="c", size=3), NEW.to_string())]
        )
        assert {name: type(error) for name, error in failed.items()} == dict.fromkeys("ac", MayHoldError)
        with pytest.raises(MayHoldError):
            await end.remove("b")

    monkeypatch.setattr(grid.servers[0], "test_and_write", refuse)
    asyncio.run(change())
    found = [(names, old.target, new) for _, entries in seen for names, old, new in entries]
    assert found == [(("a",), OLD, NEW), (("b",), OLD, None)]
    assert grid.names(cap) == ["a", "c"]


def test_name_that_leads_to_a_directory_fails_alone() -> None:
    grid = TreeGrid(1, Encoding(k=1, n=1, happy=1))
    folder = grid.make(children={"b": Child(target=grid.make().cap)})
    cap = grid.make(children={"folder": Child(target=folder.cap)}).cap
    end = GridEnd(Session(grid), cap, (), "work:")  # type: ignore[arg-type]

    async def change() -> None:
        stored = [(Entry(name=f"folder/{name}", size=3), NEW.to_string()) for name in "abc"]
        failed = await end.settle(stored)
        assert {name: type(error) for name, error in failed.items()} == {"folder/b": EndError}
        failed = await end.settle([(Entry(name="folder/a/a", size=3), NEW.to_string())])
        assert {name: type(error) for name, error in failed.items()} == {"folder/a/a": ChildOfWrongTypeError}

    asyncio.run(change())
    assert grid.names(folder.cap) == ["a", "b", "c"]
