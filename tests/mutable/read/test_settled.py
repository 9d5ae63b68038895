"""Reads return once the answers so far settle which version is newest; the map continues in the background."""

from __future__ import annotations

import pytest

from grid.drive import RestOfRuns
from grid.mutable.share.geometry import FormatName
from tests.support.mutable_grid import MutableGrid
from tests.support.scripted_slots import SlotScript

ROUND_TRIP_S = 0.1
LATE_S = 0.4

FORMATS: list[FormatName] = ["sdmf", "mdmf"]


def distant_grid(late: int) -> MutableGrid:
    """Ten servers, of which the first ones answer later than the others."""
    grid = MutableGrid()
    for index, server in enumerate(grid.servers):
        server.script = SlotScript(delay_s=LATE_S if index < late else ROUND_TRIP_S)
    return grid


def seconds_of_read(grid: MutableGrid, late: int, format: FormatName, *, writable: bool) -> float:
    cap = grid.create(b"entries", format)
    file = grid.open(cap if writable else cap.read_cap(), process=1)
    started = grid.runtime.clock.now()
    assert grid.run(file.read_all()) == b"entries"
    return grid.runtime.clock.now() - started


@pytest.mark.parametrize("writable", [False, True])
@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize(("late", "expected_s"), [(0, ROUND_TRIP_S), (1, ROUND_TRIP_S), (2, ROUND_TRIP_S), (3, LATE_S)])
def test_read_when_some_of_ten_servers_are_late_then_waits_for_eight(
    late: int, expected_s: float, format: FormatName, writable: bool
) -> None:
    assert seconds_of_read(distant_grid(late), late, format, writable=writable) == pytest.approx(expected_s)


@pytest.mark.parametrize("format", FORMATS)
def test_modify_when_a_read_did_not_wait_for_a_server_then_takes_one_round_trip_after_its_answer(
    format: FormatName,
) -> None:
    grid = distant_grid(1)
    cap = grid.create(b"entries", format)
    file = grid.open(cap, process=1)
    started = grid.runtime.clock.now()
    grid.run(file.read_all())
    grid.reset_counts()
    for server in grid.servers:
        server.script = SlotScript(delay_s=ROUND_TRIP_S)
    grid.run(file.modify(lambda old, _: old + b", one"))
    assert grid.runtime.clock.now() - started == pytest.approx(LATE_S + ROUND_TRIP_S)
    assert {tuple(server.calls) for server in grid.servers} == {("test_and_write",)}
    assert grid.read(cap) == b"entries, one"


def test_modify_when_a_read_left_a_silent_server_then_goes_on_without_it() -> None:
    grid = distant_grid(0)
    cap = grid.create(b"entries")
    grid.servers[0].script = SlotScript(silent_from=0)
    file = grid.open(cap, process=1)
    grid.run(file.read_all())
    grid.run(file.modify(lambda old, _: old + b", one"))
    assert grid.read(cap) == b"entries, one"


def test_modify_when_somebody_wrote_behind_a_read_then_builds_upon_that() -> None:
    grid = distant_grid(2)
    cap = grid.create(b"entries")
    file = grid.open(cap, process=1)
    grid.run(file.read_all())
    grid.run(grid.open(cap, process=2).modify(lambda old, _: old + b", two"))
    grid.run(file.modify(lambda old, _: old + b", one"))
    assert grid.read(cap) == b"entries, two, one"


def test_read_when_a_newer_version_appears_that_cannot_be_read_yet_then_waits_for_the_late() -> None:
    grid = distant_grid(0)
    cap = grid.create(b"old")
    for server in grid.servers[4:]:
        server.freeze()
    grid.run(grid.open(cap, process=1).overwrite(b"new"))
    for index, server in enumerate(grid.servers):
        # Two fast servers show the new version, which lies on two late ones as well.
        server.script.delay_s = LATE_S if index in {2, 3} else ROUND_TRIP_S
    assert grid.run(grid.open(cap.read_cap(), process=2).read_all()) == b"new"


def test_read_when_the_client_ends_before_the_last_answer_then_no_server_is_in_doubt() -> None:
    grid = distant_grid(1)
    cap = grid.create(b"entries")
    reader = grid.grid(1)
    grid.run(grid.open(cap, process=1).read_all())
    reader.remembered.of(RestOfRuns).cancel()
    grid.runtime.settle()
    assert reader.memory.in_doubt() == []
