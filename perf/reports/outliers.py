"""What took unusually long: samples, with the events, status page, and processor and memory over time kept of each, and single transfers."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen

from perf.records.beside import SlowTransfer, Timeline
from perf.records.record import Record, Sample
from perf.records.work import time_of, work_of

LISTED = 12
"""Outliers listed of a record, the slowest against their median first."""

DRAWN = 3
"""Timelines drawn of these, and status pages quoted."""

EVENTS_DRAWN = 800
"""A timeline with more events is drawn by `perf timeline` alone."""

STATUS_QUOTED = 1500
"""Characters of a status page."""


@frozen(kw_only=True)
class Outlier:
    """A sample that was slow, and what was kept of it. factor: of the usual time."""

    sample: Sample
    kept: Timeline
    factor: float

    @property
    def is_drawn(self) -> bool:
        """Whether it has a timeline of a size for a page."""
        return 0 < len(self.kept.events) <= EVENTS_DRAWN

    @property
    def series(self) -> str:
        """What was kept over time, in words; empty if nothing was."""
        series = self.sample.series or {}
        if len(series.get("at_ms", ())) < 2:
            return ""
        return "processor, memory and pressure" if series.get("waited_ms") else "processor and memory"

    def __str__(self) -> str:
        sample = self.sample
        kept = [
            f"{len(self.kept.events)} events of its timeline" if self.kept.events else "",
            f"{len(self.kept.status)} characters of the status page" if self.kept.status else "",
            f"{self.series} over time" if self.series else "",
            ", ".join(f"{name} waited for {part:.0%}" for name, part in sample.pressure.items()),
        ]
        known = "; ".join(one for one in kept if one) or "nothing"
        return (
            f"run {sample.run + 1}, order {sample.order}: {sample.system}, {work_of(sample)}: {time_of(sample):.3g} s, usually "
            f"{self.kept.median:.3g} s ({self.factor:.1f} times). Kept: {known}."
        )


def outliers(record: Record) -> list[Outlier]:
    """The outliers of a record that have samples, the greatest factor first."""
    samples = _by_place(record)
    found = [
        Outlier(sample=sample, kept=kept, factor=(time_of(sample) or 0.0) / kept.median)
        for kept in record.timelines
        if kept.median > 0 and (sample := samples.get((kept.run, kept.order))) is not None
    ]
    return sorted(found, key=lambda one: -one.factor)


def slow_transfers(record: Record) -> list[str]:
    """A sentence for each transfer that took much longer than the others of its sample, the greatest factor first."""
    samples = _by_place(record)
    found = [
        (one, sample)
        for one in record.transfers
        if one.usual_s > 0 and (sample := samples.get((one.run, one.order))) is not None
    ]
    return [_sentence(*one) for one in sorted(found, key=lambda one: -one[0].factor)]


def listed(lines: Sequence[str]) -> list[str]:
    """The first LISTED lines, and how many more there are."""
    more = len(lines) - LISTED
    return [*lines[:LISTED], *([f"... and {more} more in the record."] if more > 0 else [])]


def _by_place(record: Record) -> dict[tuple[int, int], Sample]:
    """The samples that count, by run and order."""
    return {(sample.run, sample.order): sample for sample in record.measured() if time_of(sample)}


def _sentence(slow: SlowTransfer, sample: Sample) -> str:
    return (
        f"run {slow.run + 1}, order {slow.order}: {sample.system}, {work_of(sample)}: transfer {slow.number + 1}, {slow.size} bytes, "
        f"from {slow.started_s:.3g} to {slow.ended_s:.3g} s of the sample: {slow.seconds:.3g} s, usually {slow.usual_s:.3g} s "
        f"({slow.factor:.1f} times)."
    )


def quoted(found: Sequence[Outlier]) -> list[tuple[Outlier, str]]:
    """The beginnings of status pages."""
    having = [one for one in found if one.kept.status][:DRAWN]
    return [(one, _cut(one.kept.status)) for one in having]


def _cut(text: str) -> str:
    left = len(text) - STATUS_QUOTED
    return f"{text[:STATUS_QUOTED]}\n... and {left} more characters in the record" if left > 0 else text
