"""The memory budget for unpacking directories: never exceeded, served in order, with a bounded queue."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from twisted.internet.defer import CancelledError, Deferred

from grid.directory import unpacking
from grid.directory.unpacking import UnpackingBudget
from grid.errors import BusyError


class Visit:
    """A user of the budget, who keeps memory until `leave` is called."""

    def __init__(self, room: UnpackingBudget, size: int, log: list[int], number: int) -> None:
        self.size, self.is_in = size, False
        self._leave: Deferred[None] = Deferred()
        self.outcome: list[object] = []

        async def body() -> None:
            async with room.taken(size):
                self.is_in = True
                log.append(number)
                await self._leave
            self.is_in = False

        self.task = Deferred.fromCoroutine(body())
        self.task.addBoth(self.outcome.append)

    def leave(self) -> None:
        """Go, in peace."""
        if not self._leave.called:
            self._leave.callback(None)


@given(st.lists(st.tuples(st.integers(1, 150), st.integers(0, 3)), max_size=20))
def test_budget_when_taken_then_is_never_exceeded_and_serves_in_order(steps: list[tuple[int, int]]) -> None:
    room, log, visits = UnpackingBudget(100), list[int](), list[Visit]()
    cancelled = set()
    for number, (size, then) in enumerate(steps):
        visits.append(Visit(room, size, log, number))
        inside = [visit for visit in visits if visit.is_in]
        assert sum(min(visit.size, 100) for visit in inside) <= 100
        if then == 1 and inside:
            inside[0].leave()
        if then == 2 and not visits[-1].is_in:
            cancelled.add(number)
            visits[-1].task.cancel()
    while any(visit.is_in for visit in visits):
        next(visit for visit in visits if visit.is_in).leave()
    assert log == [number for number in range(len(steps)) if number not in cancelled]
    assert all(len(visit.outcome) == 1 for visit in visits)
    for number in cancelled:
        assert visits[number].outcome[0].check(CancelledError)  # type: ignore[attr-defined]


def test_room_when_too_many_wait_then_the_next_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unpacking, "MAX_UNPACKING_WAITERS", 2)
    room, log = UnpackingBudget(10), list[int]()
    visits = [Visit(room, 10, log, number) for number in range(4)]
    assert log == [0] and visits[3].outcome[0].check(BusyError)  # type: ignore[attr-defined]
    for visit in visits:
        visit.leave()
    assert log == [0, 1, 2]
