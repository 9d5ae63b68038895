"""How long writes wait for silent servers: hardly at all from the second time on, and no longer below `happy`."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from grid.errors import NotHappyError
from grid.mutable import publish
from grid.mutable.share.geometry import FormatName
from grid.mutable.share.keys import WriteCap
from grid.mutable.write import stream_plan
from tests.support.mutable_grid import MutableGrid
from tests.support.scripted_slots import SlotScript

FORMATS: list[FormatName] = ["sdmf", "mdmf"]
STALLS: dict[str, frozenset[str]] = {
    "all": frozenset(),
    "reads": frozenset({"read_slot"}),
    "writes": frozenset({"test_and_write"}),
}
ALLOWED_S = {1: 0.2, 3: 0.4}
"""Seconds that one and three silent servers may add."""


def link(grid: MutableGrid, cap: WriteCap, number: int) -> Coroutine[Any, Any, None]:
    """What linking a file is to the directory's own file."""
    return grid.open(cap).modify(lambda old, _: old + b"%d" % number)


OPERATIONS: dict[str, Callable[[MutableGrid, WriteCap, int], Coroutine[Any, Any, Any]]] = {
    "create": lambda grid, cap, number: grid.creating(b"x" * number, "sdmf"),
    "overwrite": lambda grid, cap, number: grid.open(cap).overwrite(b"%d" % number),
    "link": link,
}


def took(grid: MutableGrid, coroutine: Coroutine[Any, Any, Any]) -> float:
    begun = grid.runtime.clock.now()
    grid.run(coroutine)
    return grid.runtime.clock.now() - begun


@pytest.mark.each_pair
@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("stall", STALLS)
@pytest.mark.parametrize("count", ALLOWED_S)
@pytest.mark.parametrize("operation", ["overwrite", "link"])
def test_write_when_servers_are_silent_again_then_takes_hardly_longer(
    operation: str, count: int, stall: str, format: FormatName
) -> None:
    grid = MutableGrid()
    cap = grid.create(b"contents", format)
    usual_s = took(grid, OPERATIONS[operation](grid, cap, 1))
    for server in grid.servers[:count]:
        server.calls.clear()
        server.script = SlotScript(silent_from=0, only=STALLS[stall])
    took(grid, OPERATIONS[operation](grid, cap, 2))
    for repetition in range(3, 8):
        assert took(grid, OPERATIONS[operation](grid, cap, repetition)) <= usual_s + ALLOWED_S[count], repetition
    assert all(server.fired["silent"] for server in grid.servers[:count])
    text = grid.read(cap)
    assert text.endswith(b"7")


@pytest.mark.parametrize("count", ALLOWED_S)
def test_create_when_servers_are_silent_again_then_takes_hardly_longer(count: int) -> None:
    grid = MutableGrid(12)
    usual_s = took(grid, grid.creating(b"contents"))
    for repetition in range(5):
        for server in grid.servers:
            server.slots.clear()
        for server in grid.servers[:count]:
            server.script = SlotScript(silent_from=0)
        seconds = took(grid, grid.creating(b"contents"))
        assert repetition == 0 or seconds <= usual_s + ALLOWED_S[count]


@pytest.mark.parametrize("format", FORMATS)
def test_large_write_when_servers_are_silent_again_then_takes_hardly_longer(
    format: FormatName, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(publish, "WHOLE_BYTES", 100_000)
    monkeypatch.setattr(stream_plan, "WRITE_BYTES", 1_000_000)
    grid = MutableGrid()
    contents = bytes(1_200_000)
    cap = grid.create(contents, format)
    usual_s = took(grid, grid.open(cap).overwrite(contents))
    for server in grid.servers[:3]:
        server.calls.clear()
        server.script = SlotScript(silent_from=0, only=STALLS["writes"])
    grid.run(grid.open(cap).overwrite(contents))
    assert took(grid, grid.open(cap).overwrite(contents)) <= 1.5 * usual_s + 0.4


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_write_when_seven_servers_refuse_then_fails_within_a_second_and_says_why(
    operation: str, format: FormatName
) -> None:
    grid = MutableGrid()
    cap = grid.create(b"contents", format)
    for server in grid.servers[:7]:
        server.calls.clear()
        server.script = SlotScript(dead_from=0)
    for _ in range(3):
        for server in grid.servers if operation == "create" else ():
            server.slots.clear()
        begun = grid.runtime.clock.now()
        with pytest.raises(NotHappyError, match="3 servers"):
            grid.run(OPERATIONS[operation](grid, cap, 1))
        assert grid.runtime.clock.now() - begun < 1.0


@pytest.mark.parametrize("format", FORMATS)
def test_write_when_a_far_server_answers_late_then_it_still_has_its_share(format: FormatName) -> None:
    """Once its usual time is known; it is no liar and not silent, only far away."""
    grid = MutableGrid()
    cap = grid.create(b"contents", format)
    grid.servers[0].script = SlotScript(delay_s=0.4)
    for number in range(4):
        grid.run(link(grid, cap, number))
    result = grid.run(grid.open(cap).check(verify=True))
    assert result.good_count == 10


@pytest.mark.parametrize("format", FORMATS)
def test_write_when_a_server_was_left_behind_then_check_says_so_and_repair_fixes_it(format: FormatName) -> None:
    grid = MutableGrid()
    cap = grid.create(b"contents", format)
    grid.servers[0].script = SlotScript(silent_from=0, only=STALLS["writes"])
    grid.servers[0].calls.clear()
    grid.run(grid.open(cap).overwrite(b"new"))
    grid.servers[0].script = SlotScript()
    before = grid.run(grid.open(cap).check())
    assert not before.healthy and before.good_count == 9
    assert grid.run(grid.open(cap).repair()).after.healthy
    assert grid.read(cap) == b"new"
