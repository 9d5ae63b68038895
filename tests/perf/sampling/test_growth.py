"""What counts as growth of memory."""

from __future__ import annotations

import random

import pytest

from perf.sampling.growth import FEWEST, Allowance, fit

ALLOWED = Allowance(amount=10, part=0.1)


def test_fit_when_the_life_was_short_says_nothing() -> None:
    assert fit([], []) is None
    assert fit(range(FEWEST), [1.0] * FEWEST) is None


def test_fit_when_times_are_missing_is_refused() -> None:
    with pytest.raises(ValueError, match="as many"):
        fit([1.0], [])


def test_fit_when_it_only_climbs_at_first_finds_none() -> None:
    values = [float(min(at, 20)) for at in range(100)]
    growth = fit(range(100), values)
    assert growth is not None
    assert (growth.early, growth.late, growth.per_hour) == (20, 20, 0)
    assert not growth.exceeds(ALLOWED)


def test_fit_when_it_climbs_steadily_finds_the_slope() -> None:
    growth = fit(range(0, 1000, 10), [100 + at / 10 for at in range(0, 1000, 10)])
    assert growth is not None
    assert growth.per_hour == pytest.approx(360)
    assert growth.exceeds(ALLOWED)
    assert not growth.exceeds(Allowance(amount=100))


def test_fit_when_it_jumps_about_finds_none() -> None:
    draw = random.Random(1)
    growth = fit(range(200), [100 + draw.choice([0, 0, 0, 500]) for _ in range(200)])
    assert growth is not None
    assert not growth.exceeds(ALLOWED)


def test_fit_when_it_was_high_early_and_is_low_late_finds_none() -> None:
    growth = fit(range(100), [float(100 - at) for at in range(100)])
    assert growth is not None
    assert growth.per_hour < 0
    assert not growth.exceeds(Allowance(amount=0))
