"""Reports in Markdown: of one record, and of two records compared."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence

from perf.campaigns.labels import is_label, parse_label, without_commit
from perf.records.record import Record, RecordError, Sample
from perf.records.work import MB, Work, bound, time_of, work_of, works_of
from perf.reports.outliers import listed, outliers, slow_transfers
from perf.sampling.environment import describe
from perf.sampling.statistics import FEWEST, Estimate, Interval, estimate_runs, median, paired_ratio, unpaired_ratio

MIB = 2**20

COSTS_NOTE = (
    "Sent and received: by the client to and from all servers, TLS included; requests: as its engine counts them, "
    "which only Grid's tells; segments: of TCP with payload, sent and received."
)

_GRID = re.compile(r"grid(?![\w-])")
"""Of labels, the beginning of a Grid's own; not of its interfaces, which others use: `rclone@grid`."""

AA_RUNS = 8
"""Eight ratios of equals all fall on one side of 1 once in 128 times; five would once in 16."""


def report(record: Record, subject: str | None = None) -> str:
    """Throughput, ratios and cost of one record.

    subject: the system that all others are compared with, by default that of `subject_of`; ValueError if it is not in the
    record.
    """
    systems = record.header.systems
    if subject is not None and subject not in systems:
        raise ValueError(f"no system {subject!r} in this record; there are {', '.join(systems)}")
    lines = [f"# {record.header.campaign}", "", describe(dict(record.header.environment)) + _loads(record), ""]
    lines += _throughput(record, subject or subject_of(systems))
    if pairs := baselines(record):
        lines += ["", *_changes(record, pairs)]
    lines += ["", *_costs(record), "", COSTS_NOTE]
    lines += ["", *_systems(systems)]
    if record.header.floor:
        lines += ["", "Primitives before the first run, one thread, MB/s: " + _primitives(record.header.floor) + "."]
    if found := outliers(record):
        lines += ["", "What took more than half as long again as usual:", *(f"- {one}" for one in found)]
    if transfers := slow_transfers(record):
        lines += ["", "Transfers that took much longer than the others of their sample:"]
        lines += [f"- {line}" for line in listed(transfers)]
    failures = record.failures()
    lines += ["", f"Failed operations: {len(failures)} of {len(record.samples)}."]
    lines += [f"- {sample.system}, {work_of(sample)}: {sample.error}" for sample in failures]
    return "\n".join(lines) + "\n"


def subject_of(systems: Sequence[str]) -> str:
    """The system that others are compared with by default: the first Grid if there is one, else the first of all."""
    return next((name for name in systems if _GRID.match(name)), systems[0])


def compare(before: Record, after: Record) -> str:
    """How much faster the second record is, work by work and system by system.

    The two were taken at different times: only what exceeds the change of an unchanged system is significant. RecordError if
    they have no work in common.
    """
    lines = [
        f"# {before.header.campaign}: before and after",
        "",
        f"Before: {describe(dict(before.header.environment))}",
        "",
        f"After: {describe(dict(after.header.environment))}",
        "",
        "| work | system | before, runs | after, runs | after / before, speed [95 % for all rows together] | verdict |",
        "|---|---|---|---|---|---|",
    ]
    rows = [
        (work, system, _measures(work, olds[work]), _measures(work, news[work]))
        for system in before.header.systems
        for olds, news in [[times_of(record, system) for record in (before, after)]]
        for work in olds.keys() & news.keys()
    ]
    if not rows:
        raise RecordError("no system did the same work in both records, so there is nothing to compare")
    judged = sum(min(len(old), len(new)) >= FEWEST for _, _, old, new in rows)
    level = 1 - 0.05 / max(1, judged)
    for work, system, old, new in sorted(rows, key=lambda row: row[0]):
        ratio, interval = unpaired_ratio(*((new, old) if work.is_rate else (old, new)), level=level)
        shown = f" {bounds(interval)}" if interval is not None else ""
        lines.append(
            f"| {work} | {system} | {_middle(work, old)} | {_middle(work, new)} | {ratio:.2f}{shown} | {verdict(interval)} |"
        )
    note = f"Medians; the interval is Student's t of the logarithms of the runs' medians, from {FEWEST} runs on each side on."
    return "\n".join([*lines, "", note]) + "\n"


def works(record: Record) -> list[Work]:
    """Every kind of work in the record, sorted."""
    return works_of(list(record.measured()))


