"""Findings of a record as sentences with numbers, intervals and verdicts. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations

from attrs import frozen

from perf.records.record import Record, Sample
from perf.records.work import OPEN_LOOP, Work, file_times, work_of
from perf.reports.fitted import sentences_of_fits
from perf.reports.levels import sentences_of_levels
from perf.reports.needed import sentences_of_k
from perf.reports.report import speedups, subject_of, works
from perf.sampling.statistics import Estimate, Interval, median

BETTER, WORSE, NONE = "better", "worse", "no difference shown"
ONE_RUN, FEW_RUNS = "one run, so no verdict", "too few runs for a verdict"
VERDICTS = (BETTER, WORSE, NONE, FEW_RUNS, ONE_RUN)
SLOW_AES = 500.0
"""MB/s on one core. Below this, the processor's AES instructions are not in use."""
STILL = 0.02
"""Processor seconds per measured second that frozen systems may use, given the clock's resolution."""


@frozen(kw_only=True)
class Finding:
    """A subject compared with another system in one kind of work. ratio: of speeds, paired within runs.

    rows: of these two that have a verdict together. At most one of twenty times one of them is due to chance.
    """

    work: Work
    subject: str
    other: str
    ratio: Estimate
    rows: int = 1

    @property
    def verdict(self) -> str:
        """What the interval permits to say, at the level for all rows together."""
        if self.ratio.count == 1:
            return ONE_RUN
        return {None: FEW_RUNS, 0: NONE, 1: BETTER, -1: WORSE}[self.ratio.side_of_one(self.rows)]

    def __str__(self) -> str:
        found, among = self.ratio, self.ratio.among(self.rows)
        known = f" ({found.uncertainty})" if found.count > 1 else ""
        return f"{self.work}: {self.subject} has {found.median:.3g} times the speed of {self.other}{known}: {self.verdict}{among}."


def findings(record: Record, subject: str | None = None) -> list[Finding]:
    """The subject (that of `subject_of` by default) compared with all others, work by work."""
    mine, *others = _in_order(record, subject)
    return [finding for other in others for finding in _compared(record, mine, other)]


def _in_order(record: Record, subject: str | None = None) -> list[str]:
    """The subject and then the others: an order that can be read back from the overviews."""
    systems = record.header.systems
    if not systems:
        return []
    mine = subject or subject_of(systems)
    return [mine, *(other for other in systems if other != mine)]


def _compared(record: Record, subject: str, other: str) -> list[Finding]:
    ratios = speedups(record, subject, other)
    rows = max(1, sum(not ratio.is_range for ratio in ratios.values()))
    return [Finding(work=work, subject=subject, other=other, ratio=ratio, rows=rows) for work, ratio in ratios.items()]


_OVERVIEW = {ONE_RUN: "from one run, so without a verdict", FEW_RUNS: "from too few runs for a verdict"}


def overviews(found: Sequence[Finding]) -> list[str]:
    """A sentence for each pair of systems: how many rows are better or worse, and by how much."""
    pairs: dict[tuple[str, str], list[Finding]] = {}
    for finding in found:
        pairs.setdefault((finding.subject, finding.other), []).append(finding)
    lines = []
    for (subject, other), mine in pairs.items():
        ratios = [finding.ratio.median for finding in mine]
        counts = {verdict: sum(finding.verdict == verdict for finding in mine) for verdict in VERDICTS}
        parts = [f"{count} {_OVERVIEW.get(verdict, verdict)}" for verdict, count in counts.items() if count]
        lines.append(
            f"{subject} has {min(ratios):.3g} to {max(ratios):.3g} times the speed of {other} (median {median(ratios):.3g}): of "
            f"{len(mine)} row{'s' if len(mine) > 1 else ''}, {', '.join(parts)}."
        )
    return lines


@frozen(kw_only=True)
class Disagreement:
    """Two campaigns whose intervals for the same comparison do not overlap. compared: how many comparisons were."""

    one: str
    other: str
    first: Finding
    second: Finding
    compared: int = 1

    def __str__(self) -> str:
        parts = []
        for name, finding in ((self.one, self.first), (self.other, self.second)):
            wide = _wide(finding, self.compared)
            parts.append(f"{name} says {finding.ratio.median:.3g} [{wide.low:.3g}, {wide.high:.3g}]")
        together = f" for {self.compared} comparisons together" if self.compared > 1 else ""
        return (
            f"{self.first.work}, {self.first.subject} against {self.first.other}: {', '.join(parts)} "
            f"(95 %{together}). They disagree: do not quote either before you know why."
        )


def disagreements(records: Sequence[Record]) -> list[Disagreement]:
    """All pairs of records that disagree on the same comparison; both with enough runs for an interval."""
    known = [
        {(one.work, one.subject, one.other): one for one in _all_findings(record) if not one.ratio.is_range}
        for record in records
    ]
    shared = [
        (records[one], records[other], known[one][key], known[other][key])
        for one, other in combinations(range(len(records)), 2)
        for key in known[one]
        if key in known[other]
    ]
    return [
        Disagreement(
            one=one.header.campaign, other=other.header.campaign, first=first, second=second, compared=len(shared)
        )
        for one, other, first, second in shared
        if _are_apart(_wide(first, len(shared)), _wide(second, len(shared)))
    ]


