"""Fits lines, knees and steps to measurements. Pure and deterministic for a given seed."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

from attrs import frozen

from grid.transfer.jobs import KNEE
from perf.sampling.statistics import LEVEL, Interval, median, quantile

RESAMPLES = 1000
SHUFFLES = 2000
STEP = 0.05
"""Relative changes below this are not reported as steps, however certain."""


@frozen(kw_only=True)
class Point:
    """A number of files, their total bytes, and the seconds they took."""

    files: float
    bytes: float
    seconds: float


@frozen(kw_only=True)
class Cost:
    """seconds = per_file_s x files + per_byte_s x bytes, neither negative.

    error: median relative error of the points.
    """

    per_file_s: float
    per_byte_s: float
    per_file_interval: Interval
    per_byte_interval: Interval
    error: float


def fit_cost(points: Sequence[Point], *, level: float = LEVEL, seed: int = 0) -> Cost | None:
    """Fit the costs per file and per byte by least relative squares; None if the points cannot separate them."""
    solved = _solve(points)
    if solved is None:
        return None
    draw = random.Random(seed)
    found = [one for _ in range(RESAMPLES) if (one := _solve(draw.choices(points, k=len(points)))) is not None]
    files, sizes = zip(*found, strict=True)
    errors = [abs(solved[0] * one.files + solved[1] * one.bytes - one.seconds) / one.seconds for one in points]
    return Cost(
        per_file_s=solved[0],
        per_byte_s=solved[1],
        per_file_interval=_middle(files, level),
        per_byte_interval=_middle(sizes, level),
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

    falls: whether the highest degree tried is slower than the best by more than KNEE.
    """

    degree: int
    best: float
    is_seen: bool
    falls: bool

    def __str__(self) -> str:
        if not self.is_seen:
            return f"the rate still grows at {self.degree} streams, the most that were tried"
        end = ", and many more are slower" if self.falls else ", and more gain nothing"
        return f"take {self.degree}: {self.best:.4g} in all{end}"


def find_knee(rates: Mapping[int, Sequence[float]]) -> Knee:
    """Where more streams stop helping. rates: combined rates by number of streams; ValueError for fewer than 2."""
    if len(rates) < 2:
        raise ValueError("a knee needs two degrees or more")
    middles = {degree: median(values) for degree, values in sorted(rates.items())}
    best = max(middles.values())
    degree = next(degree for degree, rate in middles.items() if rate >= (1 - KNEE) * best)
    most = max(middles)
    return Knee(degree=degree, best=best, is_seen=degree != most, falls=middles[most] < (1 - KNEE) * best)


@frozen(kw_only=True)
class Step:
    """A lasting change in a history. at: index of the first group after it. ratio: after / before.

    p: probability of chance.
    """

    at: int
    ratio: float
    p: float


def find_step(groups: Sequence[Sequence[float]], *, seed: int = 0) -> Step | None:
    """The largest lasting change over groups in order of time; None if it is small or may be chance.

    Compares ranks of the groups' medians before and after each place; shuffling their order gives the probability of
    chance. At least 6 groups are required. [Pettitt 1979]
    """
    middles = [median(group) for group in groups]
    if len(middles) < 6:
        return None
    at, strength = _strongest(middles)
    draw, shuffled, as_strong = random.Random(seed), list(middles), 0
    for _ in range(SHUFFLES):
        draw.shuffle(shuffled)
        as_strong += _strongest(shuffled)[1] >= strength
    p, ratio = (as_strong + 1) / (SHUFFLES + 1), median(middles[at:]) / median(middles[:at])
    if p > 1 - LEVEL or abs(ratio - 1) < STEP:
        return None
    return Step(at=at, ratio=ratio, p=p)


def _strongest(values: Sequence[float]) -> tuple[int, float]:
    """Where the values before and after differ most, and by how much."""
    found = [
        (at, abs(sum((b > a) - (b < a) for a in values[:at] for b in values[at:]))) for at in range(1, len(values))
    ]
    return max(found, key=lambda one: one[1])


def _middle(values: Sequence[float], level: float) -> Interval:
    outside = (1 - level) / 2
    return Interval(quantile(values, outside), quantile(values, 1 - outside))
