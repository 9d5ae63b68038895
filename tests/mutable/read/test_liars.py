"""Servers that lie about mutable files: unproven claims decide nothing, and proven ones are not the whole truth."""

from __future__ import annotations

import random

import pytest

from grid.caps import KnownCap
from grid.engine.grid import Encoding
from grid.mutable.read import layout_cache
from grid.mutable.share.geometry import FormatName
from tests.support.lying_slots import LIES, LyingServer
from tests.support.mutable_grid import MutableGrid

FORMATS: list[FormatName] = ["sdmf", "mdmf"]
OLD = {"small": b"old" * 1000, "large": random.Random(1).randbytes(400_000)}
NEW = {"small": b"new" * 1000, "large": random.Random(2).randbytes(400_000)}
SIZES = ["small", "large"]


def unfinished(grid: MutableGrid, cap: KnownCap, contents: bytes, holders: int) -> None:
    """A new version whose writer died when some servers had taken it."""
    assert cap.storage_index is not None
    index = cap.storage_index
    kept = [{number: bytearray(data) for number, data in server.slots[index].items()} for server in grid.servers]
    grid.run(grid.open(cap, process=9).overwrite(contents))
    for server, slot in list(zip(grid.servers, kept, strict=True))[holders:]:
        server.slots[index] = slot


def lying_grid(lie: str, liars: int, shape: Encoding | None = None, count: int = 10) -> MutableGrid:
    """A grid whose first servers tell that lie once the test switches it on."""
    grid = MutableGrid(count, shape)
    grid.servers[:liars] = [LyingServer(f"server{index}", grid.runtime.clock) for index in range(liars)]
    return grid


def begin_to_lie(grid: MutableGrid, lie: str) -> None:
    for server in grid.servers:
        if isinstance(server, LyingServer):
            server.lie = lie


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("lie", ["many numbers", "vanishing", "stalling", "one false number"])
def test_read_when_a_server_shows_one_share_of_an_unfinished_version_then_the_whole_version_is_read(
    format: FormatName, size: str, lie: str
) -> None:
    grid = lying_grid(lie, 1)
    cap = grid.create(OLD[size], format)
    unfinished(grid, cap, NEW[size], holders=1)
    begin_to_lie(grid, lie)
    for reading in (cap, cap.read_cap()):
        for process in (1, 2, 2):
            assert grid.run(grid.open(reading, process=process).read_all()) == OLD[size]
    assert isinstance(grid.servers[0], LyingServer)
    if not (lie in {"vanishing", "stalling"} and size == "small"):
        assert grid.servers[0].fired[lie]


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("shape", [Encoding(), Encoding(k=2, n=4, happy=3)])
def test_read_when_unfinished_shares_and_claims_seem_enough_then_the_whole_version_is_read(
    format: FormatName, size: str, shape: Encoding
) -> None:
    """Servers hold all but one of the shares that an unfinished version needs; liars claim that they have the rest."""
    liars = min(3, shape.n - shape.k)
    grid = lying_grid("many numbers", liars, shape, count=shape.n)
    cap = grid.create(OLD[size], format)
    unfinished(grid, cap, NEW[size], holders=shape.k - 1)
    [share] = [bytes(data) for data in grid.servers[0].slots[cap.storage_index].values()]
    for server in grid.servers[:liars]:
        server.slots[cap.storage_index] = {shape.n - 1: bytearray(share)}
    begin_to_lie(grid, "many numbers")
    assert grid.run(grid.open(cap.read_cap(), process=1).read_all()) == OLD[size]


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("size", SIZES)
def test_modify_when_a_server_shows_one_share_of_an_unfinished_version_then_builds_on_the_whole_one(
    format: FormatName, size: str
) -> None:
    grid = lying_grid("many numbers", 1)
    cap = grid.create(OLD[size], format)
    unfinished(grid, cap, NEW[size], holders=1)
    begin_to_lie(grid, "many numbers")
    grid.run(grid.open(cap, process=1).modify(lambda old, _: old + b"!"))
    assert grid.run(grid.open(cap, process=2).read_all()) == OLD[size] + b"!"
    assert any("newer version" in event.detail for event in grid.events if event.what == "warning")


