"""Fits, knees and steps against known answers."""

from __future__ import annotations

import math
import random
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perf.sampling.fits import Point, find_knee, find_step, fit_cost


def points(per_file: float, per_byte: float, noise: float = 0.0, seed: int = 1) -> list[Point]:
    draw = random.Random(seed)
    return [
        Point(
            files=files,
            bytes=files * size,
            seconds=(per_file * files + per_byte * files * size) * (1 + draw.uniform(-noise, noise)),
        )
        for files in (100, 1000, 10000)
        for size in (1000, 10_000, 100_000)
    ]


@given(per_file=st.floats(1e-4, 1), per_byte=st.floats(1e-9, 1e-5))
def test_fit_of_exact_points_gives_both_costs(per_file: float, per_byte: float) -> None:
    solved = fit_cost([points(per_file, per_byte)[:6]])
    assert solved is not None
    assert solved.per_file_s == pytest.approx(per_file, rel=1e-6)
    assert solved.per_byte_s == pytest.approx(per_byte, rel=1e-6)


def test_fits_of_noisy_points_have_both_costs_in_their_intervals_about_as_often_as_they_say() -> None:
    found = [
        fit_cost([points(0.002, 1e-8, noise=0.1, seed=4 * trial + run) for run in range(4)]) for trial in range(100)
    ]
    costs = [cost for cost in found if cost is not None]
    assert all((cost.runs, cost.kinds) == (4, 9) and cost.error < 0.1 for cost in costs)
    assert sum(cost.per_file_interval.contains(0.002) for cost in costs) >= 88
    assert sum(cost.per_byte_interval.contains(1e-8) for cost in costs) >= 88


def test_fit_of_several_runs_has_the_spread_of_runs_and_not_of_points() -> None:
    """Each run fits exactly, and one has twice the costs of the other."""
    cost = fit_cost([points(0.002, 1e-8), points(0.004, 2e-8)])
    assert cost is not None
    assert (cost.per_file_interval.low, cost.per_file_interval.high) == pytest.approx((0.002, 0.004))
    assert (cost.per_byte_interval.low, cost.per_byte_interval.high) == pytest.approx((1e-8, 2e-8))


def test_fit_when_only_files_cost_has_nothing_for_bytes() -> None:
    cost = fit_cost(
        [[Point(files=n, bytes=n * size, seconds=n * 0.01 / size**0.1) for n in (1, 9) for size in (10, 99)]]
    )
    assert cost is not None
    assert cost.per_byte_s == 0.0
    assert cost.per_file_s > 0


def test_fit_of_points_with_one_size_of_file_tells_nothing() -> None:
    assert fit_cost([[Point(files=n, bytes=n * 1000, seconds=n) for n in (1, 2, 3)]]) is None


@pytest.mark.parametrize(
    ("rates", "degree", "seen", "falls"),
    [
        ({1: 100, 2: 101, 4: 102, 8: 100}, 1, True, False),
        ({1: 100, 2: 190, 4: 370, 8: 372, 16: 371}, 4, True, False),
        ({1: 100, 2: 190, 4: 370, 8: 372, 16: 200}, 4, True, True),
        ({1: 100, 2: 200, 4: 400}, 4, False, False),
        ({1: 143, 2: 138, 4: 138, 8: 133}, 1, True, True),
    ],
)
def test_knee_is_the_least_degree_that_reaches_the_best(
    rates: dict[int, float], degree: int, seen: bool, falls: bool
) -> None:
    knee = find_knee({streams: [rate * 0.9, rate, rate * 1.1] for streams, rate in rates.items()})
    assert (knee.degree, knee.is_seen, knee.falls) == (degree, seen, falls)
    assert str(degree) in str(knee)


def test_knee_of_one_degree_is_refused() -> None:
    with pytest.raises(ValueError, match="two degrees"):
        find_knee({1: [1.0]})


@pytest.mark.parametrize(("groups", "at"), [(12, 7), (8, 4), (8, 7), (10, 3)])
def test_step_is_found_where_it_is(groups: int, at: int) -> None:
    """Also if only the newest group is after it."""
    draw = random.Random(2)
    step = find_step([[draw.gauss(100 if index < at else 150, 3) for _ in range(5)] for index in range(groups)])
    assert step is not None
    assert step.at == at
    assert step.ratio == pytest.approx(1.5, rel=0.05)


NOISE: dict[str, Callable[[random.Random], float]] = {
    "normal": lambda draw: draw.gauss(0, 0.1),
    "even": lambda draw: draw.uniform(-0.1, 0.1),
    "heavy": lambda draw: draw.expovariate(10) - draw.expovariate(10),
    "of two kinds": lambda draw: draw.gauss(0, 0.02) + 0.3 * (draw.random() < 0.5),
}
"""Of logarithms of rates."""


@pytest.mark.parametrize("noise", NOISE.values(), ids=NOISE)
@pytest.mark.parametrize("groups", [8, 12])
def test_step_in_noise_is_rare(noise: Callable[[random.Random], float], groups: int) -> None:
    draw = random.Random(3)
    found = [find_step([[math.exp(noise(draw))] for _ in range(groups)]) for _ in range(1000)]
    assert sum(step is not None for step in found) <= 50


def test_step_that_is_small_or_has_too_few_groups_is_none() -> None:
    assert find_step([[100.0]] * 6 + [[102.0]] * 6) is None
    assert find_step([[1.0]] * 4 + [[9.0]] * 3) is None
    assert find_step([[1.0]] * 9) is None
