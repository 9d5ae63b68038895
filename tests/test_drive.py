"""The loop that runs plans: turns, withdrawals, failures, cancellation, the end."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

import pytest
from attrs import define
from twisted.internet.defer import CancelledError, Deferred

from grid.drive import LINGER_S, MOST_HELD_UP_S, drive
from grid.engine.requests import Request
from grid.errors import GridError, PeerError, PeerGoneError, PeerRefusedError
from grid.ports import Event, ServerId
from tests.support.grids import grid_of
from tests.support.virtual_time import VirtualRuntime


@define(kw_only=True, eq=False)
class Ask(Request):
    """One thing wanted. name: for the test's eyes."""

    name: str = ""


class ScriptedPlan:
    """Requests what the test queued, and records the turn of each answer."""

    def __init__(self, *first: Ask, answers_wanted: int = 1) -> None:
        self.to_send: deque[Ask] = deque(first)
        self.to_withdraw: deque[Ask] = deque()
        self.heard: list[tuple[str, object]] = []
        self.answers_wanted = answers_wanted
        self.wake: float | None = None
        self.error: GridError | None = None
        self.turn_count = 0
        self.on_answer: Callable[[Ask], None] = lambda _: None

    def advance(self, now: float) -> Sequence[Ask]:
        self.turn_count += 1
        if self.wake is not None and now >= self.wake:
            self.wake = None
        self.heard.append(("turn", now))
        sent = list(self.to_send)
        self.to_send.clear()
        return sent

    def answer(self, request: Ask, answer: object, now: float) -> None:
        self.heard.append((request.name, answer))
        self.answers_wanted -= 1
        self.on_answer(request)

    def fail(self, request: Ask, error: GridError, now: float) -> None:
        self.heard.append((request.name, error))
        self.answers_wanted -= 1
        self.on_answer(request)

    def withdrawn(self) -> Sequence[Ask]:
        taken = list(self.to_withdraw)
        self.to_withdraw.clear()
        return taken

    def wake_at(self) -> float | None:
        return self.wake

    def take_events(self) -> Sequence[Event]:
        return []

    @property
    def finished(self) -> bool:
        return self.error is not None or self.answers_wanted <= 0

    def result(self) -> str:
        if self.error is not None:
            raise self.error
        return "done"


class Hands:
    """Carries requests out when the test says so."""

    def __init__(self) -> None:
        self.pending: dict[str, Deferred[object]] = {}
        self.cancelled: list[str] = []

    async def __call__(self, request: Ask) -> object:
        pending: Deferred[object] = Deferred(lambda _: self.cancelled.append(request.name))
        self.pending[request.name] = pending
        return await pending


class Run:
    """A plan under way."""

    def __init__(self, plan: ScriptedPlan, perform: Callable[[Ask], Coroutine[Any, Any, object]] | None = None) -> None:
        self.runtime = VirtualRuntime()
        self.hands = Hands()
        self.events: list[Event] = []
        self.grid = grid_of((), self.runtime, observer=self.events.append)
        self.outcome: list[object] = []
        self.task = Deferred.fromCoroutine(drive(plan, perform or self.hands, self.grid))
        self.task.addCallbacks(self.outcome.append, lambda failure: self.outcome.append(failure.value))

    def pass_turn(self, delay_s: float = 0.0) -> None:
        self.runtime.clock.task_clock.advance(delay_s)

    @property
    def idle(self) -> bool:
        return not self.runtime.clock.task_clock.getDelayedCalls()


def test_drive_when_an_answer_comes_resumes_only_in_a_later_turn() -> None:
    plan = ScriptedPlan(Ask(name="a"))
    run = Run(plan)
    run.hands.pending["a"].callback(1)
    assert plan.heard == [("turn", 0.0)]
    run.pass_turn()
    assert plan.heard == [("turn", 0.0), ("a", 1), ("turn", 0.0)]
    assert run.outcome == ["done"]
    assert run.idle


def test_drive_when_answers_come_in_one_turn_feeds_them_together() -> None:
    plan = ScriptedPlan(Ask(name="a"), Ask(name="b"), Ask(name="c"), answers_wanted=3)
    run = Run(plan)
    for name in ("b", "a", "c"):
        run.hands.pending[name].callback(name)
    run.pass_turn()
    assert [name for name, _ in plan.heard] == ["turn", "b", "a", "c", "turn"]


def test_drive_when_requests_are_answered_at_once_does_not_recurse() -> None:
    plan = ScriptedPlan(Ask(name="0"), answers_wanted=3000)

    def again(request: Ask) -> None:
        plan.to_send.append(Ask(name=str(int(request.name) + 1)))

    async def at_once(request: Ask) -> object:
        return request.name

    plan.on_answer = again
    run = Run(plan, at_once)
    for _ in range(3000):
        run.pass_turn()
    assert run.outcome == ["done"]


