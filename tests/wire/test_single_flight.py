"""Attempts shared by all callers: in whatever order things happen, nobody waits forever."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from attrs import define, field
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from twisted.internet.defer import CancelledError, Deferred
from twisted.python.failure import Failure

from grid.errors import GridError, PeerError, PeerGoneError, PeerTimeoutError, PeerUnreachableError
from grid.wire.single_flight import SingleFlight
from tests.support.depth import examples
from tests.support.virtual_time import VirtualRuntime

DEADLINE_S = 10.0


@define
class Attempts:
    """What attempts do. next: a value or an error at once, or None to wait for finish(). stubborn: canceling ends none."""

    runtime: VirtualRuntime = field(factory=VirtualRuntime)
    next: object = None
    stubborn: bool = False
    began: int = 0
    live: list[Deferred[object]] = field(factory=list)
    live_on: list[Deferred[object]] = field(factory=list)
    arrived: list[object] = field(factory=list)
    failed: list[GridError] = field(factory=list)
    flight: SingleFlight[object] = field(init=False)
    outcomes: list[object] = field(factory=list)
    on_arrival: Callable[[object], None] = lambda _: None

    def __attrs_post_init__(self) -> None:
        def arrived(result: object) -> None:
            self.arrived.append(result)
            self.on_arrival(result)

        self.flight = SingleFlight(
            self.attempt, self.runtime.clock, DEADLINE_S, "server x", arrived=arrived, failed=self.failed.append
        )

    async def attempt(self) -> object:
        self.began += 1
        if isinstance(self.next, BaseException):
            raise self.next
        if self.next is not None:
            return self.next
        waiting: Deferred[object] = Deferred()
        self.live.append(waiting)
        stubborn = self.stubborn
        try:
            return await waiting
        except CancelledError:
            if stubborn:
                self.live.remove(waiting)
                self.live_on.append(Deferred())
                return await self.live_on[-1]
            raise
        finally:
            if waiting in self.live:
                self.live.remove(waiting)

    def join(self) -> Deferred[object]:
        waiter = Deferred.fromCoroutine(self.flight.join())
        waiter.addBoth(self.outcomes.append)
        return waiter

    def finish(self, outcome: object) -> None:
        (waiting,) = self.live
        if isinstance(outcome, BaseException):
            waiting.errback(outcome)
        else:
            waiting.callback(outcome)

    def advance(self, seconds: float) -> None:
        self.runtime.clock.task_clock.advance(seconds)


def error_of(outcome: object) -> BaseException:
    assert isinstance(outcome, Failure) and outcome.value is not None
    return outcome.value


@pytest.fixture
def attempts() -> Attempts:
    return Attempts()


ERRORS = [
    PeerError("no"),
    ValueError("a..b"),
    RuntimeError("a defect"),
    KeyError("x"),
    CancelledError(),
    OSError(24, "x"),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_join_when_the_attempt_fails_at_once_hears_an_error_of_our_tree(attempts: Attempts, error: Exception) -> None:
    attempts.next = error
    attempts.join()
    (outcome,) = attempts.outcomes
    assert isinstance(error_of(outcome), GridError)
    assert attempts.failed == [error_of(outcome)] and not attempts.flight.is_flying


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_join_when_the_attempt_fails_later_fails_everybody_once(attempts: Attempts, error: Exception) -> None:
    for _ in range(3):
        attempts.join()
    attempts.finish(error)
    assert attempts.began == 1 and len(attempts.failed) == 1 and len(attempts.outcomes) == 3
    assert all(isinstance(error_of(outcome), GridError) for outcome in attempts.outcomes)


def test_join_when_the_attempt_succeeds_at_once_returns_its_result(attempts: Attempts) -> None:
    attempts.next = "session"
    attempts.join()
    assert attempts.outcomes == ["session"] and attempts.arrived == ["session"]


def test_join_when_an_address_is_impossible_says_so(attempts: Attempts) -> None:
    attempts.next = ValueError("hostname 'a..b' is no good")
    attempts.join()
    assert str(error_of(attempts.outcomes[0])) == "server x cannot be reached: the address cannot be used"
    assert isinstance(error_of(attempts.outcomes[0]), PeerUnreachableError)


@pytest.mark.parametrize("stubborn", [False, True])
def test_join_when_the_attempt_hangs_ends_at_the_deadline(attempts: Attempts, stubborn: bool) -> None:
    attempts.stubborn = stubborn
    attempts.join()
    attempts.advance(DEADLINE_S - 0.1)
    attempts.join()
    assert not attempts.outcomes
    attempts.advance(0.2)
    assert [type(error_of(outcome)) for outcome in attempts.outcomes] == [PeerTimeoutError] * 2
    assert len(attempts.failed) == 1
    attempts.next = "session"
    attempts.join()
    assert attempts.outcomes[-1] == "session"


def test_attempt_when_it_ends_after_its_deadline_is_ignored(attempts: Attempts) -> None:
    attempts.stubborn = True
    attempts.join()
    attempts.advance(DEADLINE_S + 1)
    attempts.live_on.pop().callback("too late")
    assert not attempts.arrived and len(attempts.failed) == len(attempts.outcomes) == 1


def test_cancel_when_callers_wait_wakes_them_and_counts_as_no_failure(attempts: Attempts) -> None:
    attempts.join()
    attempts.flight.cancel()
    assert isinstance(error_of(attempts.outcomes[0]), PeerGoneError)
    assert not attempts.failed and not attempts.live
    assert not attempts.runtime.clock.task_clock.getDelayedCalls()


def test_waiter_when_it_is_canceled_ends_alone(attempts: Attempts) -> None:
    gone, _ = attempts.join(), attempts.join()
    gone.cancel()
    attempts.finish("session")
    assert isinstance(error_of(attempts.outcomes[0]), CancelledError)
    assert attempts.outcomes[1:] == ["session"]


def test_waiters_when_one_cancels_another_as_it_wakes_are_all_woken(attempts: Attempts) -> None:
    first = attempts.join()
    second, _ = attempts.join(), attempts.join()
    first.addCallback(lambda _: second.cancel())
    attempts.finish("session")
    assert attempts.outcomes[0] == attempts.outcomes[-1] == "session" and len(attempts.outcomes) == 3


def test_waiters_when_the_owner_fails_to_take_the_result_get_its_error(attempts: Attempts) -> None:
    def refuse(_: object) -> None:
        raise ValueError

    attempts.on_arrival = refuse
    attempts.join()
    attempts.finish("session")
    assert isinstance(error_of(attempts.outcomes[0]), PeerUnreachableError) and len(attempts.failed) == 1


def test_attempt_when_its_owner_cancels_it_while_it_begins_is_given_up(attempts: Attempts) -> None:
    waiting: Deferred[object] = Deferred()
    flight: SingleFlight[object]

    async def attempt() -> object:
        flight.cancel()
        return await waiting

    flight = SingleFlight(
        attempt, attempts.runtime.clock, DEADLINE_S, "x", arrived=attempts.arrived.append, failed=attempts.failed.append
    )
    outcome: list[object] = []
    Deferred.fromCoroutine(flight.join()).addBoth(outcome.append)
    assert isinstance(error_of(outcome[0]), PeerGoneError) and waiting.called


class SingleFlightMachine(RuleBasedStateMachine):
    """Callers, attempts of every kind, cancellations and time in any order, against a list of who still waits since when."""

    @initialize()
    def begin(self) -> None:
        self.attempts = Attempts()
        self.waiting: list[tuple[Deferred[object], float]] = []
        self.ended = 0

    @rule(
        outcome=st.sampled_from([None, None, "session", *ERRORS]),
        stubborn=st.booleans(),
        then=st.sampled_from(["nothing", "join", "cancel", "cancel a waiter"]),
    )
    def join(self, outcome: object, stubborn: bool, then: str) -> None:
        self.attempts.next, self.attempts.stubborn = outcome, stubborn
        live, began = self.attempts.flight.is_flying, self.attempts.began
        waiter = Deferred.fromCoroutine(self.attempts.flight.join())
        self.waiting.append((waiter, self.attempts.runtime.clock.now()))
        waiter.addBoth(lambda result: self._woken(waiter, result, then))
        assert live or self.attempts.began > began

    def _woken(self, waiter: Deferred[object], result: object, then: str) -> None:
        self.ended += 1
        assert result in ("session", "too late") or isinstance(error_of(result), GridError | CancelledError)
        match then:
            case "join" if self.ended < 500:
                # It asks again at once, as a caller with a further try does.
                self.attempts.next = None
                again = Deferred.fromCoroutine(self.attempts.flight.join())
                self.waiting.append((again, self.attempts.runtime.clock.now()))
                again.addBoth(lambda result: self._woken(again, result, "nothing"))
            case "cancel":
                self.attempts.flight.cancel()
            case "cancel a waiter":
                for other, _ in list(self.waiting):
                    if other is not waiter and not other.called:
                        other.cancel()
                        return

    @rule(outcome=st.sampled_from(["session", *ERRORS]))
    def finish(self, outcome: object) -> None:
        if self.attempts.live:
            self.attempts.finish(outcome)

    @rule()
    def finish_one_that_was_given_up(self) -> None:
        if self.attempts.live_on:
            arrived, is_flying = len(self.attempts.arrived), self.attempts.flight.is_flying
            self.attempts.live_on.pop().callback("too late")
            assert len(self.attempts.arrived) == arrived or is_flying

    @rule()
    def cancel(self) -> None:
        self.attempts.flight.cancel()

    @rule(index=st.integers(0, 20))
    def cancel_waiter(self, index: int) -> None:
        if self.waiting:
            self.waiting[index % len(self.waiting)][0].cancel()

    @rule(seconds=st.sampled_from([0.0, 1.0, DEADLINE_S / 2, DEADLINE_S]))
    def pass_time(self, seconds: float) -> None:
        self.attempts.advance(seconds)

    @invariant()
    def nobody_is_forgotten(self) -> None:
        now = self.attempts.runtime.clock.now()
        self.waiting = [(waiter, since) for waiter, since in self.waiting if not waiter.called]
        assert all(now - since < DEADLINE_S for _, since in self.waiting)
        assert not self.waiting or self.attempts.flight.is_flying
        assert len(self.attempts.live) <= 1
        timers = len(self.attempts.runtime.clock.task_clock.getDelayedCalls())
        assert timers == self.attempts.flight.is_flying


SingleFlightMachine.TestCase.settings = settings(max_examples=examples(100), stateful_step_count=30, deadline=None)
TestSingleFlight = SingleFlightMachine.TestCase
