"""Findings of a record as sentences with numbers, intervals and verdicts. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations

from attrs import evolve, frozen

from perf.records.record import Record, Sample
from perf.records.work import Work, work_of
from perf.reports.needed import sentences_of_k
from perf.reports.report import speedups, works
from perf.sampling.fits import Cost, Knee, Point, find_knee, fit_cost
from perf.sampling.statistics import Estimate, median

BETTER, WORSE, NONE, ONE_RUN = "better", "worse", "no difference shown", "one run, so no verdict"
VERDICTS = (BETTER, WORSE, NONE, ONE_RUN)
FEWEST_RUNS = 2
"""With fewer runs, only numbers are reported: their interval has no width."""
SLOW_AES = 500.0
"""MB/s on one core. Below this, the processor's AES instructions are not in use."""
_WAYS = ("way", "key", "mode", "chunk", "transfers", "threads", "cache", "site")
"""Factors that separate kinds of work for a fit."""
STILL = 0.02
"""Processor seconds per measured second that frozen systems may use, given the clock's resolution."""


@frozen(kw_only=True)
class Finding:
    """A subject compared with another system in one kind of work. ratio: of speeds, paired within runs."""

    work: Work
    subject: str
    other: str
    ratio: Estimate

    @property
    def verdict(self) -> str:
        """What the interval permits to say."""
        if self.ratio.count < FEWEST_RUNS:
            return ONE_RUN
        if self.ratio.interval.contains(1.0):
            return NONE
        return BETTER if self.ratio.interval.low > 1 else WORSE

    def __str__(self) -> str:
        found = self.ratio
        spread = f" (95 %: {found.interval.low:.3g} to {found.interval.high:.3g}, {found.count} runs)"
        return (
            f"{self.work}: {self.subject} has {found.median:.3g} times the speed of {self.other}"
            f"{spread if found.count > 1 else ''}: {self.verdict}."
        )


def findings(record: Record, subject: str | None = None) -> list[Finding]:
    """The subject (the first system by default) compared with all others, work by work."""
    systems = record.header.systems
    mine = subject or systems[0]
    return [
        Finding(work=work, subject=mine, other=other, ratio=ratio)
        for other in systems
        if other != mine
        for work, ratio in speedups(record, mine, other).items()
    ]


def overviews(found: Sequence[Finding]) -> list[str]:
    """A sentence for each pair of systems: how many rows are better or worse, and by how much."""
    pairs: dict[tuple[str, str], list[Finding]] = {}
    for finding in found:
        pairs.setdefault((finding.subject, finding.other), []).append(finding)
    lines = []
    for (subject, other), mine in pairs.items():
        ratios = [finding.ratio.median for finding in mine]
        counts = {verdict: sum(finding.verdict == verdict for finding in mine) for verdict in VERDICTS}
        parts = [
            f"{count} {'from one run, so without a verdict' if verdict == ONE_RUN else verdict}"
            for verdict, count in counts.items()
            if count
        ]
        lines.append(
            f"{subject} has {min(ratios):.3g} to {max(ratios):.3g} times the speed of {other} (median {median(ratios):.3g}): of "
            f"{len(mine)} row{'s' if len(mine) > 1 else ''}, {', '.join(parts)}."
        )
    return lines


@frozen(kw_only=True)
class Disagreement:
    """Two campaigns whose intervals for the same comparison do not overlap."""

    one: str
    other: str
    first: Finding
    second: Finding

    def __str__(self) -> str:
        first, second = self.first.ratio, self.second.ratio
        return (
            f"{self.first.work}, {self.first.subject} against {self.first.other}: {self.one} says {first.median:.3g} "
            f"[{first.interval.low:.3g}, {first.interval.high:.3g}], {self.other} says {second.median:.3g} "
            f"[{second.interval.low:.3g}, {second.interval.high:.3g}]. They disagree: do not quote either before you know why."
        )


def disagreements(records: Sequence[Record]) -> list[Disagreement]:
    """All pairs of records that disagree on the same comparison."""
    found = []
    for one, other in combinations(records, 2):
        theirs = {_key(finding): finding for finding in _all_findings(other)}
        for finding in _all_findings(one):
            match = theirs.get(_key(finding))
            if match is not None and _are_apart(finding.ratio, match.ratio):
                names = [record.header.campaign for record in (one, other)]
                found.append(Disagreement(one=names[0], other=names[1], first=finding, second=match))
    return found


def costs(record: Record) -> dict[tuple[str, str], Cost]:
    """The cost per file and per byte, by system and scenario, where files of several sizes were moved one after the
    other.
    """
    points: dict[tuple[str, str], list[Point]] = {}
    for sample in record.measured():
        if (
            sample.size
            and sample.seconds
            and "length" not in sample.factors
            and sample.factors.get("concurrency", 1) == 1
        ):
            key = sample.system, _fitted(sample)
            points.setdefault(key, []).append(Point(files=sample.count, bytes=sample.size, seconds=sample.seconds))
    fits = {key: fit_cost(mine) for key, mine in points.items()}
    return {key: cost for key, cost in fits.items() if cost is not None}


