"""Medians, bootstrap intervals, and ratios paired within a run. Pure and deterministic for a given seed.

Times on a shared machine drift by a factor of two within hours. So nothing here assumes a distribution, and two systems
are compared by the ratio of their results in the same run, a few seconds apart.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence

from attrs import frozen

LEVEL = 0.95
RESAMPLES = 4000
"""Enough to move the ends of a 95 % interval by less than the samples' noise."""

Statistic = Callable[[Sequence[float]], float]


@frozen
class Interval:
    """The interval of a statistic at the requested confidence; low <= high."""

    low: float
    high: float

    def contains(self, value: float) -> bool:
        """Whether the value is inside, including the ends."""
        return self.low <= value <= self.high


@frozen(kw_only=True)
class Estimate:
    """A median with its interval, and the range and number of its values."""

    median: float
    interval: Interval
    least: float
    greatest: float
    count: int


def median(values: Sequence[float]) -> float:
    """The middle value, or the mean of the middle two; ValueError if there are none."""
    return quantile(values, 0.5)


def quantile(values: Sequence[float], fraction: float) -> float:
    """The quantile, with linear interpolation (R's type 7)."""
    if not values:
        raise ValueError("no values")
    ordered = sorted(values)
    position = fraction * (len(ordered) - 1)
    index = min(int(position), len(ordered) - 1)
    above = ordered[min(index + 1, len(ordered) - 1)]
    return ordered[index] + (position - index) * (above - ordered[index])


def bootstrap_interval(
    values: Sequence[float], *, statistic: Statistic = median, level: float = LEVEL, seed: int = 0
) -> Interval:
    """The percentile bootstrap interval; for a single value, that value twice. [Efron 1979]"""
    draw = random.Random(seed)
    resampled = [statistic(draw.choices(values, k=len(values))) for _ in range(RESAMPLES)]
    return _middle(resampled, level)


def estimate(values: Sequence[float], *, level: float = LEVEL, seed: int = 0) -> Estimate:
    """The median of the values and its uncertainty."""
    return Estimate(
        median=median(values),
        interval=bootstrap_interval(values, level=level, seed=seed),
        least=min(values),
        greatest=max(values),
        count=len(values),
    )


def paired_ratio(
    numerators: Mapping[int, Sequence[float]],
    denominators: Mapping[int, Sequence[float]],
    *,
    level: float = LEVEL,
    seed: int = 0,
) -> Estimate | None:
    """The median over runs of the ratio of medians within each run; None if no run has both.

    numerators, denominators: positive values by run. The range is that of the runs' ratios.
    """
    shared = sorted(run for run in numerators.keys() & denominators.keys() if numerators[run] and denominators[run])
    if not shared:
        return None
    return estimate([median(numerators[run]) / median(denominators[run]) for run in shared], level=level, seed=seed)


def unpaired_ratio(
    numerators: Sequence[float], denominators: Sequence[float], *, level: float = LEVEL, seed: int = 0
) -> tuple[float, Interval]:
    """The ratio of medians of two independent sets of values, both resampled."""
    draw = random.Random(seed)
    resampled = [
        median(draw.choices(numerators, k=len(numerators))) / median(draw.choices(denominators, k=len(denominators)))
        for _ in range(RESAMPLES)
    ]
    return median(numerators) / median(denominators), _middle(resampled, level)


def _middle(values: Sequence[float], level: float) -> Interval:
    outside = (1 - level) / 2
    return Interval(quantile(values, outside), quantile(values, 1 - outside))