def test_drive_when_a_request_is_withdrawn_cancels_it_and_says_nothing_more_of_it() -> None:
    plan = ScriptedPlan(Ask(name="a"), kept := Ask(name="b"))
    withdrawn = plan.to_send[0]
    plan.to_withdraw.append(withdrawn)
    run = Run(plan)
    assert run.hands.cancelled == ["a"]
    run.hands.pending["b"].callback(2)
    run.pass_turn()
    assert [name for name, _ in plan.heard] == ["turn", "b", "turn"]
    assert [event.what for event in run.events] == ["send", "send", "cancel", "answer"]
    assert kept.index == 1


def test_drive_when_a_request_is_withdrawn_by_an_answer_beside_it_drops_its_own() -> None:
    plan = ScriptedPlan(Ask(name="a"), second := Ask(name="b"), Ask(name="c"), answers_wanted=2)
    plan.on_answer = lambda request: plan.to_withdraw.append(second) if request.name == "a" else None
    run = Run(plan)
    for name in ("a", "b", "c"):
        run.hands.pending[name].callback(None)
    run.pass_turn()
    assert [name for name, _ in plan.heard] == ["turn", "a", "c", "turn"]
    assert run.outcome == ["done"]


def test_drive_when_a_wake_up_is_due_advances_the_plan() -> None:
    plan = ScriptedPlan(Ask(name="a"))
    plan.wake = 5.0
    run = Run(plan)
    run.pass_turn(4.9)
    assert plan.turn_count == 1
    run.pass_turn(0.11)
    assert plan.turn_count == 2
    run.hands.pending["a"].callback(1)
    run.pass_turn()
    assert run.outcome == ["done"]
    assert run.idle


def test_drive_when_the_process_was_held_up_takes_in_what_has_come_before_the_plan_is_woken() -> None:
    plan = ScriptedPlan(Ask(name="a"), answers_wanted=2)
    plan.wake = 1.0
    run = Run(plan)
    run.pass_turn(1.1)
    assert [name for name, _ in plan.heard] == ["turn"]
    run.hands.pending["a"].callback("in time")
    run.pass_turn()
    assert [name for name, _ in plan.heard] == ["turn", "a", "turn"]


def test_drive_when_the_process_was_held_up_and_nothing_came_wakes_the_plan_soon() -> None:
    plan = ScriptedPlan(Ask(name="a"))
    plan.wake = 1.0
    run = Run(plan)
    run.pass_turn(100.0)
    assert plan.turn_count == 1
    run.pass_turn(MOST_HELD_UP_S)
    run.pass_turn()
    assert plan.turn_count == 2


def test_drive_when_a_plan_waits_for_nothing_says_so() -> None:
    run = Run(ScriptedPlan())
    assert isinstance(run.outcome[0], RuntimeError)
    assert "waits for nothing" in str(run.outcome[0])


def test_drive_when_a_server_raises_anything_tells_the_plan_of_a_peer_error() -> None:
    plan = ScriptedPlan(Ask(name="a", server_id=ServerId("s")))
    run = Run(plan)
    run.hands.pending["a"].errback(KeyError("secret\nthing"))
    run.pass_turn()
    error = plan.heard[1][1]
    assert isinstance(error, PeerError)
    assert "server s" in str(error) and "KeyError" in str(error)
    assert "secret" not in str(error)
    assert run.outcome == ["done"]


def test_drive_when_a_server_raises_a_grid_error_passes_it_on() -> None:
    plan = ScriptedPlan(Ask(name="a", server_id=ServerId("s")))
    run = Run(plan)
    refused = PeerError("no")
    run.hands.pending["a"].errback(refused)
    run.pass_turn()
    assert plan.heard[1] == ("a", refused)


def test_drive_when_work_of_our_own_raises_anything_ends_with_it() -> None:
    plan = ScriptedPlan(Ask(name="a"), Ask(name="b"))
    run = Run(plan)
    run.hands.pending["a"].errback(ZeroDivisionError("ours"))
    run.pass_turn()
    assert isinstance(run.outcome[0], ZeroDivisionError)
    assert run.hands.cancelled == ["b"]
    assert run.idle


def test_drive_when_work_of_our_own_raises_a_grid_error_leaves_it_to_the_plan() -> None:
    plan = ScriptedPlan(Ask(name="a"))
    run = Run(plan)
    run.hands.pending["a"].errback(GridError("disk"))
    run.pass_turn()
    assert run.outcome == ["done"]


def test_drive_when_a_request_is_cancelled_by_somebody_else_fails_it() -> None:
    plan = ScriptedPlan(Ask(name="a", server_id=ServerId("s")))
    run = Run(plan)
    run.hands.pending["a"].errback(CancelledError())
    run.pass_turn()
    assert isinstance(plan.heard[1][1], PeerError)


def test_drive_when_the_plan_fails_raises_its_error() -> None:
    plan = ScriptedPlan(Ask(name="a"), Ask(name="b"))
    run = Run(plan)
    plan.on_answer = lambda _: setattr(plan, "error", GridError("enough"))
    run.hands.pending["a"].callback(1)
    run.pass_turn()
    assert str(run.outcome[0]) == "enough"
    assert run.hands.cancelled == ["b"]


