"""Work that several callers wait for: what happens when some of them, or all, give up."""

from __future__ import annotations

import pytest
from twisted.internet.defer import CancelledError, Deferred

from grid.directory.gathering import Coalescer
from grid.runtime import Tasks


class Work:
    """Batches that end when the test says so. begun: a Deferred for each; cancelled: how many were abandoned."""

    def __init__(self, *, reads_only: bool) -> None:
        self.begun: list[Deferred[str]] = []
        self.cancelled = 0
        self.tasks = Tasks()
        self.together: Coalescer[int, str] = Coalescer(self._work, self.tasks, reads_only=reads_only)

    async def _work(self, items: list[int]) -> str:
        self.begun.append(Deferred())
        try:
            return await self.begun[-1]
        except CancelledError:
            self.cancelled += 1
            raise

    def submit(self, item: int) -> tuple[Deferred[str], list[object]]:
        """A waiter, and its outcome."""
        outcome: list[object] = []
        waiting = Deferred.fromCoroutine(self.together.submit(item))
        waiting.addCallbacks(outcome.append, lambda failure: outcome.append(failure.type))
        return waiting, outcome


def test_read_when_nobody_waits_for_it_anymore_ends_and_the_next_begins() -> None:
    work = Work(reads_only=True)
    first, told_first = work.submit(1)
    _, told_second = work.submit(2)
    first.cancel()
    assert (work.cancelled, told_first, told_second) == (1, [CancelledError], [])
    assert len(work.begun) == 2, "the second one waited for the end of the first"
    work.begun[1].callback("children")
    assert told_second == ["children"] and work.together.is_idle and not work.tasks.count


def test_read_when_somebody_waits_for_it_still_goes_on() -> None:
    work = Work(reads_only=True)
    work.submit(0)
    waiting = [work.submit(item) for item in range(1, 4)]
    work.begun[0].callback("before")
    waiting[0][0].cancel()
    waiting[2][0].cancel()
    assert (len(work.begun), work.cancelled) == (2, 0)
    work.begun[1].callback("children")
    assert [told for _, told in waiting] == [[CancelledError], ["children"], [CancelledError]]
    assert work.together.is_idle


def test_read_when_all_give_up_before_it_begins_never_begins() -> None:
    work = Work(reads_only=True)
    work.submit(0)
    for waiting, _ in [work.submit(1), work.submit(2)]:
        waiting.cancel()
    work.begun[0].callback("children")
    assert len(work.begun) == 1 and work.together.is_idle


@pytest.mark.parametrize("is_under_way", [False, True])
def test_change_when_nobody_waits_for_it_anymore_is_still_made(is_under_way: bool) -> None:
    work = Work(reads_only=False)
    waiting = [work.submit(item) for item in range(2)]
    waiting[0 if is_under_way else 1][0].cancel()
    work.begun[0].callback("first")
    work.begun[1].callback("second")
    assert work.cancelled == 0 and work.together.is_idle
    assert [told for _, told in waiting] == (
        [[CancelledError], ["second"]] if is_under_way else [["first"], [CancelledError]]
    )
