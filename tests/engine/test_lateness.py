"""What is learned of a server's speed, and when an answer is late, a server silent, or all hope gone."""

from __future__ import annotations

import pytest

from grid.engine.hedging import HEDGE_SHARE, HedgeBudget
from grid.engine.lateness import HOPELESS_S, LATE_FLOOR_S, SILENCE_FLOOR_S, ServerLoad

BIG = 1_000_000


def make_load() -> ServerLoad:
    return ServerLoad()


def test_load_when_answers_come_learns_latency_from_small_and_rate_from_large_ones() -> None:
    server = make_load()
    server.sent(100, 0.0).answered(0.02)
    assert server.latency.latency_s == pytest.approx(0.02)
    server.sent(BIG, 1.0).answered(2.02)
    assert server.latency.byte_s == pytest.approx(1e-6)
    assert server.latency.time_of(BIG) == pytest.approx(1.02)


def test_load_when_requests_queue_expects_them_one_after_the_other() -> None:
    server = make_load()
    server.sent(100, 0.0).answered(0.02)
    watches = [server.sent(BIG, 1.0) for _ in range(3)]
    for index, watch in enumerate(watches, 1):
        watch.answered(1.02 + index)
    # Three answers, each a second after the one before it, are one rate, not three.
    assert server.latency.byte_s == pytest.approx(1e-6)
    assert server.outstanding_bytes == 0


def test_watch_when_a_line_proves_slow_is_late_later() -> None:
    server = make_load()
    first, second = server.sent(BIG, 0.0), server.sent(BIG, 0.0)
    assert first.late_at < 1.5
    first.answered(10.0)
    assert not second.check(10.0)
    assert not second.late
    assert second.late_at > 60.0


def test_watch_when_time_passes_goes_from_late_to_silent_to_hopeless() -> None:
    server = make_load()
    watch = server.sent(100, 5.0)
    assert not watch.check(5.0) and not watch.late and not server.is_slow
    assert watch.wake_at == pytest.approx(5.0 + LATE_FLOOR_S)
    assert not watch.check(watch.wake_at)
    assert watch.late and not watch.silent and server.is_slow
    assert watch.wake_at == pytest.approx(5.0 + SILENCE_FLOOR_S)
    assert not watch.check(watch.wake_at)
    assert watch.silent
    assert 5.0 + HOPELESS_S <= watch.wake_at < 6.0 + HOPELESS_S
    assert watch.check(watch.wake_at)


def test_watch_when_the_server_answers_something_else_is_not_silent() -> None:
    server = make_load()
    lost, other = server.sent(100, 0.0), server.sent(100, 0.0)
    other.answered(SILENCE_FLOOR_S - 0.1)
    lost.check(SILENCE_FLOOR_S)
    assert not lost.silent
    assert not lost.check(lost.silent_at)
    assert lost.late and lost.silent


def test_watch_when_ended_twice_frees_its_bytes_once() -> None:
    server = make_load()
    watch = server.sent(BIG, 0.0)
    watch.ended()
    watch.ended()
    assert server.outstanding_bytes == 0


def test_budget_when_answers_are_late_permits_a_small_share_of_the_read() -> None:
    budget = HedgeBudget(100 * BIG)
    watch = make_load().sent(BIG, 0.0)
    assert not budget.permits([watch], BIG, head=True)
    watch.check(1.0)
    permitted = sum(budget.permits([watch], BIG, head=True) for _ in range(50))
    assert permitted == HEDGE_SHARE * 100


def test_budget_when_spent_permits_what_holds_all_up_or_an_informed_guess_of_silence_alone() -> None:
    budget = HedgeBudget(0)
    watch = make_load().sent(BIG, 0.0)
    watch.check(1.0)
    assert watch.late and not watch.silent
    assert not budget.permits([watch], BIG, head=True)
    watch.check(10.0)
    assert watch.silent
    assert budget.permits([watch], BIG, head=True)
    assert not budget.permits([watch], BIG, head=False)
    budget.learn()
    assert budget.permits([watch], BIG, head=False)


def test_budget_when_nothing_is_watched_permits_nothing() -> None:
    assert not HedgeBudget(BIG).permits([], 1, head=True)
