"""Statistics against values computed by hand or published."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from itertools import combinations
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perf.records.record import read_record
from perf.reports.report import times_of
from perf.sampling.statistics import (
    FEWEST,
    Interval,
    estimate,
    estimate_runs,
    median,
    paired_ratio,
    quantile,
    student,
    uncertainty,
    unpaired_ratio,
)

TIMES = st.lists(st.floats(min_value=1e-3, max_value=1e3), min_size=1, max_size=12)


@pytest.mark.parametrize(
    ("values", "middle"), [([3.0], 3.0), ([4.0, 1.0], 2.5), ([9.0, 1.0, 5.0], 5.0), ([1.0, 2.0, 3.0, 100.0], 2.5)]
)
def test_median_of_known_values_is_known(values: list[float], middle: float) -> None:
    assert median(values) == middle


@pytest.mark.parametrize(
    ("fraction", "value"), [(0.0, 1.0), (0.25, 2.0), (0.5, 3.0), (0.9, 4.6), (0.975, 4.9), (1.0, 5.0)]
)
def test_quantile_of_one_to_five_is_that_of_r_type_7(fraction: float, value: float) -> None:
    assert quantile([5.0, 3.0, 1.0, 2.0, 4.0], fraction) == pytest.approx(value)


def test_quantile_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="no values"):
        quantile([], 0.5)


@pytest.mark.parametrize(
    ("level", "freedom", "bound"),
    [(0.95, 1, 12.706), (0.95, 2, 4.303), (0.95, 3, 3.182), (0.99, 4, 4.604), (0.95, 30, 2.042), (0.9, 120, 1.658)],
)
def test_bound_of_student_is_that_of_tables(level: float, freedom: int, bound: float) -> None:
    assert student(level, freedom) == pytest.approx(bound, abs=6e-4)


def test_interval_of_known_values_is_the_textbook_one() -> None:
    """1, 2 and 4 have logarithms of mean log 2 and standard error 0.4002."""
    found = estimate([4.0, 1.0, 2.0])
    assert found.interval.low == pytest.approx(2 / math.exp(4.3027 * 0.4002), rel=1e-3)
    assert found.interval.high == pytest.approx(2 * math.exp(4.3027 * 0.4002), rel=1e-3)
    assert estimate([2.0] * 7).interval.low == pytest.approx(2.0)


def test_interval_of_values_that_may_be_none_is_of_the_values_themselves() -> None:
    found = estimate([0.0, 1.0, 2.0])
    assert (found.interval.low, found.interval.high) == pytest.approx((1 - 2.4841, 1 + 2.4841), rel=1e-3)


def test_fewer_than_three_values_have_a_range_and_no_interval() -> None:
    found = estimate([1.0, 1.5])
    assert (found.is_range, found.interval, found.interval_at(0.95)) == (True, Interval(1.0, 1.5), None)
    assert found.uncertainty == "range of 2 runs: 1 to 1.5"
    assert estimate([1.0]).uncertainty == "one run"
    assert uncertainty([Interval(1, 2), Interval(3, 4)], 5) == "95 %: 1 to 2, 3 to 4, 5 runs"


@given(values=TIMES)
def test_estimate_of_anything_has_its_median_inside_and_more_at_a_higher_level(values: list[float]) -> None:
    found = estimate(values)
    assert min(values) == found.least <= found.median <= found.greatest == max(values)
    assert found.interval.contains(found.median)
    assert found.count == len(values)
    wide = found.interval_at(0.9999)
    assert (wide is None) == found.is_range == (len(values) < FEWEST)
    assert wide is None or wide.low <= found.interval.low <= found.interval.high <= wide.high


NOISE: dict[str, Callable[[random.Random], float]] = {
    "normal": lambda draw: draw.gauss(0, 0.1),
    "even": lambda draw: draw.uniform(-0.1, 0.1),
    "heavy": lambda draw: draw.expovariate(10),
    "with outliers": lambda draw: draw.gauss(0, 0.05) + (draw.random() < 0.1) * abs(draw.gauss(0, 0.5)),
}
"""Of logarithms of times."""
TRIALS = 1500
AT_MOST = 0.065
"""Five in a hundred, and what chance adds in 1500 trials."""


@pytest.mark.parametrize("noise", NOISE.values(), ids=NOISE)
@pytest.mark.parametrize("runs", [3, 4, 6])
def test_equal_systems_rarely_get_an_interval_without_one(noise: Callable[[random.Random], float], runs: int) -> None:
    draw = random.Random(f"{runs}")
    found = [estimate([math.exp(noise(draw) - noise(draw)) for _ in range(runs)]) for _ in range(TRIALS)]
    assert sum(not one.interval.contains(1.0) for one in found) <= AT_MOST * TRIALS


@pytest.mark.parametrize("noise", NOISE.values(), ids=NOISE)
@pytest.mark.parametrize("after", [3, 6])
def test_equal_sets_of_runs_rarely_get_an_interval_without_one(
    noise: Callable[[random.Random], float], after: int
) -> None:
    draw, wrong = random.Random(7), 0
    for _ in range(TRIALS):
        one, other = ({run: [math.exp(noise(draw))] for run in range(count)} for count in (3, after))
        interval = unpaired_ratio(one, other)[1]
        wrong += interval is not None and not interval.contains(1.0)
    assert wrong <= AT_MOST * TRIALS


def test_equal_grids_that_were_measured_rarely_get_an_interval_without_one() -> None:
    record = read_record(Path("perf/records/2026-11-21-aa.jsonl"))
    one, other = (times_of(record, system) for system in record.header.systems)
    found = [
        paired_ratio({run: one[work][run] for run in runs}, {run: other[work][run] for run in runs})
        for work in one
        for runs in combinations(range(8), 3)
    ]
    assert len(found) == 224
    assert sum(ratio is not None and not ratio.interval.contains(1.0) for ratio in found) <= AT_MOST * len(found)


def test_samples_of_one_run_are_not_counted_as_independent() -> None:
    found = estimate_runs({0: [1.0, 1.1, 0.9, 1.0], 1: [2.0, 2.1, 1.9, 2.0]})
    assert (found.count, found.is_range, found.interval) == (2, True, Interval(0.9, 2.1))
    three = estimate_runs({0: [1.0, 1.0], 1: [2.0, 2.0], 2: [4.0, 4.0]})
    assert three.interval.low == pytest.approx(estimate([1.0, 2.0, 4.0]).interval.low)


def test_paired_ratio_when_both_drift_together_sees_only_the_ratio() -> None:
    """The machine is ten times slower in each next run; within each run one system takes half the other's time."""
    slow = {run: [2.0 * 10**run, 2.2 * 10**run, 1.8 * 10**run] for run in range(4)}
    quick = {run: [1.0 * 10**run, 1.1 * 10**run, 0.9 * 10**run] for run in range(4)}
    ratio = paired_ratio(slow, quick)
    assert ratio is not None
    assert ratio.median == pytest.approx(2.0)
    assert ratio.least == pytest.approx(2.0)
    assert ratio.greatest == pytest.approx(2.0)
    assert ratio.count == 4


