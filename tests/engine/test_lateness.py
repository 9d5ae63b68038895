"""When an answer is late, overtaken or hopeless, and a server silent."""

from __future__ import annotations

import pytest

from grid.engine.hedging import HEDGE_SHARE, OVERTAKEN_BYTES, RACED_BYTES, HedgeBudget
from grid.engine.lateness import (
    HOPELESS_S,
    LATE_FLOOR_S,
    OVERTAKEN_FLOOR_S,
    SILENCE_FLOOR_S,
    TARDY_S,
    Answers,
    ServerLoad,
    race_if_stuck,
)

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
    assert not budget.spend_on([watch], BIG, head=True)
    watch.check(1.0)
    permitted = sum(budget.spend_on([watch], BIG, head=True) for _ in range(50))
    assert permitted == HEDGE_SHARE * 100


def test_budget_when_spent_permits_only_blocking_batches_and_known_silence() -> None:
    budget = HedgeBudget(0)
    watch = make_load().sent(BIG, 0.0)
    watch.check(1.0)
    assert watch.late and not watch.silent
    assert not budget.spend_on([watch], BIG, head=True)
    watch.check(10.0)
    assert watch.silent
    assert budget.spend_on([watch], BIG, head=True)
    assert not budget.spend_on([watch], BIG, head=False)
    budget.learn()
    assert budget.spend_on([watch], BIG, head=False)


def make_loads(count: int) -> list[ServerLoad]:
    answers = Answers()
    return [ServerLoad(answers=answers) for _ in range(count)]


def test_watch_when_others_answer_quickly_is_overtaken_and_late_soon() -> None:
    quick, slow = make_loads(2)
    watch = slow.sent(100, 1.0)
    assert watch.overtaken_at == float("inf")
    quick.sent(100, 1.0).answered(1.01)
    assert watch.wake_at == pytest.approx(1.0 + OVERTAKEN_FLOOR_S)
    assert not watch.check(watch.wake_at)
    assert watch.overtaken and watch.late and not watch.silent
    assert watch.wake_at > 1.0 + OVERTAKEN_FLOOR_S


def test_watch_when_others_answered_before_it_was_asked_is_not_overtaken() -> None:
    quick, slow = make_loads(2)
    quick.sent(100, 1.0).answered(1.01)
    watch = slow.sent(100, 1.02)
    watch.check(1.02 + 2 * OVERTAKEN_FLOOR_S)
    assert not watch.overtaken and not watch.late


def test_watch_when_others_are_slow_too_is_overtaken_by_what_their_slowest_takes() -> None:
    one, other, slow = make_loads(3)
    watch = slow.sent(100, 0.0)
    one.sent(100, 0.0).answered(0.1)
    other.sent(100, 0.0).answered(0.02)
    assert 0.25 < watch.overtaken_at < 0.4
    one.sent(100, 0.1).answered(0.2)
    other.sent(100, 0.05).answered(0.3)
    assert watch.overtaken_at == pytest.approx(1.0)