def test_update_when_a_server_shows_one_share_of_an_unfinished_version_then_builds_on_the_whole_one() -> None:
    grid = lying_grid("many numbers", 1)
    cap = grid.create(OLD["large"], "mdmf")
    unfinished(grid, cap, NEW["large"], holders=1)
    begin_to_lie(grid, "many numbers")
    grid.run(grid.open(cap, process=1).update(200_000, b"!"))
    expected = OLD["large"][:200_000] + b"!" + OLD["large"][200_001:]
    assert grid.run(grid.open(cap, process=2).read_all()) == expected


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("verify", [False, True])
def test_check_when_a_server_shows_one_share_under_all_numbers_then_does_not_count_them(
    format: FormatName, size: str, verify: bool
) -> None:
    grid = lying_grid("many numbers", 1)
    cap = grid.create(OLD[size], format)
    unfinished(grid, cap, NEW[size], holders=1)
    begin_to_lie(grid, "many numbers")
    result = grid.run(grid.open(cap.read_cap(), process=1).check(verify=verify))
    assert result.recoverable and not result.healthy
    assert len(result.found.recoverable()) == 1 and result.found.best is not None
    assert result.found.best.seqnum == 1 and result.good_count == 9
    assert len(result.found.unrecoverable()) == 1
    advised = {number for number, _ in grid.servers[0].advisories}
    assert len(advised) >= 8, "the server gets a report on each share that is not what it says"


@pytest.mark.parametrize("format", FORMATS)
def test_read_when_one_server_shows_an_unfinished_empty_version_then_the_contents_are_read(format: FormatName) -> None:
    grid = lying_grid("many numbers", 1)
    cap = grid.create(OLD["small"], format)
    unfinished(grid, cap, b"", holders=1)
    begin_to_lie(grid, "many numbers")
    assert grid.run(grid.open(cap.read_cap(), process=1).read_all()) == OLD["small"]
    grid.run(grid.open(cap, process=1).modify(lambda old, _: old + b"!"))
    assert grid.run(grid.open(cap, process=2).read_all()) == OLD["small"] + b"!"


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("count", [1, 2, 5])
def test_read_when_an_empty_file_lies_on_few_servers_then_it_is_read(format: FormatName, count: int) -> None:
    grid = MutableGrid(count, Encoding(happy=1))
    cap = grid.create(b"", format)
    assert grid.run(grid.open(cap.read_cap(), process=1).read_all()) == b""
    grid.servers += MutableGrid(10 - count, seed=1).servers  # The grid has grown since.
    for index, server in enumerate(grid.servers[count:]):
        server._clock = grid.runtime.clock
        server.identity = LyingServer(f"new{index}", grid.runtime.clock).identity
    assert grid.run(grid.open(cap.read_cap(), process=2).read_all()) == b""


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("count", [1, 2])
def test_read_when_servers_hold_several_shares_then_their_numbers_are_proven_once(count: int, size: str) -> None:
    grid = MutableGrid(count, Encoding(happy=1))
    cap = grid.create(OLD[size], "mdmf")
    grid.reset_counts()
    assert grid.run(grid.open(cap.read_cap(), process=1).read_all()) == OLD[size]
    most = 1 if size == "small" else 5
    assert max(len(server.calls) for server in grid.servers) <= most
    assert grid.run(grid.open(cap, process=1).check()).healthy
    assert len(OLD["large"]) > layout_cache.FIRST_READ


@pytest.mark.each_pair
@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("liars", [1, 7])
@pytest.mark.parametrize("lie", LIES)
def test_file_when_servers_tell_any_lie_then_it_is_read_and_changed_as_honest_servers_have_it(
    lie: str, liars: int, size: str, format: FormatName
) -> None:
    grid = lying_grid(lie, liars)
    cap = grid.create(OLD[size], format)
    for server in grid.servers[:liars]:
        assert isinstance(server, LyingServer)
        server.remember()
        server.other_file = {number: bytes([index]) * 3000 for index, number in enumerate(range(10))}
    grid.run(grid.open(cap).overwrite(NEW[size]))
    begin_to_lie(grid, lie)
    reader = grid.open(cap.read_cap(), process=1)
    for _ in range(2):
        assert grid.run(reader.read_all()) == NEW[size]
    assert grid.run(grid.open(cap, process=2).check(verify=True)).recoverable
    grid.run(grid.open(cap, process=2).modify(lambda old, _: old + b"!"))
    assert grid.run(grid.open(cap, process=3).read_all()) == NEW[size] + b"!"
    grid.run(grid.open(cap, process=4).repair(force=True))
    assert grid.run(grid.open(cap, process=5).read_all()) == NEW[size] + b"!"
    if (lie, size) not in {("vanishing", "small"), ("stalling", "small"), ("unasked", "small")}:
        assert sum(server.fired[lie] for server in grid.servers) >= liars
