"""What a factor changes within one system: the time at each of its levels against the first, as sentences. Pure.

The factors are those that campaigns vary on purpose and that no other finding is about: k, faults, modes and numbers of
files at a time have their own.
"""

from __future__ import annotations

from collections.abc import Iterable

from attrs import evolve, frozen

from perf.records.record import Record
from perf.records.work import Work, in_words, time_of, work_of
from perf.sampling.statistics import Estimate, paired_ratio

FACTORS = ("key", "way", "segment", "site", "clients", "nodes", "lost")
AGAIN = " again"
"""What follows the name of a scenario that repeats one with that name."""
FIRST, SECOND = "the first copy", "the same again"
BASES = ("convergent", "whole", "together", "start", FIRST)
"""Words that others are compared with, whichever was measured first."""
FEW = "; too few runs for a verdict"
LONGER, SHORTER, NONE = "longer", "shorter", "no difference shown"

Times = dict[int, list[float]]


@frozen(kw_only=True)
class Change:
    """One level of a factor against the base. work: without the factor. base, level: in words.

    ratio: of times, paired within runs. rows: comparisons that have a verdict together.
    """

    system: str
    work: Work
    base: str
    level: str
    ratio: Estimate
    rows: int = 1

    @property
    def verdict(self) -> str:
        """What the interval permits to say, at the level for all rows together; empty for too few runs."""
        return {None: "", 0: NONE, 1: LONGER, -1: SHORTER}[self.ratio.side_of_one(self.rows)]

    def __str__(self) -> str:
        known = ": ".join(filter(None, [self.ratio.uncertainty, f"{self.verdict}{self.ratio.among(self.rows)}"]))
        return f"{self.level} {self.ratio.median:.3g} times ({known})"


def changes(record: Record) -> list[Change]:
    """Every level of every factor that varies in all else alike, against the first one: the least, one of BASES, or the one done
    first.
    """
    kinds: dict[tuple[str, Work, str], dict[float | str, tuple[str, Times]]] = {}
    for sample in record.measured():
        seconds = time_of(sample)
        if seconds:
            for work, factor, value, name in _levels(work_of(sample)):
                _, times = kinds.setdefault((sample.system, work, factor), {}).setdefault(value, (name, {}))
                times.setdefault(sample.run, []).append(seconds)
    found = []
    for (system, work, _), levels in kinds.items():
        (base, before), *others = _ordered(levels)
        for name, times in others:
            ratio = paired_ratio(times, before)
            if ratio is not None:
                found.append(Change(system=system, work=work, base=base, level=name, ratio=ratio))
    rows = sum(not one.ratio.is_range for one in found)
    return [evolve(one, rows=max(1, rows)) for one in found]


def sentences_of_levels(record: Record) -> Iterable[str]:
    """A sentence for each system, work and factor, with all its levels."""
    told: dict[tuple[Work, str, str], list[Change]] = {}
    for change in changes(record):
        told.setdefault((change.work, change.system, change.base), []).append(change)
    for work, system, base in sorted(told):
        mine = told[work, system, base]
        if all(change.ratio.count == 1 for change in mine):
            parts, end = (
                [f"{change.level} {change.ratio.median:.3g} times" for change in mine],
                " (one run, so no verdict)",
            )
        else:
            parts, end = list(map(str, mine)), "" if any(change.verdict for change in mine) else FEW
        yield f"{work}, {system}, of the time with {base}: {', '.join(parts)}{end}."


def _levels(work: Work) -> Iterable[tuple[Work, str, float | str, str]]:
    """The work without each of its factors: the rest, the factor, its value, and both in words."""
    for name, value in work.factors:
        if name in FACTORS:
            rest = tuple(one for one in work.factors if one[0] != name)
            yield evolve(work, factors=rest), name, value, f"{name} {in_words(work, name)}"
    if work.scenario == "range":
        place = dict(work.factors).get("from", "random")
        rest = tuple(one for one in work.factors if one[0] != "from")
        yield evolve(work, factors=rest), "from", place, f"from {place}"
    first = work.scenario.removesuffix(AGAIN)
    said = FIRST if work.scenario == first else SECOND
    yield evolve(work, scenario=first), "", said, said


def _ordered(levels: dict[float | str, tuple[str, Times]]) -> list[tuple[str, Times]]:
    """By number; words as they come, but one of BASES first."""
    numbers = [value for value in levels if isinstance(value, int | float)]
    words = sorted(levels, key=lambda value: value not in BASES)
    return [levels[value] for value in (sorted(numbers) if len(numbers) == len(levels) else words)]
