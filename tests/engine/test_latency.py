"""Estimating a server's speed from its answers."""

from __future__ import annotations

import pytest

from grid.engine.latency import SMALL_ANSWER, Latency


def test_latency_when_answers_come_learns_the_fixed_cost_from_small_and_the_rate_from_large_ones() -> None:
    latency = Latency()
    latency.learn(100, 100, 0.02)
    assert latency.latency_s == pytest.approx(0.02) and latency.latency_known and not latency.rate_known
    latency.learn(SMALL_ANSWER, SMALL_ANSWER, 1.02)
    assert latency.rate_known
    assert latency.time_of(SMALL_ANSWER) == pytest.approx(1.02)


def test_latency_when_a_later_answer_differs_moves_a_fifth_of_the_way() -> None:
    latency = Latency()
    latency.learn(1, 1, 1.0)
    latency.learn(1, 1, 2.0)
    assert latency.latency_s == pytest.approx(1.2)


def test_latency_when_an_answer_takes_no_time_stays_positive() -> None:
    latency = Latency()
    latency.learn(1, 1, 0.0)
    latency.learn(SMALL_ANSWER, SMALL_ANSWER, 0.0)
    assert latency.latency_s > 0 and latency.byte_s > 0


def test_latency_when_the_first_answer_includes_connecting_is_that_of_the_second() -> None:
    latency = Latency()
    latency.learn(1, 1, 0.05)
    latency.learn(1, 1, 0.01)
    assert latency.latency_s == pytest.approx(0.01)
    latency.learn(1, 1, 0.005)
    assert latency.latency_s == pytest.approx(0.009)


def test_latency_when_the_machine_is_busy_for_some_answers_still_knows_the_quickest() -> None:
    latency = Latency()
    for elapsed_s in (0.01, *[0.05] * 10):
        latency.learn(1, 1, elapsed_s)
    assert latency.quickest_s < 0.02 < latency.latency_s
    for _ in range(100):
        latency.learn(1, 1, 0.05)
    assert latency.quickest_s > 0.04
