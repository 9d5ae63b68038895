"""Limits on parallel stores: never more than their count or their bytes, first come, first served."""

from __future__ import annotations

from twisted.internet.defer import CancelledError, Deferred

from grid.gateway.shared.store_turns import LARGE_SIZE, LARGE_STORES, SMALL_STORES_BYTES, Semaphore, Stores
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


class Storing:
    """Files that are stored, each until the test ends it."""

    def __init__(self) -> None:
        self.stores = Stores()
        self.begun: list[int] = []
        self._ends: list[Deferred[None]] = []
        self._tasks = Tasks()

    def begin(self, size: int) -> None:
        end: Deferred[None] = Deferred()
        self._ends.append(end)
        self._tasks.start(self._store(size, end))

    async def _store(self, size: int, end: Deferred[None]) -> None:
        async with self.stores.turn(size):
            self.begun.append(size)
            await end

    def end_all(self) -> None:
        for end in self._ends:
            end.callback(None)
        assert not self._tasks.count


def test_small_files_when_they_come_all_at_once_are_stored_a_few_megabytes_at_a_time() -> None:
    storing = Storing()
    for _ in range(750):
        storing.begin(LARGE_SIZE - 1)
    assert len(storing.begun) > 1 and sum(storing.begun) <= SMALL_STORES_BYTES
    storing.end_all()
    assert len(storing.begun) == 750


def test_files_of_no_size_to_speak_of_are_counted_too() -> None:
    storing = Storing()
    for _ in range(1000):
        storing.begin(100)
    assert 100 < len(storing.begun) < 1000
    storing.end_all()


def test_small_file_does_not_wait_for_large_ones_nor_a_large_one_for_small_ones() -> None:
    storing = Storing()
    for _ in range(LARGE_STORES + 1):
        storing.begin(LARGE_SIZE)
    storing.begin(5)
    assert storing.begun == [LARGE_SIZE] * LARGE_STORES + [5]
    storing.end_all()
    for _ in range(750):
        storing.begin(LARGE_SIZE - 1)
    storing.begin(LARGE_SIZE)
    assert storing.begun[-1] == LARGE_SIZE
