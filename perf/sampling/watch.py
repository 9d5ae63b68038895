"""Tells at once what takes unusually long, and keeps what is known of it in the record."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from itertools import combinations
from typing import Any

from perf.records.beside import SlowTransfer, Timeline
from perf.records.record import Record, RecordWriter, Sample
from perf.records.work import time_of, work_of
from perf.sampling.statistics import median
from perf.sampling.timeline import Outliers

KEPT = 5
"""Slow transfers reported of a sample, the slowest against their size first."""

DEVIATIONS = 3.0
"""Transfers that share a line or wait for a worker differ widely, and none of them is slow for that."""

LEAST_S = 1e-6

Line = Sequence[Any]
"""As in the `files` of a sample: bytes, the scheduled, actual and final seconds, and the error."""

NOTHING = "{}"
"""The timeline of a sample that has none: the record has its processor and memory over time."""


class OutlierWatch:
    """Compares each sample with those of its kind so far, and the transfers of a sample with each other.

    Of a kind are samples of one system and work. Warm-ups and failures are not compared.
    """

    def __init__(self, writer: RecordWriter, tell: Callable[[str], None], earlier: Record | None = None) -> None:
        """tell: receives a line per outlier. earlier: what was recorded before an interruption, in the same environment."""
        self._writer, self._tell = writer, tell
        self._outliers = Outliers()
        if earlier is not None:
            self._remember(earlier)

    def look(self, sample: Sample, transfers: Sequence[Line] = ()) -> None:
        """Compare a sample that was written. transfers: those within it, if it has no `files`."""
        seconds = time_of(sample)
        if seconds is None or sample.warmup:
            return
        kind, place = (sample.system, work_of(sample)), (sample.run, sample.order)
        usual = self._outliers.exceeded(kind, seconds)
        if usual is not None:
            self._tell(_line(seconds, usual, sample))
            known = json.loads(sample.timeline) if sample.timeline else {"status": _status_of(sample)}
            self._writer.write_timeline(Timeline(run=sample.run, order=sample.order, median=usual, **known))
        self._outliers.add(kind, place, seconds, (sample.timeline or NOTHING) if usual is None else None)
        self._look_within(sample, sample.files or transfers)

    def end(self) -> None:
        """Keep what turned out to be slow only by later samples, and begin anew with all times so far."""
        for one, usual in self._outliers.chosen():
            self._writer.write_timeline(Timeline(run=one.place[0], order=one.place[1], median=usual, **one.timeline))
        self._outliers = Outliers(self._outliers.times)

    def _look_within(self, sample: Sample, lines: Sequence[Line]) -> None:
        for index, usual in slow_transfers(lines):
            size, due, started, ended, _ = lines[index]
            slow = SlowTransfer(
                run=sample.run,
                order=sample.order,
                number=index,
                size=size,
                due_s=due,
                started_s=started,
                ended_s=ended,
                usual_s=round(usual, 6),
            )
            where = f"transfer {index + 1} of {len(lines)}, {size} bytes, from {started:.3f} to {ended:.3f} s"
            self._tell(_line(slow.seconds, usual, sample, where))
            self._writer.write_transfer(slow)

    def _remember(self, earlier: Record) -> None:
        """Go on with the completed work of a record; what it has of its outliers is not repeated."""
        told, done = {(one.run, one.order) for one in earlier.timelines}, earlier.done_keys()
        for sample in earlier.measured():
            seconds, place = time_of(sample), (sample.run, sample.order)
            if seconds is not None and sample.key in done:
                self._outliers.add((sample.system, work_of(sample)), place, seconds, None if place in told else NOTHING)


def slow_transfers(lines: Sequence[Line]) -> list[tuple[int, float]]:
    """The index of each slow transfer, and the usual seconds of one of its size. Those that failed are not compared."""
    done = [(index, line[0], line[3] - line[1]) for index, line in enumerate(lines) if not line[4]]
    expected = _line_through([(size, seconds) for _, size, seconds in done])
    outliers = Outliers(deviations=DEVIATIONS, most=KEPT)
    for index, size, seconds in done:
        outliers.add("transfer", (0, index), seconds / expected(size), "")
    return [(kept.place[1], middle * expected(lines[kept.place[1]][0])) for kept, middle in outliers.chosen()]


def _line_through(points: Sequence[tuple[int, float]]) -> Callable[[int], float]:
    """Seconds that a size suggests, which a few slow transfers do not change; the same for all sizes if there is only one. [Theil 1950]

    points: sizes and seconds.
    """
    differ = len({size for size, _ in points}) > 1
    pairs = combinations(points, 2) if differ else ()
    slopes = [(late - early) / (more - less) for (less, early), (more, late) in pairs if more != less]
    slope = max(0.0, median(slopes)) if slopes else 0.0
    start = median([seconds - slope * size for size, seconds in points]) if points else 0.0
    least = max(LEAST_S, min((seconds for _, seconds in points), default=0.0))
    return lambda size: max(least, start + slope * size)


def _line(seconds: float, usual: float, sample: Sample, where: str = "") -> str:
    pressed = ", ".join(f"{name} {part:.0%}" for name, part in sample.pressure.items())
    parts = [f"{seconds:.3f} s, where {usual:.3f} s are usual", where, f"pressure: {pressed or 'not known'}"]
    return f"  OUTLIER: {'; '.join(part for part in parts if part)}"


def _status_of(sample: Sample) -> str:
    """The system's status page, or the error if it does not answer."""
    try:
        return sample.status() if sample.status is not None else ""
    except Exception as error:  # noqa: BLE001 - a page that fails says that
        return f"{type(error).__name__}: {error}"
