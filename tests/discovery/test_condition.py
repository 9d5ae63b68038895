"""Conditions that tasks wait for."""

from __future__ import annotations

from twisted.internet.defer import CancelledError, Deferred

from grid.discovery.condition import Condition
from tests.support.virtual_time import VirtualRuntime


def test_latch_when_one_waiter_cancels_another_wakes_all_the_others() -> None:
    runtime = VirtualRuntime()
    condition = Condition(runtime.clock)
    is_open: list[bool] = []
    waiting = [Deferred.fromCoroutine(condition.wait_until(lambda: bool(is_open), 100.0)) for _ in range(4)]
    outcomes: list[list[object]] = [[] for _ in waiting]
    waiting[0].addCallback(lambda _: waiting[1].cancel())
    for waiter, outcome in zip(waiting, outcomes, strict=True):
        waiter.addBoth(outcome.append)
    is_open.append(True)
    condition.changed()
    runtime.clock.task_clock.advance(0)
    assert outcomes[2] == outcomes[3] == [True] and len(outcomes[0]) == 1
    assert isinstance(getattr(outcomes[1][0], "value", None), CancelledError)
    assert not runtime.clock.task_clock.getDelayedCalls()


def test_latch_when_the_condition_never_holds_lets_go_at_the_deadline() -> None:
    runtime = VirtualRuntime()
    condition = Condition(runtime.clock)
    assert runtime.run(condition.wait_until(lambda: False, 3.0)) is False
    assert runtime.clock.now() == 3.0
