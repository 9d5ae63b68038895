"""Servers that come back: the first operation that needs them succeeds, and nobody tries them too often."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from grid.caps import ChkCap
from grid.directory.file_store import FileStore
from grid.errors import GridError, NotEnoughSharesError, NotHappyError
from grid.immutable.get import ImmutableFile
from grid.mutable.share.keys import WriteCap
from tests.support.distant_grid import DistantGrid
from tests.support.mutable_key import known_key
from tests.support.scripted_grid import MemorySink, MemorySource, noise

SMALL, LARGE = noise(3000), noise(600_000, seed=1)
GONE_S = 45


@pytest.fixture
def grid() -> DistantGrid:
    return DistantGrid()


async def put_small(store: FileStore) -> None:
    await store.put_immutable(MemorySource(SMALL), convergence=None)


async def put_large(store: FileStore) -> None:
    await store.put_immutable(MemorySource(LARGE), convergence=None)


async def publish(store: FileStore) -> None:
    await store.put_mutable(MemorySource(SMALL))


PUTS: list[Callable[[FileStore], Any]] = [put_small, put_large, publish]


def outage(grid: DistantGrid, operation: Callable[[FileStore], Any], *indices: int) -> None:
    """The servers are gone for a while in which operations are tried; then they are back, unannounced."""
    grid.run(operation(grid.store))
    grid.stop(*indices)
    failures = 0
    while grid.runtime.clock.now() < GONE_S:
        try:
            grid.run(operation(grid.store))
        except GridError:
            failures += 1
        grid.wait(2.9)
    assert failures > 5
    grid.start(*indices)


@pytest.mark.parametrize("operation", PUTS, ids=lambda operation: operation.__name__)
def test_write_when_four_of_ten_servers_are_back_succeeds_at_the_first_try(
    grid: DistantGrid, operation: Callable[[FileStore], Any]
) -> None:
    outage(grid, operation, 0, 3, 4, 8)
    began = grid.runtime.clock.now()
    grid.run(operation(grid.store))
    assert grid.runtime.clock.now() - began < 1.0


def test_overwrite_when_four_of_ten_servers_are_back_succeeds_at_the_first_try(grid: DistantGrid) -> None:
    cap: WriteCap = grid.run(grid.store.put_mutable(MemorySource(SMALL), key=known_key()))

    async def overwrite(store: FileStore) -> None:
        await store.open_mutable(cap).overwrite(MemorySource(LARGE))

    outage(grid, overwrite, 0, 3, 4, 8)
    grid.run(overwrite(grid.store))


@pytest.mark.parametrize("data", [SMALL, LARGE])
def test_get_when_eight_of_ten_servers_are_back_succeeds_at_the_first_try(grid: DistantGrid, data: bytes) -> None:
    cap = grid.run(grid.store.put_immutable(MemorySource(data)))
    assert isinstance(cap, ChkCap)

    async def get(store: FileStore) -> bytes:
        sink = MemorySink()
        await ImmutableFile(cap, store.grid).read(sink)
        return bytes(sink.data)

    outage(grid, get, *range(8))
    assert grid.run(get(grid.store)) == data


def test_servers_when_they_stay_away_are_tried_once_a_second_at_most(grid: DistantGrid) -> None:
    grid.stop(0, 3, 4, 8)
    for _ in range(300):
        with pytest.raises(NotHappyError):
            grid.run(put_small(grid.store))
        grid.wait(0.05)
    assert all(grid.attempts(index) <= grid.runtime.clock.now() + 2 for index in (0, 3, 4, 8))


def test_get_when_seven_of_ten_servers_refuse_connections_takes_no_longer(grid: DistantGrid) -> None:
    cap = grid.run(grid.store.put_immutable(MemorySource(SMALL)))

    def time_of_get() -> float:
        store = grid.client()
        began = grid.runtime.clock.now()
        grid.run(ImmutableFile(cap, store.grid).read(MemorySink()))
        return grid.runtime.clock.now() - began

    usual = time_of_get()
    grid.stop(*range(7))
    assert time_of_get() <= usual + 0.3
    grid.wait(0.2)
    assert time_of_get() <= usual + 0.3


def test_get_when_too_few_servers_are_up_says_so_at_once(grid: DistantGrid) -> None:
    cap = grid.run(grid.store.put_immutable(MemorySource(SMALL)))
    grid.stop(*range(8))
    began = grid.runtime.clock.now()
    with pytest.raises(NotEnoughSharesError):
        grid.run(ImmutableFile(cap, grid.store.grid).read(MemorySink()))
    assert grid.runtime.clock.now() - began < 1.0
