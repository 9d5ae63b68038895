"""Whether twice as many needed shares take twice the time: steps of k within a system, with a verdict and the reasons. Pure.

The published page of 2011 says both: its plot over k has k = 60 at twice the time of k = 30, its plot of partial reads has no difference.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from attrs import evolve, frozen

from perf.records.record import Record, Sample
from perf.records.work import Work, work_of
from perf.sampling.statistics import LEVEL, Estimate, median, paired_ratio

SAME, TWICE, BETWEEN = "the same", "twice", "not known which of the two"
TURN = 2**0.5
"""Below this ratio a time is nearer to the same, above it nearer to twice."""

_OF_K = ("k", "n", "happy")


@frozen(kw_only=True)
class Step:
    """One kind of work with twice as many needed shares. work: without k. low, high: the two k. ratio: of times.

    reasons: what else changes between the two, in words. rows: comparisons that have a verdict together.
    """

    system: str
    work: Work
    low: int
    high: int
    ratio: Estimate
    reasons: Sequence[str]
    rows: int = 1

    @property
    def verdict(self) -> str:
        """To which of the two the interval belongs, at the level for all rows together; of too few runs, to which their
        range is nearer, and how many they are.
        """
        wide = self.ratio.interval_at(1 - (1 - LEVEL) / self.rows)
        ends = wide or self.ratio.interval
        if ends.low < TURN < ends.high:
            return BETWEEN
        found = SAME if ends.high <= TURN else TWICE
        runs = "one run" if self.ratio.count == 1 else f"{self.ratio.count} runs"
        return found if wide is not None else f"nearer to {found} by {runs}, too few for a verdict"

    def __str__(self) -> str:
        found = self.ratio
        text = (
            f"{self.work}, {self.system}: k = {self.high} takes {found.median:.3g} times the time of k = {self.low} "
            f"({found.uncertainty}): {self.verdict}."
        )
        return f"{text} {'; '.join(self.reasons).capitalize()}." if self.reasons else text


def steps(record: Record) -> list[Step]:
    """Every doubling of k that the record has, in all else alike."""
    kinds: dict[tuple[str, Work], dict[int, list[Sample]]] = {}
    for sample in record.measured():
        k = sample.factors.get("k")
        if isinstance(k, int) and sample.seconds:
            kinds.setdefault((sample.system, _without_k(work_of(sample))), {}).setdefault(k, []).append(sample)
    found = []
    for (system, work), by_k in kinds.items():
        for low in sorted(by_k):
            high = 2 * low
            ratio = paired_ratio(_times(by_k[high]), _times(by_k[low])) if high in by_k else None
            if ratio is not None:
                reasons = list(_reasons(work, {k: by_k[k] for k in (low, high)}))
                found.append(Step(system=system, work=work, low=low, high=high, ratio=ratio, reasons=reasons))
    rows = sum(not step.ratio.is_range for step in found)
    return [evolve(step, rows=max(1, rows)) for step in found]


def sentences_of_k(record: Record) -> list[str]:
    """A sentence for each doubling of k, and for each system which work takes the same time and which takes twice."""
    found = steps(record)
    lines = [str(step) for step in found]
    for system, low, high in dict.fromkeys((step.system, step.low, step.high) for step in found):
        kinds: dict[str, list[str]] = {}
        for step in found:
            if (step.system, step.low, step.high) == (system, low, high):
                kinds.setdefault(step.verdict, []).append(str(step.work))
        if len(kinds) > 1:
            parts = [f"{verdict} for {'; '.join(works)}" for verdict, works in kinds.items()]
            lines.append(f"{system}, k = {high} against k = {low}: {'; but '.join(parts)}.")
    return lines


def _without_k(work: Work) -> Work:
    return evolve(work, factors=tuple(factor for factor in work.factors if factor[0] not in _OF_K))


def _times(samples: Iterable[Sample]) -> dict[int, list[float]]:
    """Seconds by run."""
    times: dict[int, list[float]] = {}
    for sample in samples:
        times.setdefault(sample.run, []).append(sample.seconds or 0.0)
    return times


_COUNTS: Mapping[str, Callable[[Sample], float | None]] = {
    "the messages": lambda sample: sample.requests,
    "the packets received": lambda sample: sample.segments_in,
    "the bytes received": lambda sample: sample.bytes_in,
    "the client's processor time": lambda sample: sample.client_cpu_s,
    "the servers' processor time": lambda sample: sample.server_cpu_s,
}


def _reasons(work: Work, by_k: Mapping[int, Sequence[Sample]]) -> Iterable[str]:
    """Bytes of a block, and how messages, bytes and processor time grow."""
    low, high = by_k
    segment = dict(work.factors).get("segment")
    if segment is not None:
        each = [-(-int(segment) // k) for k in (low, high)]
        yield f"blocks of {each[1]:,} bytes instead of {each[0]:,}"
    for what, count in _COUNTS.items():
        values = [[value for sample in by_k[k] if (value := count(sample)) is not None] for k in (low, high)]
        if all(values) and (before := median(values[0])):
            yield f"{median(values[1]) / before:.2f} times {what}"
