"""Medians, bootstrap intervals and ratios paired within a run; pure, and the same for the same seed.

Times on a shared machine drift by a factor of two within hours. So nothing here assumes a distribution, and two
systems are compared by the ratio of what they did in the same run, a few seconds apart.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence

from attrs import frozen

LEVEL = 0.95
RESAMPLES = 4000
"""Enough that the ends of a 95 % interval move by less than the noise of the samples."""

Statistic = Callable[[Sequence[float]], float]


@frozen
class Interval:
    """Where a statistic lies with the probability asked for; low <= high."""

    low: float
    high: float

    def contains(self, value: float) -> bool:
        """Whether the value is inside, ends included."""
        return self.low <= value <= self.high


@frozen(kw_only=True)
class Estimate:
    """A median with its interval, and the least and the greatest of the count values it comes from."""

    median: float
    interval: Interval
    least: float
    greatest: float
    count: int


def median(values: Sequence[float]) -> float:
    """The middle value, or the mean of the middle two; ValueError of none."""
    return quantile(values, 0.5)


def quantile(values: Sequence[float], fraction: float) -> float:
    """The value below which that fraction of the values lies, between neighbours by straight lines (R's type 7)."""
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
    """The percentile bootstrap interval: of one value, that value twice. [Efron 1979]"""
    draw = random.Random(seed)
    resampled = [statistic(draw.choices(values, k=len(values))) for _ in range(RESAMPLES)]
    return _middle(resampled, level)


def estimate(values: Sequence[float], *, level: float = LEVEL, seed: int = 0) -> Estimate:
    """The median of the values and how sure it is."""
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
    """The ratio of medians in each run that has both, summarised over those runs; None if no run has both.

    numerators, denominators: run -> values, all above 0. The spread (least, greatest) is that of the runs' ratios.
    """
    shared = sorted(run for run in numerators.keys() & denominators.keys() if numerators[run] and denominators[run])
    if not shared:
        return None
    return estimate([median(numerators[run]) / median(denominators[run]) for run in shared], level=level, seed=seed)


def unpaired_ratio(
    numerators: Sequence[float], denominators: Sequence[float], *, level: float = LEVEL, seed: int = 0
) -> tuple[float, Interval]:
    """The ratio of the medians of two sets of values from different times, both resampled."""
    draw = random.Random(seed)
    resampled = [
        median(draw.choices(numerators, k=len(numerators))) / median(draw.choices(denominators, k=len(denominators)))
        for _ in range(RESAMPLES)
    ]
    return median(numerators) / median(denominators), _middle(resampled, level)


def _middle(values: Sequence[float], level: float) -> Interval:
    outside = (1 - level) / 2
    return Interval(quantile(values, outside), quantile(values, 1 - outside))
