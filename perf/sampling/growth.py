"""Whether what a process holds grows: a judgement over samples taken while it is at rest. Pure.

What a process holds jumps about while it works, and climbs at first while caches and pools fill. So the first part of
its life does not count, and the middle of what it held early is compared with the middle of what it held late.
"""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen

from perf.sampling.statistics import median

WARMUP = 0.25
"""The part of a life that does not count."""

FEWEST = 12
"""Fewer samples than this after the warm-up say nothing."""


@frozen(kw_only=True)
class Allowance:
    """How much more may be held late than early: so much, and so much of what was held early, together."""

    amount: float
    part: float = 0.0

    def of(self, early: float) -> float:
        """What may be added to that."""
        return self.amount + self.part * early


@frozen(kw_only=True)
class Growth:
    """early, late: medians over the first and the last quarter after the warm-up. per_hour: the slope between them."""

    early: float
    late: float
    per_hour: float

    def exceeds(self, allowance: Allowance) -> bool:
        """Whether it is more than chance and caches explain."""
        return self.late - self.early > allowance.of(self.early)


def fit(times: Sequence[float], values: Sequence[float]) -> Growth | None:
    """The growth of one process over its life; None if it was too short. times: ascending, in seconds."""
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
