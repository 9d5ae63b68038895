"""The real clock, pool and entropy, and tasks with owners."""

from __future__ import annotations

import socket
import threading
import time
import weakref
from collections.abc import Awaitable
from typing import Any

import pytest
from twisted.internet.defer import CancelledError, Deferred, DeferredList
from twisted.internet.task import deferLater
from twisted.python import log as legacy_log
from twisted.python.failure import Failure

from grid.errors import GridError, PeerTimeoutError
from grid.runtime import (
    ReactorClock,
    RealRuntime,
    SystemEntropy,
    Tasks,
    ThreadCpuPool,
    is_cancellation,
    make_runtime,
    skip_log_contexts,
    with_deadline,
)
from tests.support.virtual_time import VirtualClock


def the_reactor() -> Any:
    from twisted.internet import reactor

    return reactor


async def test_clock_when_it_sleeps_returns_later() -> None:
    clock = ReactorClock(the_reactor())
    before = clock.now()
    await clock.sleep(0.01)
    assert clock.now() >= before + 0.005
    assert abs(clock.unix_time() - time.time()) < 60


def test_clock_when_a_call_is_due_makes_it_in_a_later_turn_and_once() -> None:
    clock = VirtualClock()
    made: list[float] = []
    clock.call_later(0, lambda: made.append(clock.now()))
    assert made == []
    clock.task_clock.advance(0)
    clock.task_clock.advance(10)
    assert made == [0.0]


def test_timer_when_cancelled_before_or_after_its_call_does_nothing() -> None:
    clock = VirtualClock()
    made: list[int] = []
    timers = [clock.call_later(1, lambda: made.append(1)), clock.call_later(2, lambda: made.append(2))]
    timers[1].cancel()
    timers[1].cancel()
    clock.task_clock.advance(3)
    timers[0].cancel()
    assert made == [1]


def test_sleep_when_cancelled_leaves_no_timer() -> None:
    clock = VirtualClock()
    outcome: list[object] = []
    task = Deferred.fromCoroutine(clock.sleep(5))
    task.addErrback(lambda failure: outcome.append(failure.type))
    task.cancel()
    assert outcome == [CancelledError]
    assert not clock.task_clock.getDelayedCalls()


async def test_pool_when_given_a_function_runs_it_on_a_thread_of_its_own() -> None:
    pool = ThreadCpuPool(the_reactor(), 2)
    try:
        assert pool.width == 2
        thread = await pool.run(threading.current_thread)
        assert thread is not threading.current_thread()
        assert await pool.run(divmod, 7, 2) == (3, 1)
        with pytest.raises(ZeroDivisionError):
            await pool.run(divmod, 7, 0)
    finally:
        pool.stop()
        pool.stop()
    assert not thread.is_alive()


async def test_pool_when_given_many_calls_at_once_answers_each_on_few_threads() -> None:
    pool = ThreadCpuPool(the_reactor(), 3)
    seen: set[int] = set()

    def work(number: int) -> int:
        seen.add(threading.get_ident())
        if number % 10 == 7:
            raise GridError(str(number))
        return number

    try:
        calls = [Deferred.fromCoroutine(_awaited(pool.run(work, number))) for number in range(500)]
        outcomes = await DeferredList(calls, consumeErrors=True)
    finally:
        pool.stop()
    for number, (_, outcome) in enumerate(outcomes):
        assert (str(outcome.value) if isinstance(outcome, Failure) else outcome) == (
            str(number) if number % 10 == 7 else number
        )
    assert 1 <= len(seen) <= 3


async def test_pool_when_a_call_is_answered_keeps_nothing_of_it() -> None:
    class Block:
        pass

    pool = ThreadCpuPool(the_reactor(), 1)
    block = Block()
    remembered = weakref.ref(block)
    try:
        await pool.run(id, block)
        del block
        assert remembered() is None
    finally:
        pool.stop()


async def test_pool_when_a_call_is_given_up_still_makes_it_and_goes_on() -> None:
    pool = ThreadCpuPool(the_reactor(), 1)
    made: list[int] = []
    try:
        given_up = Deferred.fromCoroutine(_awaited(pool.run(made.append, 1)))
        given_up.addErrback(lambda failure: failure.trap(CancelledError))
        given_up.cancel()
        await pool.run(made.append, 2)
    finally:
        pool.stop()
    assert made == [1, 2]


async def test_pool_when_stopped_with_calls_waiting_makes_them_first() -> None:
    pool = ThreadCpuPool(the_reactor(), 1)
    calls = [Deferred.fromCoroutine(_awaited(pool.run(pow, number, 2))) for number in range(20)]
    pool.stop()
    assert [answer for _, answer in await DeferredList(calls)] == [number**2 for number in range(20)]
    assert await pool.run(pow, 3, 2) == 9
    pool.stop()


async def _awaited(awaitable: Awaitable[Any]) -> Any:
    return await awaitable


def test_pool_when_no_width_is_given_has_at_least_two_threads() -> None:
    assert ThreadCpuPool(the_reactor()).width >= 2


def test_entropy_when_asked_gives_that_many_bytes_and_others_each_time() -> None:
    entropy = SystemEntropy()
    assert len(entropy.random_bytes(16)) == 16
    assert entropy.random_bytes(16) != entropy.random_bytes(16)


