"""Medians, intervals by Student's t, and ratios paired within a run. Pure.

Times on a shared machine drift by a factor of two within hours. So two systems are compared by the ratio of their
results in the same run, a few seconds apart, and only runs count as independent: samples within a run are not. The
logarithm of such a ratio of equals is as often above 0 as below, whatever the noise. For such values Student's t holds
its level from FEWEST runs on (tests simulate it); a bootstrap of so few does not.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache

from attrs import evolve, field, frozen

LEVEL = 0.95
FEWEST = 3
"""Fewer values have only a range: no useful interval, and no verdict."""


@frozen
class Interval:
    """The interval of a statistic at the requested confidence; low <= high."""

    low: float
    high: float

    def contains(self, value: float) -> bool:
        """Whether the value is inside, including the ends."""
        return self.low <= value <= self.high


def _values(values: Sequence[float]) -> tuple[float, ...]:
    return tuple(values)


@frozen(kw_only=True)
class Estimate:
    """A median with its interval, and the range and number of its values, which are independent of each other.

    interval: at LEVEL, or the range if there are fewer than FEWEST values.
    """

    median: float
    interval: Interval
    least: float
    greatest: float
    count: int
    values: tuple[float, ...] = field(default=(), converter=_values, repr=False)

    @property
    def is_range(self) -> bool:
        """Whether `interval` is only the range of too few values."""
        return self.count < FEWEST

    def interval_at(self, level: float) -> Interval | None:
        """The interval at another level; None for fewer than FEWEST values."""
        return None if self.is_range else _interval(self.values, self.median, level)

    def side_of_one(self, rows: int) -> int | None:
        """Whether a ratio is greater than 1 (1), less (-1), or neither (0), at LEVEL for this many rows together; None if too few
        values permit no verdict.
        """
        wide = self.interval_at(1 - (1 - LEVEL) / rows)
        if wide is None:
            return None
        return 0 if wide.contains(1.0) else 1 if wide.low > 1 else -1

    def among(self, rows: int) -> str:
        """Words that follow "no difference" if the interval of this row alone would have shown one."""
        return f" among {rows} rows" if self.side_of_one(rows) == 0 and not self.interval.contains(1.0) else ""

    @property
    def uncertainty(self) -> str:
        """The interval in words, with its kind and the number of runs."""
        return uncertainty([self.interval], self.count)


def uncertainty(intervals: Sequence[Interval], runs: int) -> str:
    """Intervals of as many runs in words: their kind, their ends, and the number of runs."""
    if runs == 1:
        return "one run"
    ends = ", ".join(f"{one.low:.3g} to {one.high:.3g}" for one in intervals)
    kind = "ranges" if len(intervals) > 1 else "range"
    return f"95 %: {ends}, {runs} runs" if runs >= FEWEST else f"{kind} of {runs} runs: {ends}"


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


@lru_cache(maxsize=1024)
def student(level: float, freedom: int) -> float:
    """The bound within which Student's t lies with this probability. freedom: degrees, 1 or more."""
    low, high = 0.0, 1.0
    while _within(high, freedom) < level:
        low, high = high, 2 * high
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _within(middle, freedom) < level else (low, middle)
    return high


def estimate(values: Sequence[float], *, level: float = LEVEL) -> Estimate:
    """The median of independent values and its uncertainty."""
    found = median(values)
    least, greatest = min(values), max(values)
    wide = Interval(least, greatest) if len(values) < FEWEST else _interval(values, found, level)
    return Estimate(median=found, interval=wide, least=least, greatest=greatest, count=len(values), values=values)


def estimate_runs(values: Mapping[int, Sequence[float]]) -> Estimate:
    """The median of all samples, and its uncertainty from the medians of the runs; count: of runs.

    values: of each run, in which there is at least one.
    """
    samples = [value for run in values.values() for value in run]
    found, least, greatest = median(samples), min(samples), max(samples)
    runs = estimate([median(run) for run in values.values()])
    wide = Interval(least, greatest) if runs.is_range else _including(runs.interval, found)
    return evolve(runs, median=found, interval=wide, least=least, greatest=greatest)


def paired_ratio(
    numerators: Mapping[int, Sequence[float]],
    denominators: Mapping[int, Sequence[float]],
    *,
    level: float = LEVEL,
) -> Estimate | None:
    """The median over runs of the ratio of medians within each run; None if no run has both.

    numerators, denominators: positive values by run. The range is that of the runs' ratios.
    """
    shared = sorted(run for run in numerators.keys() & denominators.keys() if numerators[run] and denominators[run])
    if not shared:
        return None
    return estimate([median(numerators[run]) / median(denominators[run]) for run in shared], level=level)


def unpaired_ratio(
    numerators: Mapping[int, Sequence[float]], denominators: Mapping[int, Sequence[float]], *, level: float = LEVEL
) -> tuple[float, Interval | None]:
    """The ratio of medians of two independent sets of runs; the interval is None if a set has fewer than FEWEST runs.

    numerators, denominators: positive values by run. The degrees of freedom are Welch's. [Welch 1947]
    """
    above, below = ([median(run) for run in runs.values()] for runs in (numerators, denominators))
    ratio = median(above) / median(below)
    if min(len(above), len(below)) < FEWEST:
        return ratio, None
    (first, one), (second, other) = (_mean_and_error(list(map(math.log, runs))) for runs in (above, below))
    error = math.hypot(one, other)
    parts = one**4 / (len(above) - 1) + other**4 / (len(below) - 1)
    freedom = int(error**4 / parts) if parts else len(above) + len(below) - 2
    half = student(level, max(1, freedom)) * error
    return ratio, _including(Interval(math.exp(first - second - half), math.exp(first - second + half)), ratio)


def _interval(values: Sequence[float], inside: float, level: float) -> Interval:
    """Student's t of the logarithms; of the values themselves if one is not positive. inside: the median of them."""
    is_positive = min(values) > 0
    middle, error = _mean_and_error([math.log(value) for value in values] if is_positive else values)
    half = student(level, len(values) - 1) * error
    ends = [middle - half, middle + half]
    # A few runs and many rows can give ends beyond any number.
    low, high = (math.exp(min(end, 700.0)) if is_positive else end for end in ends)
    return _including(Interval(low, high), inside)


def _including(interval: Interval, value: float) -> Interval:
    """The interval, widened to the value. t is about means, and a median is reported."""
    return Interval(min(interval.low, value), max(interval.high, value))


def _mean_and_error(values: Sequence[float]) -> tuple[float, float]:
    """The mean and its standard error."""
    middle = sum(values) / len(values)
    return middle, math.sqrt(sum((value - middle) ** 2 for value in values) / (len(values) - 1) / len(values))


def _within(bound: float, freedom: int) -> float:
    """The probability that Student's t lies within +-bound. [Abramowitz and Stegun 26.7.3, 26.7.4]"""
    angle = math.atan(bound / math.sqrt(freedom))
    odd = freedom % 2
    term, total = (math.cos(angle) if odd else 1.0), 0.0
    for step in range(1, freedom // 2 + 1):
        total += term
        term *= math.cos(angle) ** 2 * (2 * step - 1 + odd) / (2 * step + odd)
    return (angle + math.sin(angle) * total) * 2 / math.pi if odd else math.sin(angle) * total
