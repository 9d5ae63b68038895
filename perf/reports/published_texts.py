"""The texts that are filled into documents: tables, and sentences with the commit and date of what they quote. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from perf.records.record import Record
from perf.reports.markdown import table
from perf.reports.other_programs import beside_others
from perf.reports.published_rows import BIG, GRIDS, PEER, Measured, times_of
from perf.reports.report import rate, spread, works
from perf.reports.target_rows import bar, counts, found_of, outcomes
from perf.reports.targets import Outcome
from perf.sampling.environment import commit_of, day_of
from perf.sampling.statistics import median

TITLES = (
    "work",
    "Grid, HTTP (its default)",
    "Grid, Foolscap",
    "Tahoe-LAFS 1.20",
    "HTTP, ratio",
    "Foolscap, ratio",
    "campaign",
)
HOW = (
    "Medians; ratios are of speeds against Tahoe-LAFS 1.20 over Foolscap, paired within a run. In "
    "brackets is the 95 % interval, by Student's t, or of one or two runs, in parentheses, their range. Grid "
    "syncs its shares to disk before a put returns; Tahoe-LAFS does not."
)
ORIGIN_TITLES = ("campaign", "begun", "commit", "load at the start", "runs")
OF_TARGETS = "Of the targets (`perf.reports.target_rows`), "
FEW, MANY = 3, 60
"""Needed shares, of as many, that the README quotes."""


def section(records: Sequence[Record], found: Sequence[Measured], transfers: str) -> str:
    """The text between the comments of the performance page. transfers: about the table of transfers, may be empty."""
    lines = [f"{_machines(records)} {HOW}", "", *table(TITLES, [_row(one) for one in found]), ""]
    lines += ["![Speed of Grid as a multiple of Tahoe-LAFS 1.20](speed.png)", ""]
    lines += beside_others(records)
    lines += ["### Campaigns and targets", "", *table(ORIGIN_TITLES, list(map(origin, records))), ""]
    links = ["[One page with every plot, every finding and all that was not measured](measured.html)"]
    links += ["[all samples](samples.csv)", *([transfers] if transfers else [])]
    return "\n".join([*lines, f"{'; '.join(links)}.", "", *_targets(outcomes(records))])


def origin(record: Record) -> list[str]:
    """A campaign's row under ORIGIN_TITLES: when, from what commit, and beside what load it was measured."""
    environment = record.header.environment
    load = environment.get("load")
    changed = " (modified)" if environment.get("modified") else ""
    return [
        record.header.campaign,
        str(environment.get("date")),
        commit_of(environment) + changed,
        "" if load is None else f"{load:.1f}",
        str(_runs(record)),
    ]


def five(found: Sequence[Measured], link: str) -> str:
    """The README's five numbers, with the dates and commits of their own records."""
    quoted = [one for one in found if one.row.is_quoted]
    environments = [one.record.header.environment for one in quoted]
    dates, commits = _each(day_of(one) for one in environments), _each(commit_of(one) for one in environments)
    cores = _each(str(one.get("cpu_count")) for one in environments)
    how = (
        "A file has 10 shares, any 3 of which restore it; children are the entries of a directory. "
        f"Measured on {dates} at commit {commits} with all processes on one machine of {cores} cores, over loopback: "
        "Grid over HTTP, its default; Tahoe-LAFS over Foolscap, its older protocol. Medians. Grid syncs shares to disk "
        "before a put returns; Tahoe-LAFS does not."
    )
    rows = [[one.row.label, one.rates[GRIDS[0]], one.rates[PEER]] for one in quoted]
    numbers = table(("Operation", "Grid", "Tahoe-LAFS 1.20"), rows)
    return "\n".join([*numbers, "", f"![Speed of Grid as a multiple of Tahoe-LAFS 1.20]({link}/speed.png)", "", how])


def needed_shares(records: Sequence[Record]) -> str:
    """The README's sentence about many needed shares, from the record of `atlas-k`; empty without one that has them."""
    for record in records:
        if record.header.campaign != "atlas-k":
            continue
        few, many = (_get_rates(record, k) for k in (FEW, MANY))
        if few and many:
            runs = _runs(record)
            return (
                "Grid stays fast if a file needs many shares. Over a network of 1 Gbit/s, it reads 100 MB at "
                f"{few[0]} if the file needs all {FEW} of {FEW} shares, and at {many[0]} if it needs all {MANY} of "
                f"{MANY}. Tahoe-LAFS reads them at {few[1]} and {many[1]} (campaign `atlas-k`, "
                f"{day_of(record.header.environment)}, commit {commit_of(record.header.environment)}, "
                f"{'one run' if runs == 1 else f'{runs} runs'})."
            )
    return ""


def _get_rates(record: Record, k: int) -> tuple[str, str] | None:
    """Grid's and Tahoe-LAFS's rate of getting 100 MB at k-of-k; None if either is missing."""
    for work in works(record):
        factors = dict(work.factors)
        if (work.scenario, work.size, factors.get("k"), factors.get("n")) == (
            "get",
            BIG,
            k,
            k,
        ) and "format" not in factors:
            times = [list(times_of(record, work, system)) for system in (GRIDS[0], PEER)]
            if all(times):
                return rate(work, median(times[0])), rate(work, median(times[1]))
    return None


def _row(one: Measured) -> list[str]:
    ratios = [f"{ratio.median:.2f} {spread(ratio)}" if (ratio := one.ratios.get(system)) else "" for system in GRIDS]
    return [one.row.label, *(one.rates[name] for name in (*GRIDS, PEER)), *ratios, one.record.header.campaign]


def _targets(found: Sequence[Outcome]) -> list[str]:
    """How many targets are met, and each that is missed."""
    missed = [one for one in found if one.met is False]
    rows = [
        [one.target.what, one.target.against or "-", bar(one.target), found_of(one), one.verdict()] for one in missed
    ]
    lines = [f"{OF_TARGETS}{counts(found)}"]
    return [*lines, "", *table(("missed target", "against", "wanted", "found", "verdict"), rows)] if rows else lines


def _machines(records: Sequence[Record]) -> str:
    """The machine of all records, or each with its campaigns."""
    kinds: dict[str, list[str]] = {}
    for record in records:
        kinds.setdefault(_machine(record.header.environment), []).append(record.header.campaign)
    if len(kinds) == 1:
        return f"{next(iter(kinds))}."
    return " ".join(f"{', '.join(campaigns)}: {machine}." for machine, campaigns in kinds.items())


def _machine(environment: Mapping[str, Any]) -> str:
    """The machine and the software, without what differs from record to record."""
    memory = (environment.get("memory_bytes") or 0) / 2**30
    parts = [
        f"{environment.get('cpu_count')} cores ({environment.get('cpu')})",
        f"{memory:.0f} GiB",
        *(str(environment.get(name)) for name in ("filesystem", "system", "python")),
        f"codec {environment.get('codec')}",
        f"hashing {environment.get('hashing', 'hashlib')}",
    ]
    tahoe = environment.get("tahoe")
    return ", ".join([*parts, *([f"peer {tahoe}"] if tahoe else [])])


def _runs(record: Record) -> int:
    return len({sample.run for sample in record.measured()})


def _each(values: Iterable[str]) -> str:
    """Each value once, in words."""
    *others, last = dict.fromkeys(values)
    return f"{', '.join(others)} and {last}" if others else last
