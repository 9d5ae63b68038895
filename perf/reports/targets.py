"""Grid's performance targets, row by row, and whether records meet them. Pure.

A row compares Grid with Tahoe-LAFS, or with itself at another encoding or without a fault, always within the same
runs; or it says how long a work may take; or it limits what Grid may spend. A limit is met if both of Grid's transports
meet it; all else, if the better one does, since clients choose.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal

from attrs import evolve, field, frozen

from perf.campaigns.labels import Label, is_label, parse_label
from perf.records.record import Record, Sample
from perf.records.work import MB, Work, work_of
from perf.sampling.statistics import Estimate, estimate, median, paired_ratio

MIB = 2**20

Metric = Literal[
    "speed", "cpu", "time", "seconds", "line", "added seconds", "above idle", "client peak", "server peak", "idle cpu"
]
"""time: a ratio of times. seconds: of one operation. line: the part of a line's speed. added seconds: over the basis."""

LIMITS: tuple[Metric, ...] = ("above idle", "client peak", "server peak", "idle cpu")
Against = Literal["tahoe@foolscap", "tahoe@http", "tahoe's best", "ours"]
ByRun = Mapping[int, Sequence[float]]


NAMED = ("size", "length", "count", "concurrency", "k", "n", "format", "site", "fault")
"""Factors that rows name. Work with any other, such as a cache or a mode, is something else."""


@frozen(kw_only=True)
class Wanted:
    """The works that a row covers; None permits any value.

    at_least: total bytes. site: empty for this machine as it is. fault: of a server, as the record of faults names it,
    without the number of a single one. way: of a workload, the door after the slash of its system's label; the library
    has none. anyhow: include works with factors that rows do not name.
    """

    scenario: str | None = None
    size: int | None = None
    length: int | None = None
    count: int | None = None
    concurrency: int | None = None
    k: int | None = None
    n: int | None = None
    format: str | None = "chk"
    client: str | None = "warm"
    site: str | None = ""
    fault: str | None = ""
    way: str = ""
    at_least: int = 0
    anyhow: bool = False

    def matches(self, work: Work) -> bool:
        """Whether the work is one of these; those with segments of an unusual size never are."""
        factors = dict(work.factors)
        found = {
            "scenario": work.scenario,
            "size": factors.get("size"),
            "length": factors.get("length"),
            "count": work.count,
            "concurrency": factors.get("concurrency"),
            "k": factors.get("k"),
            "n": factors.get("n"),
            "format": factors.get("format", "chk"),
            "client": work.client,
            "site": factors.get("site", ""),
            "fault": str(factors.get("fault", "")).removeprefix("1 "),
        }
        wanted = {name: getattr(self, name) for name in found}
        return (
            work.size >= self.at_least
            and "segment" not in factors
            and (self.anyhow or factors.keys() <= set(NAMED))
            and all(value is None or value == found[name] for name, value in wanted.items())
        )


@frozen(kw_only=True)
class Target:
    """One row. bar: the least ratio of speeds or part of a line, or the greatest value of anything else.

    basis: the work to compare with, if it is another one. line_s: the least seconds that the line itself takes.
    """

    table: str
    what: str
    wanted: Wanted
    bar: float
    stretch: float | None = None
    against: Against | None = None
    basis: Wanted | None = None
    metric: Metric = "speed"
    line_s: float = 0.0

    @property
    def is_limit(self) -> bool:
        """Whether it limits what may be spent."""
        return self.metric in LIMITS

    @property
    def judges_worst(self) -> bool:
        """Whether every transport has to meet it: limits, and what a fault may cost."""
        return self.is_limit or (self.against == "ours" and not self.more_is_better)

    @property
    def is_ratio(self) -> bool:
        """Whether two systems or two works are divided by each other."""
        return self.against is not None and self.metric != "added seconds"

    @property
    def more_is_better(self) -> bool:
        """Whether the bar is a minimum."""
        return self.metric in ("speed", "line")


@frozen(kw_only=True)
class Finding:
    """A record's result for a row and one of Grid's transports.

    against: the system it was finally compared with. samples: how many of Grid's it is based on.
    """

    system: str
    against: str
    estimate: Estimate
    campaign: str
    samples: int


@frozen(kw_only=True)
class Outcome:
    """A row with all its findings, the decisive transport first."""

    target: Target
    findings: Sequence[Finding] = field(factory=tuple)

    @property
    def met(self) -> bool | None:
        """Whether the median meets it; None if nothing was measured."""
        return self._reaches(self.target.bar) if self.findings else None

    @property
    def is_of_few(self) -> bool:
        """Whether it was measured, but in so few runs that they have only a range."""
        return bool(self.findings) and self.findings[0].estimate.is_range

    def verdict(self) -> str:
        """The result in words."""
        if not self.findings:
            return "not measured"
        runs = self.findings[0].estimate.count
        return f"{self._word()} ({'one run' if runs == 1 else f'{runs} runs'})" if self.is_of_few else self._word()

    def _word(self) -> str:
        target, found = self.target, self.findings[0].estimate
        if not self.met:
            return f"missed by {abs(found.median / target.bar - 1):.0%}"
        if target.stretch is not None and self._reaches(target.stretch):
            return "met, and the stretch"
        end = found.interval.low if target.more_is_better else found.interval.high
        sure = end >= target.bar if target.more_is_better else end <= target.bar
        return "met" if sure else "met, not by every run" if self.is_of_few else "met, the interval not wholly"

    def _reaches(self, bar: float) -> bool:
        value = self.findings[0].estimate.median
        return value >= bar if self.target.more_is_better else value <= bar