def _fitted(sample: Sample) -> str:
    """The key of a fit, which excludes the sizes and counts over which it is fitted."""
    told = [f"{name} {value}" for name, value in sample.factors.items() if name in _WAYS]
    return ", ".join([sample.scenario, *told])


def knees(record: Record) -> dict[tuple[str, str], Knee]:
    """The concurrency beyond which nothing is gained, by system and work, where several were tried."""
    rates: dict[tuple[str, str], dict[int, list[float]]] = {}
    for sample in record.measured():
        degree = sample.factors.get("concurrency")
        if sample.seconds and isinstance(degree, int) and "mode" not in sample.factors:
            work = work_of(sample)
            rest = evolve(work, factors=tuple(one for one in work.factors if one[0] != "concurrency"))
            rates.setdefault((sample.system, str(rest)), {}).setdefault(degree, []).append(work.measure(sample.seconds))
    return {key: find_knee(mine) for key, mine in rates.items() if len(mine) > 1}


def recommended_jobs(record: Record) -> dict[str, int]:
    """Files at a time that suit this client and these servers, by system: the greatest of its knees."""
    found: dict[str, int] = {}
    for (system, _), knee in knees(record).items():
        found[system] = max(found.get(system, 0), knee.degree)
    return found


def _modes(record: Record) -> Iterable[str]:
    """The modes of concurrency side by side, for each system and direction."""
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
    times = [(one[3] - one[1]) * 1e3 for sample in samples for one in sample.files if not one[4]]
    total = median([sample.seconds or 0.0 for sample in samples])
    return (
        f"{sum(times) / len(times):.0f} ({min(times):.0f} to {max(times):.0f}), {total:.3g} s in all" if times else "-"
    )


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
    for sample in record.measured():
        if "fault" in sample.factors and sample.seconds is not None:
            kinds = times.setdefault((sample.system, sample.scenario), {})
            kinds.setdefault(str(sample.factors["fault"]), []).append(sample.seconds)
    for (system, scenario), faults in times.items():
        if healthy := faults.get("none"):
            parts = [
                f"{fault} {median(values):.3g} s ({median(values) / median(healthy):.2f} times)"
                for fault, values in faults.items()
                if fault != "none"
            ]
            if parts:
                yield f"{scenario}, {system}: {median(healthy):.3g} s without a fault; {', '.join(parts)}."


def sentences(record: Record, subject: str | None = None) -> list[str]:
    """Everything that the record shows."""
    lines = [str(finding) for finding in findings(record, subject)]
    lines += [f"{what}, {system}: {knee}." for (system, what), knee in knees(record).items()]
    lines += [
        f"{scenario}, {system}: time = {cost.per_file_s * 1e3:.3g} ms x files + {cost.per_byte_s * 1e9:.3g} ms x MB "
        f"(95 %: {cost.per_file_interval.low * 1e3:.3g} to {cost.per_file_interval.high * 1e3:.3g}, "
        f"{cost.per_byte_interval.low * 1e9:.3g} to {cost.per_byte_interval.high * 1e9:.3g}; "
        f"median error {cost.error:.0%})."
        for (system, scenario), cost in costs(record).items()
    ]
    lines += [f"{system}: use --jobs {jobs}." for system, jobs in recommended_jobs(record).items()]
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


def _all_findings(record: Record) -> list[Finding]:
    systems = record.header.systems
    return [
        one
        for index, subject in enumerate(systems)
        for one in findings(record, subject)
        if one.other in systems[index:]
    ]


def _key(finding: Finding) -> tuple[Work, str, str]:
    return finding.work, finding.subject, finding.other


def _are_apart(one: Estimate, other: Estimate) -> bool:
    """Whether both are known well enough, and their intervals do not overlap."""
    if min(one.count, other.count) < FEWEST_RUNS:
        return False
    return one.interval.low > other.interval.high or other.interval.low > one.interval.high


def per_file(record: Record) -> list[tuple[str, Work, float, float, float]]:
    """System, work, and least, mean and greatest seconds per file, for samples with single files."""
    found = []
    for work in works(record):
        for system in record.header.systems:
            mine = [one for one in record.measured() if one.system == system and work_of(one) == work]
            times = [one[3] - one[1] for sample in mine for one in sample.files]
            times = times or [sample.seconds / sample.count for sample in mine if sample.seconds is not None]
            if times:
                found.append((system, work, min(times), sum(times) / len(times), max(times)))
    return found
