"""Directories on servers that lie about writes: creating, changing and reading still works."""

from __future__ import annotations

import pytest

from grid.caps import LitCap
from grid.directory.edits import SetChild
from grid.directory.file_store import FileStore
from tests.mutable.write.test_lying_writes import LyingGrid
from tests.support.lying_writes import WRITE_LIES


@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("lie", WRITE_LIES)
def test_directory_when_servers_lie_about_writes_then_is_made_and_changed(lie: str, count: int) -> None:
    grid = LyingGrid(count)
    store = FileStore(grid=grid.grid())
    root = grid.run(store.create_directory())
    body = root.body
    assert body.storage_index is not None
    for server in grid.liars:
        server.remembered = {n: bytes(data) for n, data in server.slots.get(body.storage_index, {}).items()}
    grid.begin_to_lie(WRITE_LIES[lie])
    begun = grid.runtime.clock.now()
    below = grid.run(store.create_directory())
    child = LitCap(data=b"hello")
    for number in range(3):
        grid.run(store.directory(root).edit([SetChild(f"file {number}", child)]))
    grid.run(store.directory(root).edit([SetChild("below", below)]))
    assert set(grid.run(store.directory(root).list())) == {"file 0", "file 1", "file 2", "below"}
    assert grid.runtime.clock.now() - begun < 5.0
    assert all(liar.lies for liar in grid.liars)
