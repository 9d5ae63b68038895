from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from twisted.internet.defer import Deferred

from grid.wire.server_memory import ByteBudget


@given(st.lists(st.integers(0, 15), max_size=20))
def test_budget_when_asked_for_more_than_there_is_hands_it_out_in_turn(sizes: list[int]) -> None:
    budget = ByteBudget(10)
    granted: list[tuple[int, int]] = []

    async def hold(index: int, size: int) -> None:
        granted.append((index, await budget.acquire(size)))

    tasks = [Deferred.fromCoroutine(hold(index, size)) for index, size in enumerate(sizes)]
    released = 0
    while released < len(granted):
        assert sum(size for _, size in granted[released:]) <= 10
        budget.release(granted[released][1])
        released += 1
    assert granted == [(index, min(10, size)) for index, size in enumerate(sizes)]
    assert all(task.called for task in tasks)
