"""Statistics against values computed by hand or published."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perf.sampling.statistics import (
    Interval,
    bootstrap_interval,
    estimate,
    median,
    paired_ratio,
    quantile,
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


def test_interval_when_all_values_agree_is_that_value() -> None:
    assert bootstrap_interval([2.0] * 7) == Interval(2.0, 2.0)


def test_interval_of_a_mean_is_near_the_textbook_one() -> None:
    """The standard error of the mean of 1..20 is 1.29 (population), so 95 % is 10.5 +- 2.53."""
    values = [float(value) for value in range(1, 21)]
    interval = bootstrap_interval(values, statistic=lambda some: sum(some) / len(some), seed=5)
    assert interval.low == pytest.approx(10.5 - 2.53, abs=0.25)
    assert interval.high == pytest.approx(10.5 + 2.53, abs=0.25)


def test_interval_with_the_same_seed_is_the_same() -> None:
    values = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0]
    assert bootstrap_interval(values, seed=3) == bootstrap_interval(values, seed=3)


@given(values=TIMES)
def test_estimate_of_anything_lies_between_its_extremes(values: list[float]) -> None:
    found = estimate(values)
    assert min(values) == found.least <= found.interval.low <= found.interval.high <= found.greatest == max(values)
    assert found.least <= found.median <= found.greatest
    assert found.count == len(values)


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


def test_unpaired_ratio_of_separate_sets_excludes_one() -> None:
    ratio, interval = unpaired_ratio([2.0, 2.1, 1.9, 2.0, 2.05], [1.0, 1.02, 0.98, 1.0, 1.01])
    assert ratio == pytest.approx(2.0)
    assert interval.low > 1.8
    assert not interval.contains(1.0)


def test_unpaired_ratio_of_one_set_with_itself_contains_one() -> None:
    values = [1.0, 1.3, 0.8, 1.1, 0.95]
    ratio, interval = unpaired_ratio(values, values)
    assert ratio == 1.0
    assert interval.contains(1.0)