def judge(target: Target, records: Sequence[Record]) -> Outcome:
    """The records' results for a row: for each transport the record with most samples, or where all have to meet it the worst."""
    found: dict[str, list[Finding]] = {}
    for record in records:
        for system in record.header.systems:
            label = _judged(system, target.wanted.way)
            if label is not None and label.is_grid and label.is_default:
                finding = _finding(target, record, system)
                if finding is not None:
                    found.setdefault(label.base, []).append(evolve(finding, system=label.base))
    if target.judges_worst:
        chosen = [max(several, key=_middle) for several in found.values()]
    else:
        chosen = [max(several, key=lambda one: one.samples) for several in found.values()]
    return Outcome(
        target=target, findings=sorted(chosen, key=_middle, reverse=target.judges_worst or target.more_is_better)
    )


def _judged(system: str, way: str) -> Label | None:
    """The label of a system measured in this way; None for any other, for what is none, and for a second of its kind."""
    base, _, found = system.partition("/")
    return parse_label(base) if found == way and "#" not in system and is_label(base) else None


def _middle(finding: Finding) -> float:
    return finding.estimate.median


def _finding(target: Target, record: Record, system: str) -> Finding | None:
    if target.against is None:
        return _alone(target, record, system)
    value = _cpu if target.metric == "cpu" else _seconds
    mine = _by_run(record, system, target.wanted, value)
    if target.against == "ours":
        assert target.basis is not None
        basis = _by_run(record, system, target.basis, value)
        return _named(record, system, "itself", _against_itself(target.metric, mine, basis), mine)
    rivals = {
        label.base: times
        for rival in record.header.systems
        if (label := _judged(rival, target.wanted.way)) is not None
        and _rivals(target.against, label)
        and (times := _by_run(record, rival, target.basis or target.wanted, value))
    }
    if not rivals or not mine:
        return None
    best = min(rivals, key=lambda rival: median([median(run) for run in rivals[rival].values()]))
    ratio = paired_ratio(rivals[best], mine) if target.more_is_better else paired_ratio(mine, rivals[best])
    return _named(record, system, best, ratio, mine)


def _alone(target: Target, record: Record, system: str) -> Finding | None:
    """What a transport takes, compared with nothing: of a limit the most, else the median of the runs."""
    if not target.is_limit:
        times = _by_run(record, system, target.wanted, _seconds)
        middles = [median(run) for run in times.values()]
        values = [target.line_s / middle for middle in middles] if target.metric == "line" else middles
        return _named(record, system, "-", estimate(values) if values else None, times)
    spent = _by_run(record, system, target.wanted, _COSTS[target.metric])
    pick = median if target.metric == "idle cpu" else max
    per_run = [pick(run) for run in spent.values()]
    found = _worst(per_run) if pick is max else estimate(per_run) if per_run else None
    return _named(record, system, "-", found, spent)


def _against_itself(metric: Metric, mine: ByRun, basis: ByRun) -> Estimate | None:
    if metric == "time":
        return paired_ratio(mine, basis)
    if metric != "added seconds":
        return paired_ratio(basis, mine)
    added = [median(mine[run]) - median(basis[run]) for run in sorted(mine.keys() & basis.keys())]
    return estimate(added) if added else None


def _named(record: Record, system: str, against: str, found: Estimate | None, mine: ByRun) -> Finding | None:
    if found is None:
        return None
    samples = sum(map(len, mine.values()))
    return Finding(system=system, against=against, estimate=found, campaign=record.header.campaign, samples=samples)


def _worst(values: Sequence[float]) -> Estimate | None:
    """The largest of all, which a limit applies to."""
    if not values:
        return None
    return evolve(estimate(values), median=max(values))


def _rivals(against: Against | None, label: Label) -> bool:
    return label.base.startswith("tahoe@") and against in ("tahoe's best", label.base)


def _by_run(
    record: Record, system: str, wanted: Wanted, value: Callable[[Sample], float | None]
) -> dict[int, list[float]]:
    values: dict[int, list[float]] = {}
    for sample in record.measured():
        if sample.system == system and wanted.matches(work_of(sample)) and (found := value(sample)) is not None:
            values.setdefault(sample.run, []).append(found)
    return values


def _seconds(sample: Sample) -> float | None:
    return sample.seconds


def _cpu(sample: Sample) -> float | None:
    """Processor seconds of the client and all servers per GB."""
    if sample.client_cpu_s is None or sample.server_cpu_s is None or not sample.size:
        return None
    return (sample.client_cpu_s + sample.server_cpu_s) / sample.size * 1e3 * MB


def _above_idle(sample: Sample) -> float | None:
    if sample.client_peak_rss is None or sample.client_idle_rss is None:
        return None
    return (sample.client_peak_rss - sample.client_idle_rss) / MIB


def _idle_cpu(sample: Sample) -> float | None:
    """Percent of one core."""
    if sample.client_cpu_s is None or sample.server_cpu_s is None or not sample.seconds:
        return None
    return (sample.client_cpu_s + sample.server_cpu_s) / sample.seconds * 100


_COSTS: Mapping[Metric, Callable[[Sample], float | None]] = {
    "cpu": _cpu,
    "above idle": _above_idle,
    "client peak": lambda sample: sample.client_peak_rss and sample.client_peak_rss / MIB,
    "server peak": lambda sample: sample.server_peak_rss and sample.server_peak_rss / MIB,
    "idle cpu": _idle_cpu,
}