@pytest.mark.parametrize("turns", [0, 1])
def test_drive_when_the_caller_cancels_cancels_everything(turns: int) -> None:
    plan = ScriptedPlan(Ask(name="a"), Ask(name="b", parting=True))
    plan.wake = 100.0
    run = Run(plan)
    for _ in range(turns):
        run.pass_turn()
    run.task.cancel()
    assert isinstance(run.outcome[0], CancelledError)
    assert sorted(run.hands.cancelled) == ["a", "b"]
    assert run.idle


def test_drive_when_the_plan_is_done_lets_parting_requests_end() -> None:
    plan = ScriptedPlan(Ask(name="a"), Ask(name="b"), Ask(name="bye", parting=True))
    run = Run(plan)
    run.hands.pending["a"].callback(1)
    run.pass_turn()
    assert run.hands.cancelled == ["b"]
    assert run.outcome == []
    run.hands.pending["bye"].errback(GridError("nobody cares"))
    run.pass_turn()
    assert run.outcome == ["done"]
    assert run.idle


def test_drive_when_parting_requests_take_too_long_gives_them_up() -> None:
    plan = ScriptedPlan(Ask(name="a"), Ask(name="bye", parting=True))
    run = Run(plan)
    run.hands.pending["a"].callback(1)
    run.pass_turn()
    run.pass_turn(LINGER_S - 0.1)
    assert run.outcome == []
    run.pass_turn(0.2)
    assert run.outcome == ["done"]
    assert run.hands.cancelled == ["bye"]
    assert run.idle


def test_drive_when_a_parting_request_ignores_its_cancellation_still_ends() -> None:
    stubborn: Deferred[None] = Deferred()

    async def perform(request: Ask) -> object:
        if request.name == "a":
            return 1
        try:
            await Deferred()
        except CancelledError:
            await stubborn
        return None

    plan = ScriptedPlan(Ask(name="a"), Ask(name="bye", parting=True))
    run = Run(plan, perform)
    run.pass_turn()
    run.pass_turn(LINGER_S + 0.1)
    assert run.outcome == ["done"]
    stubborn.callback(None)


def test_drive_when_the_caller_cancels_while_it_lingers_gives_up_at_once() -> None:
    plan = ScriptedPlan(Ask(name="a"), Ask(name="bye", parting=True))
    run = Run(plan)
    run.hands.pending["a"].callback(1)
    run.pass_turn()
    run.task.cancel()
    assert isinstance(run.outcome[0], CancelledError)
    assert run.hands.cancelled == ["bye"]
    assert run.idle


def test_drive_when_requests_are_sent_and_answered_tells_the_observer() -> None:
    plan = ScriptedPlan(Ask(name="a", server_id=ServerId("s"), size=7, share_numbers=(3,)))
    run = Run(plan)
    run.hands.pending["a"].callback(1)
    run.pass_turn()
    sent, answered = run.events
    assert (sent.what, sent.detail, sent.server_id, sent.count) == ("send", "Ask", "s", 7)
    assert (answered.what, answered.share_numbers, answered.request_index) == ("answer", (3,), 0)


def _three(plan_answers: int) -> tuple[ScriptedPlan, Run]:
    plan = ScriptedPlan(*(Ask(name=name, server_id=ServerId(name)) for name in "abc"), answers_wanted=plan_answers)
    return plan, Run(plan)


def _in_doubt(run: Run) -> set[str]:
    memory = run.grid.memory
    return {name for name in "abc" if memory.is_doubtful(ServerId(name), "Ask")}


def test_drive_when_a_plan_ends_without_an_overdue_answer_remembers_who_was_silent() -> None:
    _, run = _three(2)
    run.pass_turn(0.01)
    run.hands.pending["a"].callback(None)
    run.pass_turn(0.5)
    run.hands.pending["b"].errback(PeerRefusedError("no room", kind="NoSpace"))
    run.pass_turn()
    assert run.outcome == ["done"]
    assert _in_doubt(run) == set(), "c was given no longer than b took"
    _, run = _three(1)
    run.hands.pending["a"].callback(None)
    run.pass_turn()
    assert _in_doubt(run) == set(), "both others merely lost a race"


@pytest.mark.parametrize(("took_s", "waited_s", "is_late"), [(0.01, 1.0, False), (1.0, 0.5, True)])
def test_drive_when_a_plan_withdraws_an_overdue_request_remembers_the_silence(
    took_s: float, waited_s: float, is_late: bool
) -> None:
    asks = [Ask(name=name, server_id=ServerId(name)) for name in "abc"]
    plan = ScriptedPlan(*asks, answers_wanted=3)
    run = Run(plan)
    run.pass_turn(took_s)
    run.hands.pending["a"].callback(None)
    run.pass_turn()
    run.pass_turn(waited_s)
    asks[1].is_late = is_late
    plan.to_withdraw.append(asks[1])
    run.hands.pending["c"].errback(PeerGoneError("no route"))
    run.pass_turn()
    assert _in_doubt(run) == {"b", "c"}
    run.task.addErrback(lambda _: None)
    run.task.cancel()