def test_runtime_when_made_ends_its_pool_with_the_reactor() -> None:
    class Reactor:
        def __init__(self) -> None:
            self.triggers: list[tuple[str, str, Any]] = []

        def addSystemEventTrigger(self, phase: str, event: str, function: Any) -> None:
            self.triggers.append((phase, event, function))

    reactor = Reactor()
    runtime = make_runtime(reactor, 3)
    assert isinstance(runtime, RealRuntime)
    assert runtime.cpu.width == 3
    assert [trigger[:2] for trigger in reactor.triggers] == [("during", "shutdown")]


def test_tasks_when_they_end_tell_their_owner_what_became_of_them() -> None:
    tasks = Tasks()
    results: list[object] = []
    errors: list[BaseException] = []
    gates: list[Deferred[int]] = [Deferred(), Deferred(), Deferred()]

    async def wait_for(gate: Deferred[int]) -> int:
        return await gate

    for gate in gates:
        tasks.start(wait_for(gate), results.append, errors.append)
    assert tasks.count == 3
    gates[0].callback(1)
    gates[1].errback(GridError("no"))
    tasks.cancel()
    assert results == [1]
    assert [type(error) for error in errors] == [GridError, CancelledError]
    assert is_cancellation(errors[1]) and not is_cancellation(errors[0])
    assert tasks.count == 0


def test_tasks_when_waited_for_return_when_all_have_ended_whatever_came_of_them() -> None:
    tasks = Tasks()
    gate: Deferred[None] = Deferred()

    async def fail() -> None:
        await gate
        raise GridError("no")

    tasks.start(fail())
    done: list[object] = []
    Deferred.fromCoroutine(tasks.wait()).addCallback(done.append)
    assert done == []
    gate.callback(None)
    assert done == [None]


def test_deadline_when_kept_gives_the_result_and_leaves_no_timer() -> None:
    clock = VirtualClock()
    gate: Deferred[int] = Deferred()
    outcome: list[object] = []
    Deferred.fromCoroutine(with_deadline(clock, gate, 3, lambda: PeerTimeoutError("late"))).addCallback(outcome.append)
    gate.callback(5)
    assert outcome == [5]
    assert not clock.task_clock.getDelayedCalls()


def test_deadline_when_missed_cancels_and_raises_its_error() -> None:
    clock = VirtualClock()
    cancelled: list[bool] = []
    gate: Deferred[int] = Deferred(lambda _: cancelled.append(True))
    outcome: list[Any] = []
    task = Deferred.fromCoroutine(with_deadline(clock, gate, 3, lambda: PeerTimeoutError("late")))
    task.addCallbacks(outcome.append, lambda failure: outcome.append(failure.value))
    clock.task_clock.advance(3)
    assert cancelled == [True]
    assert isinstance(outcome[0], PeerTimeoutError)


def test_deadline_when_the_caller_cancels_first_is_no_timeout() -> None:
    clock = VirtualClock()
    gate: Deferred[int] = Deferred()
    outcome: list[Any] = []
    task = Deferred.fromCoroutine(with_deadline(clock, gate, 3, lambda: PeerTimeoutError("late")))
    task.addCallbacks(outcome.append, lambda failure: outcome.append(failure.value))
    task.cancel()
    assert is_cancellation(outcome[0])
    assert not clock.task_clock.getDelayedCalls()


async def test_event_of_a_socket_when_it_fails_then_is_logged_and_the_loop_goes_on() -> None:
    from twisted.internet import reactor

    skip_log_contexts()
    heard: list[dict[str, object]] = []
    legacy_log.addObserver(heard.append)
    ours, theirs = socket.socketpair()
    calls: Deferred[None] = Deferred()

    class Reader:
        def fileno(self) -> int:
            return ours.fileno()

        def logPrefix(self) -> str:
            raise AssertionError("nobody asks whose event it is")

        def doRead(self) -> None:
            ours.recv(1)
            calls.callback(None)
            raise ValueError("a defect")

        def connectionLost(self, reason: object) -> None:
            del reason

    reader = Reader()
    loop: Any = reactor
    loop.addReader(reader)
    try:
        theirs.send(b"x")
        await calls
        await deferLater(loop, 0.0, lambda: None)
    finally:
        loop.removeReader(reader)
        ours.close()
        theirs.close()
        legacy_log.removeObserver(heard.append)
    assert any("a defect" in str(event.get("failure")) for event in heard)


async def test_pool_when_no_thread_can_be_started_says_so_and_works_again_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pool = ThreadCpuPool(the_reactor(), width=2)
    with monkeypatch.context() as patch:

        def refuse(_: threading.Thread) -> None:
            raise RuntimeError("can't start new thread")

        patch.setattr(threading.Thread, "start", refuse)
        for _ in range(2):
            with pytest.raises(GridError, match="thread"):
                await pool.run(int, "1")
    try:
        assert await with_deadline(ReactorClock(the_reactor()), pool.run(int, "2"), 60, TimeoutError) == 2
    finally:
        pool.stop()


async def test_pool_when_its_second_thread_cannot_be_started_works_with_the_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pool = ThreadCpuPool(the_reactor(), width=2)
    gate = threading.Event()
    first = pool.run(gate.wait, 60)

    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        second = pool.run(int, "2")
    gate.set()
    try:
        assert await first is True
        assert await with_deadline(ReactorClock(the_reactor()), second, 60, TimeoutError) == 2
    finally:
        pool.stop()
