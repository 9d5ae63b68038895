"""The rows of the target tables, and the tables in Markdown. Pure.

Ratios compare speeds unless the row says otherwise. `tahoe's best` is whichever of its transports was faster in the
same record.
"""

from __future__ import annotations

from collections.abc import Sequence

from attrs import evolve

from perf.campaigns.campaign import KIB, MB
from perf.records.record import Record
from perf.reports.line_rows import BEST, FAULTS, LINES, fault_rows, line_rows
from perf.reports.targets import Finding, Outcome, Target, Wanted, judge
from perf.sampling.statistics import Estimate

FILES = "Immutable files"
TREES = "Mutable files and directories"
GATEWAYS = "Web gateways and the command line"
TABLES = (FILES, TREES, GATEWAYS, LINES, FAULTS)
TITLES = ("what", "against", "at least", "stretch", "measured [95 %] (range)", "campaign", "verdict")

NOTE = (
    "Ratios are medians over runs with fresh grids, paired within each run, with intervals in brackets; the better "
    "transport of Grid is judged, also by seconds; of what faults cost, the worse one, and of limits its worst sample. What is judged "
    "comes first. One or two runs have no interval: in parentheses is their range, and their verdict may be chance."
)

BIG = 100 * MB
GET = Wanted(scenario="get", size=BIG, k=3, n=10, count=1)
PUT = Wanted(scenario="put", size=BIG, k=3, n=10, count=1)
GET_60 = Wanted(scenario="get", size=BIG, k=60, n=120)
PUT_60 = Wanted(scenario="put", size=BIG, k=60, n=120)
PUT_3_OF_6 = Wanted(scenario="put", size=BIG, k=3, n=6)
ANY_LOAD = Wanted(format=None, client=None, site=None, fault=None, anyhow=True)
MDMF_GET = Wanted(scenario="get", size=BIG, k=3, n=10, format="mdmf")
MDMF_PUT = Wanted(scenario="put", size=BIG, k=3, n=10, format="mdmf")


def _usual(scenario: str, **more: object) -> Wanted:
    return Wanted(scenario=scenario, k=3, n=10, **more)  # type: ignore[arg-type]


def _small(scenario: str) -> Wanted:
    return _usual(scenario, size=KIB, count=200, concurrency=16)


def _medium(scenario: str) -> Wanted:
    return _usual(scenario, size=MB, count=100, concurrency=4)


def _inside(size: int) -> Wanted:
    return _usual("overwrite", size=size, length=KIB, format="mdmf")


def _through(wanted: Wanted) -> Wanted:
    return evolve(wanted, client="gateway")


def _row(table: str, what: str, wanted: Wanted, bar: float, stretch: float | None = None, **more: object) -> Target:
    return Target(table=table, what=what, wanted=wanted, bar=bar, stretch=stretch, **more)  # type: ignore[arg-type]


TARGETS = (
    _row(FILES, "CHK get, 100 MB", GET, 3, 4, against="tahoe@foolscap"),
    _row(FILES, "CHK get, 100 MB", GET, 6, 8, against="tahoe@http"),
    _row(FILES, "CHK put, 100 MB, durability full", PUT, 2.5, 4, against="tahoe@foolscap"),
    _row(FILES, "CHK get, 100 MB, 60-of-120 / 3-of-10", GET_60, 0.8, 0.95, against="ours", basis=GET),
    _row(FILES, "CHK get, 100 MB, 60-of-120", GET_60, 15, against="tahoe@foolscap"),
    _row(FILES, "CHK get, 100 MB, 60-of-120", GET_60, 100, against="tahoe@http"),
    _row(FILES, "CHK put, 100 MB, 60-of-120 / 3-of-6", PUT_60, 0.8, against="ours", basis=PUT_3_OF_6),
    _row(FILES, "alacrity: 1 random byte of 100 MB", _usual("alacrity", size=BIG), 5, 8, against=BEST),
    _row(FILES, "range of 1 MB of 100 MB", _usual("range", size=BIG, length=MB), 4, against=BEST),
    _row(FILES, "200 files of 1 KiB, put, 16 at a time", _small("put"), 6, 10, against=BEST),
    _row(FILES, "200 files of 1 KiB, get, 16 at a time", _small("get"), 6, 10, against=BEST),
    _row(FILES, "100 files of 1 MB, put, 4 at a time", _medium("put"), 5, against=BEST),
    _row(FILES, "100 files of 1 MB, get, 4 at a time", _medium("get"), 5, against=BEST),
    *(
        _row(
            FILES if format == "chk" else TREES,
            f"{format.upper()} put, one file of {size // MB} MB",
            _usual("put", size=size, count=1, format=format),
            3.5,
            against=BEST,
        )
        for size in (MB, 10 * MB)
        for format in ("chk", "mdmf")
    ),
    _row(FILES, "CPU, client and servers, for each GB got", GET, 0.35, against=BEST, metric="cpu"),
    _row(FILES, "idle CPU, client and servers, % of a core", Wanted(scenario="idle"), 1, metric="idle cpu"),
    _row(
        FILES,
        "client peak above idle, put and get, 1 GB or more, MiB",
        Wanted(count=1, at_least=1000 * MB),
        150,
        metric="above idle",
    ),
    _row(FILES, "server peak, any load, MiB", ANY_LOAD, 100, metric="server peak"),
    _row(TREES, "MDMF get, 100 MB", MDMF_GET, 6, against=BEST),
    _row(TREES, "MDMF put, 100 MB", MDMF_PUT, 4, against=BEST),
    _row(
        TREES,
        "MDMF get, 100 MB, 60-of-120",
        Wanted(scenario="get", size=BIG, k=60, format="mdmf"),
        30,
        against=BEST,
    ),
    _row(TREES, "1 KiB changed inside 1 MB, MDMF", _inside(MB), 2, against=BEST),
    _row(TREES, "1 KiB changed inside 100 MB, MDMF", _inside(BIG), 2, against=BEST),
    _row(TREES, "listing 100 children", _usual("list", count=100), 2, against=BEST),
    _row(TREES, "listing 1,000 children", _usual("list", count=1000), 2, against=BEST),
    _row(
        TREES,
        "100 children in one change / one by one",
        _usual("add-batch", count=100),
        50,
        against=BEST,
        basis=_usual("add-each", count=100),
    ),
    _row(
        TREES,
        "client peak, MDMF put and get, 100 MB, MiB",
        Wanted(count=1, size=BIG, k=3, n=10, format="mdmf"),
        200,
        metric="client peak",
    ),
    _row(GATEWAYS, "CHK get, 100 MB / by the library", _through(GET), 0.8, against="ours", basis=GET),
    _row(GATEWAYS, "CHK put, 100 MB / by the library", _through(PUT), 0.8, against="ours", basis=PUT),
    _row(GATEWAYS, "CHK get, 100 MB, through gateways", _through(GET), 3, against=BEST),
    _row(GATEWAYS, "CHK put, 100 MB, through gateways", _through(PUT), 2.5, against=BEST),
    _row(
        GATEWAYS,
        "gateway's peak, 1 GB or more up and down, MiB",
        Wanted(count=1, client="gateway", at_least=1000 * MB),
        200,
        metric="client peak",
    ),
    _row(
        GATEWAYS,
        "`grid get` of 1 KiB, from nothing running",
        _usual("get", size=KIB, client="cli", count=1),
        2,
        against=BEST,
    ),
    *line_rows(),
    *fault_rows(),
)


