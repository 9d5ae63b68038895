"""The rows of the target tables, and the tables in Markdown. Pure.

Ratios compare speeds unless the row says otherwise. `tahoe's best` is whichever of its transports was faster in the
same record.
"""

from __future__ import annotations

from collections.abc import Sequence

from attrs import evolve

from perf.campaigns.campaign import KIB, MB
from perf.records.record import Record
from perf.reports.targets import Finding, Outcome, Target, Wanted, judge
from perf.sampling.statistics import Estimate

FILES = "Immutable files"
TREES = "Mutable files and directories"
GATEWAYS = "Web gateways and the command line"
BEST = "tahoe's best"

BIG = 100 * MB
GET = Wanted(scenario="get", size=BIG, k=3, n=10, count=1)
PUT = Wanted(scenario="put", size=BIG, k=3, n=10, count=1)
GET_60 = Wanted(scenario="get", size=BIG, k=60, n=120)
PUT_60 = Wanted(scenario="put", size=BIG, k=60, n=120)
PUT_3_OF_6 = Wanted(scenario="put", size=BIG, k=3, n=6)
MDMF_GET = Wanted(scenario="get", size=BIG, k=3, format="mdmf")
MDMF_PUT = Wanted(scenario="put", size=BIG, k=3, format="mdmf")


def _small(scenario: str) -> Wanted:
    return Wanted(scenario=scenario, size=KIB, count=200)


def _medium(scenario: str) -> Wanted:
    return Wanted(scenario=scenario, size=MB, count=100)


def _inside(size: int) -> Wanted:
    return Wanted(scenario="overwrite", size=size, format="mdmf")


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
    _row(FILES, "alacrity: 1 random byte of 100 MB", Wanted(scenario="alacrity", size=BIG), 5, 8, against=BEST),
    _row(FILES, "range of 1 MB of 100 MB", Wanted(scenario="range", size=BIG, length=MB), 4, against=BEST),
    _row(FILES, "200 files of 1 KiB, put, 16 at a time", _small("put"), 6, 10, against=BEST),
    _row(FILES, "200 files of 1 KiB, get, 16 at a time", _small("get"), 6, 10, against=BEST),
    _row(FILES, "100 files of 1 MB, put, 4 at a time", _medium("put"), 5, against=BEST),
    _row(FILES, "100 files of 1 MB, get, 4 at a time", _medium("get"), 5, against=BEST),
    _row(FILES, "CPU, client and servers, for each GB got", GET, 0.35, against=BEST, metric="cpu"),
    _row(FILES, "idle CPU, client and servers, % of a core", Wanted(scenario="idle"), 1, metric="idle cpu"),
    _row(
        FILES,
        "client peak above idle, put and get, 1 GB or more, MiB",
        Wanted(count=1, at_least=1000 * MB),
        150,
        metric="above idle",
    ),
    _row(FILES, "server peak, any load, MiB", Wanted(format=None, client=None), 100, metric="server peak"),
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
    _row(TREES, "listing 100 children", Wanted(scenario="list", count=100), 2, against=BEST),
    _row(TREES, "listing 1,000 children", Wanted(scenario="list", count=1000), 2, against=BEST),
    _row(
        TREES,
        "100 children in one change / one by one",
        Wanted(scenario="add-batch", count=100),
        50,
        against=BEST,
        basis=Wanted(scenario="add-each", count=100),
    ),
    _row(
        TREES,
        "client peak, MDMF put and get, 100 MB, MiB",
        Wanted(count=1, size=BIG, k=3, format="mdmf"),
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
        Wanted(scenario="get", size=KIB, client="cli", count=1),
        2,
        against=BEST,
    ),
)


def target_tables(records: Sequence[Record], *, all_rows: bool) -> str:
    """All tables with the records' results. all_rows: include those without measurements."""
    outcomes = [judge(target, records) for target in TARGETS]
    lines = ["# Targets", ""]
    for title in (FILES, TREES, GATEWAYS):
        mine = [one for one in outcomes if one.target.table == title and (all_rows or one.findings)]
        if mine:
            lines += [
                f"## {title}",
                "",
                "| what | against | at least | stretch | measured [95 %] | campaign | verdict |",
            ]
            lines += ["|---|---|---|---|---|---|---|", *(_line(outcome) for outcome in mine), ""]
    met = [outcome.met for outcome in outcomes if outcome.met is not None]
    lines += [f"{sum(met)} of {len(met)} measured rows are met; {len(outcomes) - len(met)} were not measured.", ""]
    lines.append(
        "Ratios are medians over runs with fresh grids, paired within each run, with bootstrap intervals; the better "
        "transport of Grid is judged. Of bounds the worst sample of the worse transport is. What is judged comes first."
    )
    return "\n".join(lines) + "\n"


def _line(outcome: Outcome) -> str:
    target = outcome.target
    unit = "x" if target.is_ratio else ""
    most = "" if target.more_is_better else "at most "
    against = target.against or "-"
    cells = [
        target.what,
        against,
        f"{most}{target.bar:g}{unit}",
        f"{target.stretch:g}{unit}" if target.stretch is not None else "",
        "; ".join(_measured(target, finding) for finding in outcome.findings) or "-",
        ", ".join(dict.fromkeys(finding.campaign for finding in outcome.findings)) or "-",
        outcome.verdict(),
    ]
    return f"| {' | '.join(cells)} |"


def _measured(target: Target, finding: Finding) -> str:
    rival = f" (than {finding.against})" if target.against == BEST else ""
    return f"{finding.system.removeprefix('grid@')} {_value(finding.estimate, target)}{rival}"


def _value(found: Estimate, target: Target) -> str:
    if found.count == 1:
        return f"{found.median:.3g}, 1 run"
    if not target.is_ratio and target.metric != "idle cpu":
        return f"{found.median:.3g}, the most of {found.count} runs"
    return f"{found.median:.3g} [{found.interval.low:.3g}, {found.interval.high:.3g}], {found.count} runs"