def speedups(record: Record, subject: str, other: str, *, level: float = 0.95) -> dict[Work, Estimate]:
    """How many times as fast the subject is as the other, paired within each run, for all work that both did."""
    mine, theirs = times_of(record, subject), times_of(record, other)
    found = {}
    for work in sorted(mine.keys() & theirs.keys()):
        ratio = paired_ratio(theirs[work], mine[work], level=level)
        if ratio is not None:
            found[work] = ratio
    return found


def same(record: Record) -> bool | None:
    """Whether an A/A record shows no difference, which validates the method itself.

    Each interval is widened for the number of comparisons, so that all together are wrong about once in twenty times.
    None for fewer than AA_RUNS runs, which can lie on one side of 1 by chance.
    """
    subject, other = record.header.systems
    level = 1 - 0.05 / max(1, len(works(record)))
    ratios = list(speedups(record, subject, other, level=level).values())
    if not ratios or min(ratio.count for ratio in ratios) < AA_RUNS:
        return None
    return all(ratio.interval.contains(1.0) for ratio in ratios)


def baselines(record: Record) -> list[tuple[str, str]]:
    """Each system of the record with its baseline, the same at an older commit."""
    systems = record.header.systems
    pairs = [(_without_commit(system), system) for system in systems]
    return [(now, before) for now, before in pairs if now != before and now in systems]


def slower(record: Record) -> list[str] | None:
    """The work at which a system is slower than its baseline; None if there are too few runs to tell.

    Intervals are widened as in same().
    """
    rows = _against_baselines(record, baselines(record))
    if not rows or min(ratio.count for _, _, ratio in rows) < AA_RUNS:
        return None
    return [f"{work}, {system}" for work, system, ratio in rows if verdict(ratio.interval) == "slower"]


def _changes(record: Record, pairs: Sequence[tuple[str, str]]) -> list[str]:
    rows = [
        [str(work), now, _ratio(ratio), verdict(ratio.interval) if ratio.count >= AA_RUNS else "too few runs"]
        for work, now, ratio in _against_baselines(record, pairs)
    ]
    names = ", ".join(f"{now} with {before}" for now, before in pairs)
    note = f"Speed against the older commit, paired within each run, intervals widened for all rows together: {names}."
    return [*_table(["work", "system", "now / before", "verdict"], rows), "", note]


def _against_baselines(record: Record, pairs: Sequence[tuple[str, str]]) -> list[tuple[Work, str, Estimate]]:
    level = 1 - 0.05 / max(1, len(works(record)) * len(pairs))
    return [
        (work, now, ratio)
        for now, before in pairs
        for work, ratio in speedups(record, now, before, level=level).items()
    ]


def _without_commit(system: str) -> str:
    try:
        return without_commit(system)
    except ValueError:
        return system


def verdict(interval: Interval | None) -> str:
    """What an interval of a speed ratio permits to say; None if there were too few runs for one."""
    if interval is None:
        return "too few runs"
    if interval.contains(1.0):
        return "no difference"
    return "faster" if interval.low > 1.0 else "slower"


def _throughput(record: Record, subject: str) -> list[str]:
    systems = record.header.systems
    compared_below = {before for _, before in baselines(record)}
    others = [name for name in systems if name != subject and name not in compared_below]
    titles = ["work", *(f"{name} [95 %] (range), n" for name in systems)]
    titles += [f"{subject} / {name} [95 %] (range), runs" for name in others]
    titles += ["floor"] if record.header.floor else []
    ratios = {name: speedups(record, subject, name) for name in others}
    times = {name: times_of(record, name) for name in systems}
    rows = []
    for work in works(record):
        cells = [str(work), *(_speed(work, times[name].get(work, {})) for name in systems)]
        cells += [_ratio(ratios[name].get(work)) for name in others]
        limit = floor_of(record, work)
        cells += [f"{short(limit)} MB/s" if limit else "-"] if record.header.floor else []
        rows.append(cells)
    note = (
        "Medians of the raw samples; ratios are of speeds, paired within each run, and their median. In brackets: the "
        f"95 % interval, Student's t of the logarithms of the runs' medians or ratios, from {FEWEST} runs on. In "
        "parentheses: the least and the greatest of all samples or ratios, which is no such interval."
    )
    return [*_table(titles, rows), "", note]


def floor_of(record: Record, work: Work) -> float | None:
    """perf.records.work.bound in MB/s for this work, or None."""
    return bound(record.header.floor, work)


