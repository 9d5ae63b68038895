"""Read-write locks on a key: readers together, writers alone, in order of arrival."""

from __future__ import annotations

import pytest
from twisted.internet.defer import CancelledError, Deferred
from twisted.python.failure import Failure

from grid.errors import PeerRefusedError
from grid.limits import MAX_WAITING_CALLS
from grid.read_write_locks import ReadWriteLocks


class Worker:
    """A task that takes a lock, records it, and works until it is ended."""

    def __init__(self, turns: ReadWriteLocks, log: list[str], name: str, *, exclusive: bool, key: str = "key") -> None:
        self._end: Deferred[None] = Deferred()
        self._turns, self._log, self._name, self._exclusive, self._key = turns, log, name, exclusive, key
        self.task = Deferred.fromCoroutine(self._work())

    async def _work(self) -> None:
        turn = self._turns.exclusive if self._exclusive else self._turns.shared
        async with turn(self._key):
            self._log.append(f"+{self._name}")
            await self._end
            self._log.append(f"-{self._name}")

    def end(self) -> None:
        self._end.callback(None)


async def enter(turns: ReadWriteLocks, entered: list[str]) -> None:
    """Take a turn that cannot be refused."""
    async with turns.shared("key", refusable=False):
        entered.append("in")


def test_turns_when_shared_are_taken_together_and_exclusive_ones_alone() -> None:
    turns, log = ReadWriteLocks(), list[str]()
    one = Worker(turns, log, "r1", exclusive=False)
    two = Worker(turns, log, "r2", exclusive=False)
    writer = Worker(turns, log, "w", exclusive=True)
    late = Worker(turns, log, "r3", exclusive=False)
    assert log == ["+r1", "+r2"]
    one.end()
    assert log == ["+r1", "+r2", "-r1"]
    two.end()
    assert log[-2:] == ["-r2", "+w"]
    writer.end()
    assert log[-2:] == ["-w", "+r3"]
    late.end()
    assert turns.count == 0


def test_turns_when_two_writers_wait_are_taken_one_after_the_other() -> None:
    turns, log = ReadWriteLocks(), list[str]()
    workers = [Worker(turns, log, f"w{number}", exclusive=True) for number in range(3)]
    for worker in workers:
        worker.end()
    assert log == ["+w0", "-w0", "+w1", "-w1", "+w2", "-w2"]
    assert turns.count == 0


def test_turns_when_on_different_keys_do_not_wait() -> None:
    turns, log = ReadWriteLocks(), list[str]()
    one = Worker(turns, log, "a", exclusive=True, key="a")
    two = Worker(turns, log, "b", exclusive=True, key="b")
    assert log == ["+a", "+b"]
    assert turns.count == 2
    one.end()
    two.end()
    assert turns.count == 0


def test_turn_when_cancelled_while_waiting_lets_the_next_one_in() -> None:
    turns, log = ReadWriteLocks(), list[str]()
    reader = Worker(turns, log, "r1", exclusive=False)
    writer = Worker(turns, log, "w", exclusive=True)
    late = Worker(turns, log, "r2", exclusive=False)
    writer.task.cancel()
    assert log == ["+r1", "+r2"]
    failures: list[Failure] = []
    writer.task.addErrback(failures.append)
    assert isinstance(failures[0].value, CancelledError)
    reader.end()
    late.end()
    assert turns.count == 0


def test_turn_when_its_work_fails_is_given_back() -> None:
    turns, log = ReadWriteLocks(), list[str]()
    failing = Worker(turns, log, "w", exclusive=True)
    waiting = Worker(turns, log, "r", exclusive=False)
    failing.task.cancel()
    failing.task.addErrback(lambda failure: failure.trap(CancelledError))
    assert log == ["+w", "+r"]
    waiting.end()
    assert turns.count == 0


def test_turn_when_too_many_wait_is_refused() -> None:
    turns, log = ReadWriteLocks(), list[str]()
    workers = [Worker(turns, log, "w", exclusive=True) for _ in range(MAX_WAITING_CALLS + 1)]
    refused = Worker(turns, log, "late", exclusive=True)
    failures: list[Failure] = []
    refused.task.addErrback(failures.append)
    assert isinstance(failures[0].value, PeerRefusedError)
    entered: list[str] = []
    patient = Deferred.fromCoroutine(enter(turns, entered))
    for worker in workers:
        worker.end()
    assert patient.called
    assert entered == ["in"]
    assert "+late" not in log
    assert turns.count == 0


@pytest.mark.parametrize("exclusive", [True, False])
async def test_turn_when_free_is_taken_at_once(exclusive: bool) -> None:
    turns = ReadWriteLocks()
    async with turns.exclusive("key") if exclusive else turns.shared("key"):
        assert turns.count == 1
    assert turns.count == 0


def test_turn_when_its_task_ends_between_its_admission_and_its_start_is_given_back() -> None:
    """Two readers are admitted together; the first one ends the second before that has heard of it."""
    turns, log = ReadWriteLocks(), list[str]()
    writer = Worker(turns, log, "w", exclusive=True)
    tasks: list[Deferred[None]] = []

    async def first() -> None:
        async with turns.shared("key"):
            tasks[1].cancel()

    tasks.append(Deferred.fromCoroutine(first()))
    tasks.append(Worker(turns, log, "r2", exclusive=False).task)
    tasks[1].addErrback(lambda failure: failure.trap(CancelledError))
    writer.end()
    assert turns.count == 0
    late = Worker(turns, log, "late", exclusive=True)
    assert log == ["+w", "-w", "+late"]
    late.end()
    assert turns.count == 0
