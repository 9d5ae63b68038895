"""Fits lines, knees and steps to measurements. Pure and deterministic for a given seed."""

from __future__ import annotations

import math
import random
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import accumulate

from attrs import frozen

from grid.transfer.jobs import KNEE
from perf.sampling.statistics import Interval, estimate, median

SIMULATED = 10_000
"""Histories of noise that a step is compared with."""
STEP = 0.05
"""Relative changes below this are not reported as steps, however certain."""
FEWEST_GROUPS = 8
"""Of fewer, noise looks like a step too often for any step to be shown."""
CHANCE = 0.02
"""Normal noise may show a step this often. Noise with outliers, or of two kinds, shows one in 20 times."""
_BEFORE = 3
"""Groups that must precede a step, to know what was usual."""


@frozen(kw_only=True)
class Point:
    """A number of files, their total bytes, and the seconds they took."""

    files: float
    bytes: float
    seconds: float


@frozen(kw_only=True)
class Cost:
    """seconds = per_file_s x files + per_byte_s x bytes, neither negative.

    intervals: of fits of single runs, as in perf.sampling.statistics.Estimate. runs: how many. kinds: different
    numbers of files and bytes. error: median relative error of the points.
    """

    per_file_s: float
    per_byte_s: float
    per_file_interval: Interval
    per_byte_interval: Interval
    runs: int
    kinds: int
    error: float


def fit_cost(runs: Sequence[Sequence[Point]]) -> Cost | None:
    """Fit the costs per file and per byte to the points of all runs by least relative squares, and to those of each run.

    None if the points cannot separate the two.
    """
    points = [point for run in runs for point in run]
    solved, alone = _solve(points), [one for run in runs if (one := _solve(run)) is not None]
    if solved is None or not alone:
        return None
    files, sizes = (estimate([one[index] for one in alone]).interval for index in (0, 1))
    errors = [abs(solved[0] * one.files + solved[1] * one.bytes - one.seconds) / one.seconds for one in points]
    return Cost(
        per_file_s=solved[0],
        per_byte_s=solved[1],
        per_file_interval=files,
        per_byte_interval=sizes,
        runs=len(alone),
        kinds=len({(one.files, one.bytes) for one in points}),
        error=median(errors),
    )


def _solve(points: Sequence[Point]) -> tuple[float, float] | None:
    rows = [(one.files / one.seconds, one.bytes / one.seconds) for one in points]
    ff, fb, bb = (sum(row[i] * row[j] for row in rows) for i, j in ((0, 0), (0, 1), (1, 1)))
    f, b = (sum(row[i] for row in rows) for i in (0, 1))
    determinant = ff * bb - fb * fb
    if determinant <= 1e-9 * ff * bb:
        return None
    per_file, per_byte = (f * bb - b * fb) / determinant, (b * ff - f * fb) / determinant
    if per_file < 0:
        return 0.0, b / bb
    if per_byte < 0:
        return f / ff, 0.0
    return per_file, per_byte


@frozen(kw_only=True)
class Knee:
    """degree: the least that reaches the best rate, within KNEE. best: that rate.

    is_seen: whether higher ones gained nothing.

    falls: whether the highest degree tried is slower than the best by more than KNEE. unit: of the rates.
    """

    degree: int
    best: float
    is_seen: bool
    falls: bool

    unit: str = ""

    def __str__(self) -> str:
        if not self.is_seen:
            return f"the rate still grows at {self.degree} streams, the most that were tried"
        end = ", and many more are slower" if self.falls else ", and more gain nothing"
        return f"take {self.degree}: {self.best:.4g} {self.unit}".rstrip() + f" in all{end}"


def find_knee(rates: Mapping[int, Sequence[float]], unit: str = "") -> Knee:
    """Where more streams stop helping. rates: combined rates by number of streams; ValueError for fewer than 2."""
    if len(rates) < 2:
        raise ValueError("a knee needs two degrees or more")
    middles = {degree: median(values) for degree, values in sorted(rates.items())}
    best = max(middles.values())
    degree = next(degree for degree, rate in middles.items() if rate >= (1 - KNEE) * best)
    most = max(middles)
    return Knee(degree=degree, best=best, is_seen=degree != most, falls=middles[most] < (1 - KNEE) * best, unit=unit)


@frozen(kw_only=True)
class Step:
    """A lasting change in a history. at: index of the first group after it. ratio: after / before.

    p: probability that noise alone has as clear a step anywhere.
    """

    at: int
    ratio: float
    p: float


def find_step(groups: Sequence[Sequence[float]], *, chance: float = CHANCE, seed: int = 0) -> Step | None:
    """The clearest lasting change over groups of positive values in order of time, the newest group alone included.

    None if it is small, or if its p is above `chance`, or if there are fewer than FEWEST_GROUPS. Compares the mean logarithms of the
    groups' medians before and after each place by Student's t, and the greatest t with those of noise. [Worsley 1979]
    """
    if len(groups) < FEWEST_GROUPS:
        return None
    middles = [median(group) for group in groups]
    at, strength = _strongest([math.log(middle) for middle in middles])
    noise = _strengths_of_noise(len(middles), seed)
    p = (len(noise) - bisect_left(noise, strength) + 1) / (len(noise) + 1)
    ratio = median(middles[at:]) / median(middles[:at])
    if p > chance or abs(ratio - 1) < STEP:
        return None
    return Step(at=at, ratio=ratio, p=p)


def _strongest(values: Sequence[float]) -> tuple[int, float]:
    """Where the means before and after differ most, and by how much: the part of all variation that the step explains."""
    count, sums = len(values), list(accumulate(values))
    mean = sums[-1] / count
    variation = sum((value - mean) ** 2 for value in values)
    if variation <= 1e-18 * count:
        return _BEFORE, 0.0
    found = [
        (at, (sums[at - 1] - at * mean) ** 2 * count / (at * (count - at)) / variation) for at in range(_BEFORE, count)
    ]
    return max(found, key=lambda one: one[1])


@lru_cache(maxsize=64)
def _strengths_of_noise(count: int, seed: int) -> Sequence[float]:
    """The strengths of the strongest steps in histories of normal noise, in order."""
    draw = random.Random(seed)
    return sorted(_strongest([draw.gauss(0.0, 1.0) for _ in range(count)])[1] for _ in range(SIMULATED))