def test_watch_when_much_was_asked_for_is_not_overtaken_by_small_answers() -> None:
    quick, slow = make_loads(2)
    watch = slow.sent(BIG, 0.0)
    quick.sent(100, 0.0).answered(0.01)
    assert watch.overtaken_at == float("inf")
    quick.sent(BIG // 2, 0.01).answered(0.06)
    assert watch.overtaken_at == pytest.approx(4 * 0.1)


def test_watch_when_its_server_is_far_is_overtaken_by_what_its_own_answers_take() -> None:
    near, far = make_loads(2)
    far.sent(100, 0.0).answered(0.2)
    watch = far.sent(100, 1.0)
    near.sent(100, 1.0).answered(1.01)
    assert watch.overtaken_at == pytest.approx(1.8, rel=1e-3)


def test_watch_when_others_have_answered_is_tardy_a_little_after_its_usual_time() -> None:
    quick, slow = make_loads(2)
    for load in (quick, slow):
        load.sent(100, 0.0).answered(0.1)
    watch, behind = slow.sent(BIG, 1.0), slow.sent(BIG, 1.0)
    assert watch.tardy_at == float("inf"), "nobody has answered since"
    quick.sent(BIG, 1.0).answered(1.3)
    # Latency, and 0.2 s for each million bytes that are queued.
    assert watch.tardy_at == pytest.approx(1.3 + TARDY_S)
    assert behind.tardy_at == pytest.approx(1.5 + TARDY_S)
    assert watch.wake_at == watch.tardy_at < watch.overtaken_at
    assert not watch.check(watch.wake_at)
    assert watch.tardy and not watch.late and not watch.overtaken and not slow.is_slow
    assert watch.wake_at == min(watch.overtaken_at, watch.late_at)


def test_watch_when_much_was_asked_for_is_not_tardy_before_others_have_sent_much() -> None:
    quick, slow = make_loads(2)
    watch = slow.sent(BIG, 0.0)
    quick.sent(100, 0.0).answered(0.01)
    assert watch.tardy_at == float("inf")


def test_race_when_no_server_is_in_time_takes_all_answers_for_overtaken() -> None:
    quick, slow, slower = make_loads(3)
    for load in (quick, slow, slower):
        load.sent(100, 0.0).answered(0.1)
    watches = [slow.sent(100, 1.0), slower.sent(100, 1.0), slower.sent(BIG, 1.0)]
    in_time = quick.sent(100, 1.4)
    quick.sent(BIG, 1.0).answered(1.3)
    for watch in [*watches, in_time]:
        watch.check(1.41)
    assert [watch.tardy for watch in [*watches, in_time]] == [True, True, False, False]
    race_if_stuck([*watches, in_time])
    assert not any(watch.raced for watch in watches), "an answer may still be on its way"
    in_time.answered(1.5)
    race_if_stuck(watches)
    assert all(watch.raced and watch.overtaken and watch.late for watch in watches)
    for watch in watches:
        watch.check(1.5)
    assert all(watch.overtaken for watch in watches), "even if the times move"
    watches[0].answered(1.6)
    assert not slow.is_slow and slower.is_slow


def test_budget_when_answers_are_raced_permits_more_than_if_they_are_overtaken() -> None:
    quick, slow = make_loads(2)
    watch = slow.sent(BIG, 0.0)
    quick.sent(BIG, 0.0).answered(0.01)
    watch.check(watch.overtaken_at)
    size = OVERTAKEN_BYTES // 4
    budget, small = HedgeBudget(size), HedgeBudget(size)
    budget.cover(19 * size)  # Without the share for late answers: it is less than a block.
    assert [budget.spend_on([watch], size, head=True) for _ in range(5)] == [True] * 4 + [False]
    race_if_stuck([watch])
    assert sum(budget.spend_on([watch], size, head=True) for _ in range(20)) == RACED_BYTES // size - 4
    assert [small.spend_on([watch], size, head=True) for _ in range(2)] == [True, False]


def test_budget_when_an_answer_is_overtaken_permits_a_few_mebibytes_beyond_the_share() -> None:
    quick, slow = make_loads(2)
    budget = HedgeBudget(2 * BIG)
    watch = slow.sent(BIG, 0.0)
    quick.sent(BIG, 0.0).answered(0.01)
    watch.check(watch.overtaken_at)
    assert watch.overtaken and not watch.silent
    assert [budget.spend_on([watch], BIG, head=False) for _ in range(3)] == [True, True, False]
    large = HedgeBudget(100 * OVERTAKEN_BYTES)
    size = OVERTAKEN_BYTES // 2
    assert sum(large.spend_on([watch], size, head=False) for _ in range(100)) == HEDGE_SHARE * 200 + 2


def test_budget_when_nothing_is_watched_permits_nothing() -> None:
    assert not HedgeBudget(BIG).spend_on([], 1, head=True)
