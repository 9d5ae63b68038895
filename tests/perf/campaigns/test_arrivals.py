"""Open loops and sizes against known answers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perf.campaigns.arrivals import MODES, fitted_sizes, schedule


@given(count=st.integers(1, 200), seed=st.integers(0, 1000))
def test_staccato_starts_each_file_within_as_many_seconds_as_there_are_files(count: int, seed: int) -> None:
    plan = schedule("staccato", count, 2, str(seed))

    assert plan == schedule("staccato", count, 2, str(seed))
    assert (len(plan.due_s), plan.workers, plan.fresh) == (count, count, True)
    assert all(0 <= due <= count for due in plan.due_s)


def test_staccato_fills_its_time_evenly_and_differently_for_another_seed() -> None:
    starts = schedule("staccato", 4000, 2, "1").due_s

    assert 1900 < sum(start < 2000 for start in starts) < 2100
    assert starts != schedule("staccato", 4000, 2, "2").due_s


def test_modes_have_as_many_workers_as_they_say() -> None:
    wanted = {"serial": 1, "parallel": 100, "saturation": 100, "limited": 8}

    assert {mode: schedule(mode, 100, 8, "1").workers for mode in MODES if mode != "staccato"} == wanted
    assert schedule("limited", 3, 8, "1").workers == 3


def test_sizes_of_a_hundred_images_have_the_published_least_greatest_and_mean() -> None:
    sizes = fitted_sizes(100, 112_336, 10_924_380, 1_562_048, seed=1)
    assert (len(sizes), min(sizes), max(sizes), sum(sizes)) == (100, 112_336, 10_924_380, 156_204_800)
    assert len(set(sizes)) > 90
    assert sizes == fitted_sizes(100, 112_336, 10_924_380, 1_562_048, seed=1)


@given(count=st.integers(3, 60), least=st.integers(1, 1000), more=st.integers(100, 10**6), part=st.floats(0.3, 0.7))
def test_sizes_always_have_their_three_figures(count: int, least: int, more: int, part: float) -> None:
    most = least + more
    low, high = -(-((count - 1) * least + most) // count), (least + (count - 1) * most) // count
    mean = int(low + part * (high - low))
    sizes = fitted_sizes(count, least, most, mean, seed=3)
    assert (len(sizes), min(sizes), max(sizes), sum(sizes)) == (count, least, most, mean * count)


@pytest.mark.parametrize(
    ("count", "least", "most", "mean"), [(2, 1, 3, 2), (10, 5, 100, 6), (10, 5, 100, 99), (5, 5, 4, 5)]
)
def test_sizes_that_are_impossible_are_refused(count: int, least: int, most: int, mean: int) -> None:
    with pytest.raises(ValueError, match=r"no .* sizes"):
        fitted_sizes(count, least, most, mean, seed=1)
