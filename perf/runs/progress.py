"""How far a campaign is, and when it will end. Pure.

The rest is estimated from cells like those to come: a cell takes as long as the median of its kind has so far, and one of a kind that
was never done as long as the mean of all.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from attrs import define, field

from perf.sampling.statistics import median


@define
class Progress:
    """Of all runs. total: cells to do."""

    total: int
    done: int = 0
    _times: dict[Hashable, list[float]] = field(factory=dict)

    def add(self, kind: Hashable, seconds: float) -> None:
        """A cell was done, with everything around it."""
        self.done += 1
        self._times.setdefault(kind, []).append(seconds)

    def remaining_s(self, kinds: Iterable[Hashable]) -> float | None:
        """Seconds that cells of these kinds will take; None while nothing was done."""
        known = [seconds for times in self._times.values() for seconds in times]
        if not known:
            return None
        usual = sum(known) / len(known)
        return sum(median(self._times[kind]) if kind in self._times else usual for kind in kinds)

    def describe(self, remaining: Iterable[Hashable]) -> str:
        """`12/240, 3 min left`."""
        seconds = self.remaining_s(remaining)
        left = "" if seconds is None else f", {_duration(seconds)} left"
        return f"{self.done}/{self.total}{left}"


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 90 * 60:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"