def test_paired_ratio_uses_only_runs_that_have_both() -> None:
    ratio = paired_ratio({0: [4.0], 1: [9.0], 2: []}, {0: [2.0], 2: [1.0], 3: [1.0]})
    assert ratio is not None
    assert (ratio.median, ratio.count) == (2.0, 1)


def test_paired_ratio_when_no_run_has_both_is_none() -> None:
    assert paired_ratio({0: [1.0]}, {1: [1.0]}) is None


def runs(*values: float) -> dict[int, list[float]]:
    return {run: [value] for run, value in enumerate(values)}


def test_unpaired_ratio_of_separate_sets_excludes_one() -> None:
    ratio, interval = unpaired_ratio(runs(2.0, 2.1, 1.9, 2.0, 2.05), runs(1.0, 1.02, 0.98, 1.0, 1.01))
    assert ratio == pytest.approx(2.0)
    assert interval is not None
    assert interval.low > 1.8
    assert not interval.contains(1.0)


def test_unpaired_ratio_of_one_set_with_itself_contains_one() -> None:
    values = runs(1.0, 1.3, 0.8, 1.1, 0.95)
    ratio, interval = unpaired_ratio(values, values)
    assert ratio == 1.0
    assert interval is not None
    assert interval.contains(1.0)


def test_unpaired_ratio_of_many_samples_of_two_runs_has_no_interval() -> None:
    ratio, interval = unpaired_ratio({0: [2.0] * 9, 1: [2.1] * 9}, runs(1.0, 1.0, 1.0))
    assert ratio == pytest.approx(2.05)
    assert interval is None
