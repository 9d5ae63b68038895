"""How long the handles of operations live, and how many there may be. [spec webapi 7.1]"""

from __future__ import annotations

import pytest
from attrs import define

from grid.gateway.faults import NotFound, TooManyRequests
from grid.gateway.tree.operation_table import COLLECTED_S, UNCOLLECTED_S, OperationTable
from grid.limits import MAX_OPERATIONS, MAX_RUNNING_OPERATIONS
from tests.support.virtual_time import VirtualClock

DAY = 86400.0


@define(eq=False)
class Walk:
    """Something that runs as long as a test wants."""

    finished: bool = False
    is_cancelled: bool = False
    is_forgotten: bool = False

    def cancel(self) -> None:
        """Note it."""
        self.is_cancelled = True

    def forget(self) -> None:
        """Note it."""
        self.is_forgotten = True


class Handles:
    """A table in virtual time."""

    def __init__(self) -> None:
        self.clock = VirtualClock()
        self.table: OperationTable[Walk] = OperationTable(self.clock)

    def start(self, handle: str = "h", retain_s: float | None = None) -> Walk:
        """A new operation."""
        self.table.make_room(handle)
        walk = Walk()
        self.table.add(handle, walk, retain_s)
        return walk

    def end(self, walk: Walk) -> None:
        """It ends."""
        walk.finished = True
        self.table.ended(walk)

    def later(self, seconds: float) -> None:
        """Time passes."""
        self.clock.task_clock.advance(seconds)

    def is_there(self, handle: str = "h") -> bool:
        """Whether it is remembered; asking for its state would count as collecting it."""
        return len(self.table) > 0


def test_operation_while_it_runs_then_is_kept_however_long() -> None:
    handles = Handles()
    walk = handles.start()
    handles.later(100 * DAY)
    assert handles.table.look_at("h", None) is walk


def test_operation_when_nobody_asks_then_goes_after_four_days_or_as_long_as_it_ran() -> None:
    handles = Handles()
    handles.end(handles.start())
    handles.later(UNCOLLECTED_S - 1)
    assert handles.is_there()
    handles.later(2)
    assert not handles.is_there()
    walk = handles.start()
    handles.later(10 * DAY)
    handles.end(walk)
    handles.later(9 * DAY)
    assert handles.is_there()
    handles.later(2 * DAY)
    assert not handles.is_there() and walk.is_forgotten


def test_operation_when_seen_finished_then_goes_a_day_after_the_first_look() -> None:
    handles = Handles()
    walk = handles.start()
    handles.table.look_at("h", None)
    handles.end(walk)
    handles.later(3 * DAY)
    handles.table.look_at("h", None)
    handles.later(COLLECTED_S - 10)
    handles.table.look_at("h", None)
    handles.later(11)
    with pytest.raises(NotFound, match="unknown/expired handle"):
        handles.table.look_at("h", None)


def test_operation_when_told_how_long_to_stay_then_stays_so_long() -> None:
    handles = Handles()
    handles.end(handles.start(retain_s=60))
    handles.later(59)
    handles.table.look_at("h", 10 * DAY)
    handles.later(9 * DAY)
    assert handles.is_there()
    handles.table.look_at("h", 0)
    handles.later(0.1)
    assert not handles.is_there()


def test_handle_when_used_again_then_the_older_operation_is_cancelled() -> None:
    handles = Handles()
    old = handles.start()
    new = handles.start()
    assert old.is_cancelled and not new.is_cancelled and len(handles.table) == 1


def test_operations_when_as_many_run_as_may_then_another_is_refused() -> None:
    handles = Handles()
    walks = [handles.start(str(number)) for number in range(MAX_RUNNING_OPERATIONS)]
    with pytest.raises(TooManyRequests):
        handles.start("more")
    handles.end(walks[0])
    handles.start("more")
    assert len(handles.table) == MAX_RUNNING_OPERATIONS + 1


def test_operations_when_as_many_are_remembered_as_may_then_the_oldest_that_ended_goes() -> None:
    handles = Handles()
    running = handles.start("running")
    for number in range(MAX_OPERATIONS + 5):
        handles.end(handles.start(str(number)))
    assert len(handles.table) == MAX_OPERATIONS
    assert handles.table.look_at("running", None) is running
    with pytest.raises(NotFound):
        handles.table.look_at("0", None)


def test_table_when_closed_then_all_are_cancelled_and_no_timer_is_left() -> None:
    handles = Handles()
    walk = handles.start("a")
    handles.end(handles.start("b"))
    handles.table.close()
    assert walk.is_cancelled and not handles.clock.task_clock.getDelayedCalls()