def outcomes(records: Sequence[Record]) -> list[Outcome]:
    """Every row with the records' results."""
    return [judge(target, records) for target in TARGETS]


def target_tables(records: Sequence[Record], *, all_rows: bool) -> str:
    """All tables with the records' results; empty if they have none. all_rows: include those without measurements."""
    found = outcomes(records)
    if not all_rows and not any(one.findings for one in found):
        return ""
    lines = ["# Targets", ""]
    for title in TABLES:
        mine = [one for one in found if one.target.table == title and (all_rows or one.findings)]
        if mine:
            lines += [f"## {title}", "", f"| {' | '.join(TITLES)} |", f"|{'---|' * len(TITLES)}"]
            lines += [*(f"| {' | '.join(cells(one))} |" for one in mine), ""]
    return "\n".join([*lines, counts(found), "", NOTE]) + "\n"


def counts(found: Sequence[Outcome]) -> str:
    """How many rows are met, and how many of these by one or two runs alone."""
    measured = [one for one in found if one.findings]
    met = [one for one in measured if one.met]
    few = sum(one.is_of_few for one in met)
    return (
        f"{len(met)} of {len(measured)} measured rows are met{f', {few} of them by one or two runs' if few else ''}. "
        f"Not measured: {len(found) - len(measured)}."
    )


def cells(outcome: Outcome) -> list[str]:
    """A row of the table, under TITLES."""
    target = outcome.target
    return [
        target.what,
        target.against or "-",
        bar(target),
        f"{target.stretch:g}{_unit(target)}" if target.stretch is not None else "",
        "; ".join(_measured(target, finding) for finding in outcome.findings) or "-",
        ", ".join(dict.fromkeys(finding.campaign for finding in outcome.findings)) or "-",
        outcome.verdict(),
    ]


def bar(target: Target) -> str:
    """What a row wants."""
    return f"{'' if target.more_is_better else 'at most '}{target.bar:g}{_unit(target)}"


def found_of(outcome: Outcome) -> str:
    """What the decisive transport has; ValueError if nothing was measured."""
    if not outcome.findings:
        raise ValueError(f"{outcome.target.what} was not measured")
    return _value(outcome.findings[0].estimate, outcome.target)


def _unit(target: Target) -> str:
    return "x" if target.is_ratio else " s" if target.metric in ("seconds", "added seconds") else ""


def _measured(target: Target, finding: Finding) -> str:
    rival = f" (than {finding.against})" if target.against == BEST else ""
    return f"{finding.system.removeprefix('grid@')} {_value(finding.estimate, target)}{rival}"


def _value(found: Estimate, target: Target) -> str:
    if found.count == 1:
        return f"{found.median:.3g}, 1 run"
    if target.is_limit and target.metric != "idle cpu":
        return f"{found.median:.3g}, the most of {found.count} runs"
    if found.is_range:
        return f"{found.median:.3g} ({found.least:.3g} to {found.greatest:.3g}), {found.count} runs"
    return f"{found.median:.3g} [{found.interval.low:.3g}, {found.interval.high:.3g}], {found.count} runs"
