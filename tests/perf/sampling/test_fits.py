"""Fits, knees and steps against known answers."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perf.sampling.fits import Point, find_knee, find_step, fit_cost


def points(per_file: float, per_byte: float, noise: float = 0.0) -> list[Point]:
    draw = random.Random(1)
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
    solved = fit_cost(points(per_file, per_byte)[:6])
    assert solved is not None
    assert solved.per_file_s == pytest.approx(per_file, rel=1e-6)
    assert solved.per_byte_s == pytest.approx(per_byte, rel=1e-6)


def test_fit_of_noisy_points_has_both_costs_in_its_intervals() -> None:
    cost = fit_cost(points(0.002, 1e-8, noise=0.1))
    assert cost is not None
    assert cost.per_file_interval.contains(0.002)
    assert cost.per_byte_interval.contains(1e-8)
    assert cost.error < 0.1


def test_fit_when_only_files_cost_has_nothing_for_bytes() -> None:
    cost = fit_cost([Point(files=n, bytes=n * size, seconds=n * 0.01 / size**0.1) for n in (1, 9) for size in (10, 99)])
    assert cost is not None
    assert cost.per_byte_s == 0.0
    assert cost.per_file_s > 0


def test_fit_of_points_with_one_size_of_file_tells_nothing() -> None:
    assert fit_cost([Point(files=n, bytes=n * 1000, seconds=n) for n in (1, 2, 3)]) is None


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


def test_step_is_found_where_it_is() -> None:
    draw = random.Random(2)
    groups = [[draw.gauss(100 if index < 7 else 120, 3) for _ in range(5)] for index in range(12)]
    step = find_step(groups)
    assert step is not None
    assert step.at == 7
    assert step.ratio == pytest.approx(1.2, rel=0.05)


def test_step_in_noise_is_rare() -> None:
    draw = random.Random(3)
    found = [find_step([[draw.gauss(100, 15)] for _ in range(10)], seed=seed) for seed in range(40)]
    assert sum(step is not None for step in found) <= 5


def test_step_that_is_small_or_has_too_few_groups_is_none() -> None:
    assert find_step([[100.0]] * 6 + [[102.0]] * 6) is None
    assert find_step([[1.0], [1.0], [9.0], [9.0]]) is None