def _primitives(floor: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {short(rate)}" for name, rate in floor.items())


def _costs(record: Record) -> list[str]:
    titles = [
        "work",
        "system",
        "first byte, ms",
        "client CPU, s",
        "servers' CPU, s",
        "client peak (above idle), MiB",
        "server peak, MiB",
        "sent, received, MB",
        "requests",
        "segments",
    ]
    rows = []
    for work in works(record):
        for system in record.header.systems:
            samples = [item for item in record.measured() if item.system == system and work_of(item) == work]
            if samples:
                rows.append([str(work), system, *_cost_cells(samples)])
    return _table(titles, rows)


def _loads(record: Record) -> str:
    """The load of the machine during the measurements."""
    loads = [sample.load for sample in record.samples if sample.load is not None]
    return f" Load meanwhile {median(loads):.1f}, at most {max(loads):.1f}." if loads else ""


def _systems(systems: Sequence[str]) -> list[str]:
    rows = []
    for system in filter(is_label, systems):
        label = parse_label(system)
        rows.append([system, label.base.partition("@")[2], label.codec or "", label.durability or ""])
    return _table(["system", "transport", "codec", "durability"], rows)


def _cost_cells(samples: Sequence[Sample]) -> list[str]:
    def cell(value: Callable[[Sample], float | int | None], unit: float, digits: int, pick: Pick = median) -> str:
        values = [found / unit for found in map(value, samples) if found is not None]
        return f"{pick(values):.{digits}f}" if values else "-"

    peak = cell(lambda sample: sample.client_peak_rss, MIB, 0, max)
    above = cell(
        lambda sample: sample.client_peak_rss and sample.client_peak_rss - (sample.client_idle_rss or 0), MIB, 0, max
    )
    return [
        cell(lambda sample: sample.first_byte_s, 1e-3, 1),
        cell(lambda sample: sample.client_cpu_s, 1, 2),
        cell(lambda sample: sample.server_cpu_s, 1, 2),
        f"{peak} ({above})",
        cell(lambda sample: sample.server_peak_rss, MIB, 0, max),
        f"{cell(lambda sample: sample.bytes_out, MB, 3)}, {cell(lambda sample: sample.bytes_in, MB, 3)}",
        cell(lambda sample: sample.requests, 1, 0),
        f"{cell(lambda sample: sample.segments_out, 1, 0)}, {cell(lambda sample: sample.segments_in, 1, 0)}",
    ]


Pick = Callable[[Sequence[float]], float]


def _table(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    return [f"| {' | '.join(cells)} |" for cells in (titles, ["---"] * len(titles), *rows)]


def times_of(record: Record, system: str) -> dict[Work, dict[int, list[float]]]:
    """The seconds of a system by work and run, as systems are compared by them; only runs with any."""
    times: dict[Work, dict[int, list[float]]] = {}
    for sample in record.measured():
        if sample.system == system and (seconds := time_of(sample)) is not None:
            times.setdefault(work_of(sample), {}).setdefault(sample.run, []).append(seconds)
    return times


def _speed(work: Work, times: Mapping[int, Sequence[float]]) -> str:
    if not times:
        return "null"
    found = estimate_runs({run: [work.measure(time) for time in mine] for run, mine in times.items()})
    count = sum(map(len, times.values()))
    shown = f" {spread(found)}" if count > 1 else ""
    return f"{short(found.median)} {work.unit}{shown}, {count}"


def _ratio(ratio: Estimate | None) -> str:
    if ratio is None:
        return "null"
    if ratio.count == 1:
        return f"{ratio.median:.2f}, 1 run"
    interval = "" if ratio.is_range else f" {bounds(ratio.interval)}"
    return f"{ratio.median:.2f}{interval} ({ratio.least:.2f}-{ratio.greatest:.2f}), {ratio.count} runs"


def spread(found: Estimate) -> str:
    """The interval in brackets, or the range of too few runs in parentheses."""
    return f"({short(found.least)}-{short(found.greatest)})" if found.is_range else bounds(found.interval)


def _measures(work: Work, times: Mapping[int, Sequence[float]]) -> dict[int, list[float]]:
    """Each run's times in the work's unit."""
    return {run: list(map(work.measure, mine)) for run, mine in times.items()}


def _middle(work: Work, measures: Mapping[int, Sequence[float]]) -> str:
    """The median of the runs' medians, and the number of runs."""
    return f"{short(median([median(run) for run in measures.values()]))} {work.unit}, {len(measures)}"


def bounds(interval: Interval) -> str:
    """An interval as tables show it."""
    return f"[{short(interval.low)}, {short(interval.high)}]"


def rate(work: Work, seconds: float) -> str:
    """A time converted to the work's unit."""
    return f"{short(work.measure(seconds))} {work.unit}"


def short(value: float) -> str:
    """Three significant digits, or all before the point."""
    return f"{value:.3g}" if value < 100 else f"{value:.0f}"
