"""Grid's performance targets, row by row, and whether records meet them. Pure.

A row compares Grid with Tahoe-LAFS, or with itself at another encoding, always within the same runs; or it limits what
Grid may spend. A ratio is met if the better of Grid's two transports meets it, since clients choose; a limit, if both
do.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal

from attrs import evolve, field, frozen

from perf.campaigns.labels import is_label, parse_label
from perf.records.record import Record, Sample
from perf.records.work import MB, Work, work_of
from perf.sampling.statistics import Estimate, estimate, median, paired_ratio

MIB = 2**20

Metric = Literal["speed", "cpu", "above idle", "client peak", "server peak", "idle cpu"]
Against = Literal["tahoe@foolscap", "tahoe@http", "tahoe's best", "ours"]


@frozen(kw_only=True)
class Wanted:
    """The works that a row covers; None permits any value. at_least: total bytes."""

    scenario: str | None = None
    size: int | None = None
    length: int | None = None
    count: int | None = None
    k: int | None = None
    n: int | None = None
    format: str | None = "chk"
    client: str | None = "warm"
    at_least: int = 0

    def matches(self, work: Work) -> bool:
        """Whether the work is one of these."""
        factors = dict(work.factors)
        found = {
            "scenario": work.scenario,
            "size": factors.get("size"),
            "length": factors.get("length"),
            "count": work.count,
            "k": factors.get("k"),
            "n": factors.get("n"),
            "format": factors.get("format", "chk"),
            "client": work.client,
        }
        wanted = {name: getattr(self, name) for name in found}
        return (
            work.size >= self.at_least
            and "segment" not in factors
            and all(value is None or value == found[name] for name, value in wanted.items())
        )


@frozen(kw_only=True)
class Target:
    """One row. bar: the least ratio of speeds, or the greatest value of anything else.

    basis: the work to compare with, if it is another one.
    """

    table: str
    what: str
    wanted: Wanted
    bar: float
    stretch: float | None = None
    against: Against | None = None
    basis: Wanted | None = None
    metric: Metric = "speed"

    @property
    def is_ratio(self) -> bool:
        """Whether two systems or two works are compared."""
        return self.against is not None

    @property
    def more_is_better(self) -> bool:
        """Whether the bar is a minimum."""
        return self.metric == "speed"


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

    def verdict(self) -> str:
        """The result in words."""
        target = self.target
        if not self.findings:
            return "not measured"
        found = self.findings[0].estimate
        if not self.met:
            away = abs(found.median / target.bar - 1)
            return f"missed by {away:.0%}"
        if target.stretch is not None and self._reaches(target.stretch):
            return "met, and the stretch"
        end = found.interval.low if target.more_is_better else found.interval.high
        sure = end >= target.bar if target.more_is_better else end <= target.bar
        return "met" if sure or found.count == 1 else "met, the interval not wholly"

    def _reaches(self, bar: float) -> bool:
        value = self.findings[0].estimate.median
        return value >= bar if self.target.more_is_better else value <= bar


def judge(target: Target, records: Sequence[Record]) -> Outcome:
    """The records' results for a row: for each transport the record with most samples, or for a limit the worst."""
    found: dict[str, list[Finding]] = {}
    for record in records:
        for system in filter(_is_judged, record.header.systems):
            label = parse_label(system)
            if label.is_grid and label.is_default:
                finding = _finding(target, record, system)
                if finding is not None:
                    found.setdefault(label.base, []).append(evolve(finding, system=label.base))
    if target.is_ratio:
        chosen = [max(several, key=lambda one: one.samples) for several in found.values()]
    else:
        chosen = [max(several, key=_middle) for several in found.values()]
    return Outcome(target=target, findings=sorted(chosen, key=_middle, reverse=target.metric != "cpu"))


def _is_judged(system: str) -> bool:
    """Whether it is a system, and measured by the library alone: not by a client of its own, and not a second time."""
    return "/" not in system and "#" not in system and is_label(system)


def _middle(finding: Finding) -> float:
    return finding.estimate.median


def _finding(target: Target, record: Record, system: str) -> Finding | None:
    if not target.is_ratio:
        values = _by_run(record, system, target.wanted, _COSTS[target.metric])
        pick = median if target.metric == "idle cpu" else max
        per_run = [pick(run) for run in values.values()]
        found = _worst(per_run) if pick is max else estimate(per_run) if per_run else None
        return _named(record, system, "-", found, values)
    value = _seconds if target.metric == "speed" else _cpu
    mine = _by_run(record, system, target.wanted, value)
    if target.against == "ours":
        assert target.basis is not None
        ratio = paired_ratio(_by_run(record, system, target.basis, value), mine)
        return _named(record, system, "itself", ratio, mine)
    rivals = {
        rival: times
        for rival in filter(_is_judged, record.header.systems)
        if _rivals(target.against, rival) and (times := _by_run(record, rival, target.basis or target.wanted, value))
    }
    if not rivals or not mine:
        return None
    best = min(rivals, key=lambda rival: median([median(run) for run in rivals[rival].values()]))
    ratio = paired_ratio(rivals[best], mine) if target.more_is_better else paired_ratio(mine, rivals[best])
    return _named(record, system, parse_label(best).base, ratio, mine)


def _named(
    record: Record, system: str, against: str, found: Estimate | None, mine: Mapping[int, Sequence[float]]
) -> Finding | None:
    if found is None:
        return None
    samples = sum(map(len, mine.values()))
    return Finding(system=system, against=against, estimate=found, campaign=record.header.campaign, samples=samples)


def _worst(values: Sequence[float]) -> Estimate | None:
    """The largest of all, which a limit applies to."""
    if not values:
        return None
    return evolve(estimate(values), median=max(values))


def _rivals(against: Against | None, system: str) -> bool:
    base = parse_label(system).base
    return base.startswith("tahoe@") and against in ("tahoe's best", base)


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
