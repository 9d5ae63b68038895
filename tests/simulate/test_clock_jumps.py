"""A client whose system time jumps by days whenever it is read: it sends the same, at the same times, with the same results."""

from __future__ import annotations

from itertools import cycle
from typing import Any

import pytest

from grid.caps import LitCap
from grid.directory.edits import RemoveChild, SetChild
from grid.ports import Event
from tests.support.mutable_grid import MutableGrid
from tests.support.scripted_grid import ScriptedGrid, noise
from tests.support.tree_grid import TreeGrid
from tests.support.virtual_time import VirtualClock

DAY_S = 86400.0
JUMPS = {
    "ahead": (0.0, 3600.0, 2 * DAY_S, 300 * DAY_S),
    "back": (0.0, -3600.0, -2 * DAY_S, -300 * DAY_S),
    "both ways": (3600.0, -2 * DAY_S, 40 * DAY_S, -3600.0, 0.0),
}


def jump(clock: VirtualClock, by: tuple[float, ...]) -> list[float]:
    """Have the clock's system time be off by another amount each time; the times it was asked for."""
    asked: list[float] = []
    shifts = cycle(by)

    def unix_time() -> float:
        asked.append(1_700_000_000.0 + clock.now() + next(shifts))
        return asked[-1]

    clock.unix_time = unix_time  # type: ignore[method-assign]
    return asked


def trace(events: list[Event]) -> list[tuple[Any, ...]]:
    return [(event.at, event.what, event.server_id) for event in events]


def files(by: tuple[float, ...]) -> list[Any]:
    """Files put, read and checked while one server says nothing and another is slow."""
    grid = ScriptedGrid(10)
    asked = jump(grid.virtual.clock, by)
    grid.script(2, silent_from=0)
    grid.script(5, delay_s=2.0)
    found: list[Any] = []
    for seed in range(3):
        result = grid.put(noise(20_000, seed))
        found += [result.cap, grid.now, grid.get(result.cap) == noise(20_000, seed), grid.now]
    assert asked
    return [*found, trace(grid.events)]


def mutable_files(by: tuple[float, ...]) -> list[Any]:
    """A mutable file that is made, overwritten and read while a server says nothing."""
    grid = MutableGrid(10)
    asked = jump(grid.runtime.clock, by)
    cap = grid.create(b"first")
    found: list[Any] = []
    for contents in (b"second", b"third", b"fourth"):
        grid.run(grid.open(cap).overwrite(contents))
        found += [grid.run(grid.open(cap, process=1).read_all()), grid.runtime.clock.now()]
    assert asked
    return [*found, trace(grid.events)]


def directories(by: tuple[float, ...]) -> list[Any]:
    """A directory that is changed and listed, by one who remembers it and by one who does not."""
    grid = TreeGrid(10)
    asked = jump(grid.runtime.clock, by)
    directory = grid.make()
    found: list[Any] = []
    for name in "abc":
        grid.run(directory.edit([SetChild(name, LitCap(data=b"x"))]))
        found += [sorted(grid.run(directory.list())), grid.names(directory.cap), grid.runtime.clock.now()]
    grid.run(directory.edit([RemoveChild("b")]))
    found += [grid.names(directory.cap)]
    assert asked
    # Which servers are asked first depends on the key, which is another one each time.
    return [*found, [(event.at, event.what) for event in grid.events]]


@pytest.mark.parametrize("by", JUMPS)
@pytest.mark.parametrize("work", [files, mutable_files, directories])
def test_client_when_its_system_time_jumps_does_the_same_at_the_same_times(work: Any, by: str) -> None:
    assert work(JUMPS[by]) == work((0.0,))
