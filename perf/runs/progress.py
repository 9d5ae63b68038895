"""A campaign's progress and remaining time. Pure.

Remaining cells are estimated from similar ones: a cell takes the median of its kind so far, or the mean of all cells if
its kind is new.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from attrs import define, field

from perf.sampling.statistics import median


@define
class Progress:
    """The progress of all runs. total: cells to do."""

    total: int
    done: int = 0
    _times: dict[Hashable, list[float]] = field(factory=dict)

    def add(self, kind: Hashable, seconds: float) -> None:
        """Count a finished cell with its overhead."""
        self.done += 1
        self._times.setdefault(kind, []).append(seconds)

    def remaining_s(self, kinds: Iterable[Hashable]) -> float | None:
        """Seconds for cells of these kinds; None before the first is done."""
        known = [seconds for times in self._times.values() for seconds in times]
        if not known:
            return None
        usual = sum(known) / len(known)
        return sum(median(self._times[kind]) if kind in self._times else usual for kind in kinds)

    def describe(self, remaining: Iterable[Hashable]) -> str:
        """Such as `12/240, 3 min left`."""
        seconds = self.remaining_s(remaining)
        left = "" if seconds is None else f", {_duration(seconds)} left"
        return f"{self.done}/{self.total}{left}"


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 90 * 60:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"
