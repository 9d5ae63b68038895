"""Shares that crowd on fewer servers than a write must reach: changes and repairs store second copies on others."""

from __future__ import annotations

import pytest

from grid.caps import DirectoryCap, LitCap
from grid.directory.edits import SetChild
from grid.directory.file_store import FileStore
from grid.engine.grid import Encoding
from grid.mutable import publish
from grid.mutable.share.geometry import FormatName
from grid.mutable.share.keys import WriteCap
from grid.mutable.write import stream_plan
from grid.placement.happiness import happiness
from grid.ports import ShareNumber
from tests.mutable.write.test_every_instant import NEW, OLD, WatchedGrid
from tests.support.mutable_grid import MutableGrid

ENCODINGS = [(3, 10), (6, 10), (9, 10), (2, 5)]
TEXTS = {"overwrite": b"after!", "update": b"after! the grid has grown"}


def crowded_grid(
    k: int, n: int, format: FormatName, crowd: int, text: bytes = b"before the grid has grown"
) -> tuple[WatchedGrid, WriteCap]:
    """Ten servers, with a file on `crowd` of them."""
    grid = WatchedGrid(10, Encoding(k=k, n=n, happy=crowd))
    servers = grid.servers[:]
    del grid.servers[crowd:]
    cap = grid.create(text, format)
    grid.servers[:] = servers
    grid.shape = Encoding(k=k, n=n, happy=min(7, n))
    return grid, cap


def reached(grid: MutableGrid, cap: WriteCap) -> int:
    """How many servers hold a share of their own."""
    shares = grid.shares(cap).items()
    return happiness(
        {ShareNumber(number): {server.identity.server_id for server, _ in held} for number, held in shares}
    )


@pytest.mark.each_pair
@pytest.mark.parametrize("write", ["overwrite", "update"])
@pytest.mark.parametrize("format", ["sdmf", "mdmf"])
@pytest.mark.parametrize("crowd", [1, 2, 3])
@pytest.mark.parametrize(("k", "n"), ENCODINGS)
def test_write_when_shares_crowd_then_reaches_enough_servers_and_keeps_one_version_whole(
    k: int, n: int, crowd: int, format: FormatName, write: str
) -> None:
    grid, cap = crowded_grid(k, n, format, crowd)
    grid.watch()
    file = grid.open(cap, process=4)
    grid.run(file.overwrite(TEXTS[write]) if write == "overwrite" else file.update(0, b"after!"))
    assert reached(grid, cap) >= grid.shape.happy
    assert grid.least >= 1
    assert grid.read(cap).startswith(b"after!")


@pytest.mark.parametrize("crowd", [1, 2, 3])
@pytest.mark.parametrize(("k", "n"), ENCODINGS)
def test_large_write_when_shares_crowd_then_reaches_enough_servers_and_keeps_one_version_whole(
    k: int, n: int, crowd: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(publish, "WHOLE_BYTES", 1000)
    monkeypatch.setattr(stream_plan, "WRITE_BYTES", 400_000)
    grid, cap = crowded_grid(k, n, "mdmf", crowd, OLD)
    grid.watch()
    grid.run(grid.open(cap, process=4).overwrite(NEW))
    assert reached(grid, cap) >= grid.shape.happy
    assert grid.least >= 1
    assert grid.read(cap) == NEW


@pytest.mark.parametrize("format", ["sdmf", "mdmf"])
@pytest.mark.parametrize(("k", "n"), ENCODINGS)
def test_repair_when_shares_crowd_then_spreads_them_once_and_says_so(k: int, n: int, format: FormatName) -> None:
    grid, cap = crowded_grid(k, n, format, 1)
    grid.watch()
    before = grid.run(grid.open(cap).check())
    assert before.healthy and before.to_json()["results"]["healthy"]  # type: ignore[index]
    assert before.summary.startswith("Healthy, but spread over only 1 server")
    result = grid.run(grid.open(cap).repair())
    assert result.attempted and result.successful
    assert result.after.summary == grid.run(grid.open(cap).check(verify=True)).summary == "Healthy"
    assert reached(grid, cap) == grid.shape.happy and grid.least >= 1
    assert len({bytes(data[:41]) for held in grid.shares(cap).values() for _, data in held}) == 1
    assert not grid.run(grid.open(cap).repair()).attempted


def test_repair_when_shares_crowd_and_there_is_no_other_server_then_has_nothing_to_do() -> None:
    grid, cap = crowded_grid(3, 10, "sdmf", 2)
    del grid.servers[2:]
    result = grid.run(grid.open(cap).repair())
    assert not result.attempted
    assert result.before.summary.startswith("Healthy, but spread over only 2 servers instead of 7")


def test_repair_when_a_server_refuses_its_second_place_then_gives_it_to_another() -> None:
    grid, cap = crowded_grid(3, 10, "mdmf", 1)
    holder = next(held[0][0] for held in grid.shares(cap).values())
    others = [server for server in grid.servers if server is not holder]
    for server in others[:3]:
        server.script.dead_from, server.script.only = 0, frozenset({"test_and_write"})
    grid.run(grid.open(cap).repair())
    assert reached(grid, cap) == 7


def test_directory_when_it_was_repaired_while_servers_were_away_then_can_be_changed_once_they_are_back() -> None:
    grid = MutableGrid()
    cap = grid.create(b"")
    servers = grid.servers[:]
    store = FileStore(grid=grid.grid())
    grid.run(store.directory(DirectoryCap(body=cap)).edit([SetChild("first", LitCap(data=b"x"))]))
    for server in servers[3:]:
        server.slots.clear()
    grid.servers[:] = servers[:3]
    assert grid.run(grid.open(cap, process=1).repair()).successful
    grid.servers[:] = servers
    again = FileStore(grid=grid.grid(2))
    directory = again.directory(DirectoryCap(body=cap))
    grid.run(directory.edit([SetChild("second", LitCap(data=b"y"))]))
    assert set(grid.run(directory.list())) == {"first", "second"}
    assert reached(grid, cap) >= 7
