"""Decides whether a process's resources grow, from samples taken while it is idle. Pure.

They fluctuate while it works, and rise at first while caches and pools fill. So the first part of its life does not
count, and the median of the early samples is compared with that of the late ones.
"""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen

from perf.sampling.statistics import median

WARMUP = 0.25
"""The fraction of a life that does not count."""

FEWEST = 12
"""With fewer samples after the warm-up, there is no verdict."""


@frozen(kw_only=True)
class Allowance:
    """The permitted growth: an absolute amount plus a fraction of the early value."""

    amount: float
    part: float = 0.0

    def of(self, early: float) -> float:
        """The permitted growth over this early value."""
        return self.amount + self.part * early


@frozen(kw_only=True)
class Growth:
    """early, late: medians of the first and last quarter after the warm-up. per_hour: the slope between them."""

    early: float
    late: float
    per_hour: float

    def exceeds(self, allowance: Allowance) -> bool:
        """Whether it is more than chance and caches explain."""
        return self.late - self.early > allowance.of(self.early)


def fit(times: Sequence[float], values: Sequence[float]) -> Growth | None:
    """The growth of one process over its life; None if that was too short. times: ascending, in seconds."""
    if len(times) != len(values):
        raise ValueError("as many times as values")
    if not times:
        return None
    begin = times[0] + WARMUP * (times[-1] - times[0])
    counted = [(time, value) for time, value in zip(times, values, strict=True) if time >= begin]
    if len(counted) < FEWEST:
        return None
    quarter = len(counted) // 4
    first, last = counted[:quarter], counted[-quarter:]
    early, late = (median([value for _, value in part]) for part in (first, last))
    apart = median([time for time, _ in last]) - median([time for time, _ in first])
    return Growth(early=early, late=late, per_hour=(late - early) / apart * 3600 if apart else 0.0)
