"""Files that change between the two readings of a put with a convergent key: no complete share of a mixture is left."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

from grid.cli.arguments.sources import FileSource
from grid.errors import GridError
from grid.library.operations import FileSource as LibrarySource
from grid.ports import Buffer
from tests.support.tree_grid import TreeGrid

SIZE = 9 * 2**20

Open = Callable[[Any, Any], Any]


class _Changing:
    """A source that does something once all of its bytes have been read."""

    def __init__(self, source: Any, change: Callable[[], object]) -> None:
        self._source, self._change, self.size = source, change, source.size
        self.passes = 0

    async def read_at(self, offset: int, length: int) -> Buffer:
        data: Buffer = await self._source.read_at(offset, length)
        if offset + length == self.size:
            self.passes += 1
            self._change()
        return data


def complete_shares(grid: TreeGrid) -> int:
    """How many files the servers have in directories of complete shares."""

    def count(disk: Any, path: str) -> int:
        return sum(
            count(disk, f"{path}/{name}") if is_directory else "incoming" not in path
            for name, is_directory in disk.list_directory(path)
        )

    return sum(count(disk, "shares") for disk in grid.disks)


@pytest.mark.parametrize("open_source", [FileSource, LibrarySource])
def test_file_when_it_changes_after_its_key_was_derived_leaves_no_share(tmp_path: Path, open_source: Open) -> None:
    grid, path = TreeGrid(), tmp_path / "file"
    path.write_bytes(bytes(SIZE))

    def change() -> None:
        with path.open("r+b") as file:
            file.write(b"other")
        os.utime(path, ns=(1, 1))

    with path.open("rb") as file:
        source = _Changing(open_source(file, grid.runtime.cpu), change)
        with pytest.raises(GridError, match="changed while it was read"):
            grid.run(grid.store.put_immutable(source))
        assert source.passes == 1
    assert complete_shares(grid) == 0


@pytest.mark.parametrize("open_source", [FileSource, LibrarySource])
def test_file_when_it_is_read_once_may_change_behind_the_reader(tmp_path: Path, open_source: Open) -> None:
    grid, path = TreeGrid(), tmp_path / "file"
    path.write_bytes(bytes(SIZE))
    store = evolve(grid.store, grid=evolve(grid.store.grid, convergence=None))
    with path.open("rb") as file:
        source = _Changing(open_source(file, grid.runtime.cpu), lambda: os.utime(path, ns=(1, 1)))
        grid.run(store.put_immutable(source))
    assert complete_shares(grid) == 10