def _wide(finding: Finding, compared: int) -> Interval:
    return finding.ratio.interval_at(1 - 0.05 / compared) or finding.ratio.interval


def _are_apart(one: Interval, other: Interval) -> bool:
    return one.low > other.high or other.low > one.high


def _all_findings(record: Record) -> list[Finding]:
    return [one for pair in combinations(_in_order(record), 2) for one in _compared(record, *pair)]


def _modes(record: Record) -> Iterable[str]:
    """The modes of concurrency side by side, for each system and direction: mean and range of all files of all runs."""
    rows: dict[tuple[str, str, str], dict[str, list[Sample]]] = {}
    for sample in record.measured():
        if sample.files and "mode" in sample.factors:
            warm = {"yes": ", warmed up", "no": ", no warm-up"}.get(str(sample.factors.get("warm")), "")
            kinds = rows.setdefault((sample.system, sample.scenario, warm), {})
            kinds.setdefault(str(sample.factors["mode"]), []).append(sample)
    for (system, scenario, warm), modes in rows.items():
        parts = [f"{mode} {_file_times(samples)}" for mode, samples in modes.items()]
        yield f"{scenario}, {system}{warm}, ms of a file: {'; '.join(parts)}."


def _file_times(samples: Sequence[Sample]) -> str:
    """Mean and range, and the total, which in an open loop is the schedule's."""
    times = [seconds * 1e3 for sample in samples for seconds in file_times(sample)]
    if not times:
        return "-"
    shown = f"{sum(times) / len(times):.0f} ({min(times):.0f} to {max(times):.0f})"
    if any(sample.factors.get("mode") == OPEN_LOOP for sample in samples):
        return shown
    return f"{shown}, {median([sample.seconds or 0.0 for sample in samples]):.3g} s in all"


def _slow_aes(record: Record) -> Iterable[str]:
    """A warning for each AES cipher so slow that the processor cannot be helping."""
    rates: dict[str, list[float]] = {}
    for sample in record.measured():
        if sample.scenario == "compute" and sample.system == "processor" and sample.seconds:
            rates.setdefault(str(sample.factors["kernel"]), []).append(sample.size / 1e6 / sample.seconds)
    for name, values in rates.items():
        if name.startswith("AES") and "PyCryptodome" not in name and median(values) < SLOW_AES:
            yield f"{name} reaches {median(values):.0f} MB/s: the processor's AES instructions are not used."


def _faults(record: Record) -> Iterable[str]:
    """What each fault adds to an operation of the same system."""
    times: dict[tuple[str, str], dict[str, list[float]]] = {}
    runs: dict[tuple[str, str], set[int]] = {}
    for sample in record.measured():
        if "fault" in sample.factors and sample.seconds is not None:
            kinds = times.setdefault((sample.system, sample.scenario), {})
            kinds.setdefault(str(sample.factors["fault"]), []).append(sample.seconds)
            runs.setdefault((sample.system, sample.scenario), set()).add(sample.run)
    for (system, scenario), faults in times.items():
        if healthy := faults.get("none"):
            parts = [
                f"{fault} {median(values):.3g} s ({median(values) / median(healthy):.2f} times)"
                for fault, values in faults.items()
                if fault != "none"
            ]
            if parts:
                count = len(runs[system, scenario])
                known = "one run" if count == 1 else f"medians of {count} runs"
                yield f"{scenario}, {system}: {median(healthy):.3g} s without a fault; {', '.join(parts)}; {known}."


def sentences(record: Record, subject: str | None = None) -> list[str]:
    """Everything that the record shows."""
    lines = [str(finding) for finding in findings(record, subject)]
    lines += [*sentences_of_levels(record), *sentences_of_fits(record)]
    lines += [*_modes(record), *_faults(record), *_slow_aes(record)]
    return [*lines, *sentences_of_k(record), *_stillness(record)]


def _stillness(record: Record) -> Iterable[str]:
    """Whether only the measured system ran."""
    seen = [sample for sample in record.measured() if sample.others_cpu_s is not None]
    if seen:
        spent, seconds = sum(one.others_cpu_s or 0 for one in seen), sum(one.seconds or 0 for one in seen)
        part = spent / seconds
        word = "stood still" if part < STILL else "were NOT still: do not believe these ratios"
        yield f"While one system was measured, the others used {part:.2%} of a core: they {word}."


def per_file(record: Record) -> list[tuple[str, Work, float, float, float]]:
    """System, work, and least, mean and greatest seconds of a file, where every sample has the times of single files, or is
    of one file.

    Of many files at a time, the total divided by their number is the time of none.
    """
    found = []
    for work in works(record):
        for system in record.header.systems:
            mine = [one for one in record.measured() if one.system == system and work_of(one) == work]
            if mine and all(one.files or one.count == 1 for one in mine):
                times = [time for one in mine for time in (file_times(one) or [one.seconds or 0.0])]
                found.append((system, work, min(times), sum(times) / len(times), max(times)))
    return found
