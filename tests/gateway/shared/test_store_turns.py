"""The fair semaphore behind turns: never more holders than its count, first come, first served."""

from __future__ import annotations

from twisted.internet.defer import CancelledError, Deferred

from grid.gateway.shared.store_turns import Semaphore
from grid.runtime import Tasks


def test_turns_when_all_are_taken_then_the_next_comes_when_one_ends() -> None:
    began: list[int] = []
    turns, ends = Semaphore(2), [Deferred[None]() for _ in range(4)]
    tasks = Tasks()

    async def work(index: int) -> None:
        async with turns.one():
            began.append(index)
            await ends[index]

    for index in range(4):
        tasks.start(work(index))
    assert began == [0, 1] and not turns.is_free
    ends[1].callback(None)
    assert began == [0, 1, 2]
    for index in (0, 2, 3):
        ends[index].callback(None)
    assert began == [0, 1, 2, 3] and turns.is_free and not tasks.count


def test_turn_when_its_waiter_or_its_holder_is_cancelled_then_is_free_for_others() -> None:
    turns, end = Semaphore(1), Deferred[None]()
    errors: list[BaseException] = []
    tasks = Tasks()

    async def work() -> None:
        async with turns.one():
            await end

    holder = tasks.start(work(), on_error=errors.append)
    waiter = tasks.start(work(), on_error=errors.append)
    waiter.cancel()
    assert not turns.is_free
    holder.cancel()
    assert turns.is_free and [type(error) for error in errors] == [CancelledError, CancelledError]
