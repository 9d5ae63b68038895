"""The project's published report: one page with everything, a table and a plot, and the five numbers of the README.

One command makes it from records. It fills places in documents marked by two comments, and leaves the rest unchanged.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from attrs import evolve, field, frozen

from perf.records.record import Record, RecordError
from perf.records.work import Work, work_of
from perf.reports.page import page
from perf.reports.report import bounds, rate, speedups, works
from perf.reports.samples_table import write_csv
from perf.sampling.environment import describe
from perf.sampling.statistics import Estimate, median

GRIDS = ("grid@http", "grid@foolscap")
PEER = "tahoe@foolscap"
TITLES = (
    "work",
    "Grid, HTTP (its default)",
    "Grid, Foolscap",
    "Tahoe-LAFS 1.20",
    "HTTP, ratio [95 %]",
    "Foolscap, ratio [95 %]",
)
STYLES = {
    "grid@http": ("Grid over HTTP (default)", "#1f6f8b", 0.19),
    "grid@foolscap": ("Grid over Foolscap", "#99c5c4", -0.19),
}
"""Styles of the plot: label, color, and position of the bars."""

FIVE, MEASURED = "five numbers", "measured"
"""The places in documents: `<!-- five numbers -->` to `<!-- end of five numbers -->`."""

BIG, SMALL = 100_000_000, 1024


@frozen(kw_only=True)
class Row:
    """A row of the table. factors: of its samples, except the default 3-of-10.

    is_quoted: whether the README quotes it.
    """

    label: str
    scenario: str
    factors: Mapping[str, float | str] = field(factory=dict)
    is_quoted: bool = False

    def fits(self, work: Work) -> bool:
        """Whether this is the work, done by a warm client on this machine without limits."""
        known = {**dict(work.factors), "count": work.count}
        wanted = {"k": 3, "n": 10, "count": 1, **self.factors}
        told = set(known) - {"concurrency"} == set(wanted)
        return (
            told
            and work.client == "warm"
            and (work.scenario, wanted)
            == (
                self.scenario,
                {name: known[name] for name in wanted},
            )
        )


ROWS = (
    Row(label="get 100 MB", scenario="get", factors={"size": BIG}, is_quoted=True),
    Row(label="put 100 MB", scenario="put", factors={"size": BIG}, is_quoted=True),
    Row(label="get 1 MB", scenario="get", factors={"size": 10**6}),
    Row(label="put 1 MB", scenario="put", factors={"size": 10**6}),
    Row(label="1 byte of 100 MB", scenario="alacrity", factors={"size": BIG, "length": 1}),
    Row(label="1 MB of 100 MB", scenario="range", factors={"size": BIG, "length": 10**6}),
    Row(
        label="get 200 files of 1 KiB, 16 at a time",
        scenario="get",
        factors={"size": SMALL, "count": 200},
        is_quoted=True,
    ),
    Row(label="put 200 files of 1 KiB, 16 at a time", scenario="put", factors={"size": SMALL, "count": 200}),
    Row(label="get 100 files of 1 MB, 4 at a time", scenario="get", factors={"size": 10**6, "count": 100}),
    Row(label="put 100 files of 1 MB, 4 at a time", scenario="put", factors={"size": 10**6, "count": 100}),
    Row(label="get 100 MB, MDMF", scenario="get", factors={"size": BIG, "format": "mdmf"}),
    Row(label="put 100 MB, MDMF", scenario="put", factors={"size": BIG, "format": "mdmf"}),
    Row(
        label="change 1 KiB in a mutable file of 100 MB",
        scenario="overwrite",
        factors={"size": BIG, "length": SMALL, "format": "mdmf"},
        is_quoted=True,
    ),
    Row(label="list 1,000 children", scenario="list", factors={"count": 1000}, is_quoted=True),
)
"""The rows in order. Those without records are omitted, but the README's five must exist."""


@frozen(kw_only=True)
class Measured:
    """A measured row: each system's result in words, and the ratios of speeds."""

    row: Row
    rates: Mapping[str, str]
    ratios: Mapping[str, Estimate]


def records_below(paths: Sequence[Path]) -> list[Path]:
    """The records named, and those in named folders; RecordError for a folder without any."""
    found = []
    for path in paths:
        inside = sorted(path.glob("*.jsonl")) if path.is_dir() else [path]
        if not inside:
            raise RecordError(f"{path}: there is no record (*.jsonl) in this folder")
        found += inside
    return found


def publish(records: Sequence[Record], folder: Path, quoted_in: Path | None) -> list[Path]:
    """Write page, table of samples and plot into the folder, and fill the places in documents; return the written
    paths.

    quoted_in: a README with a place for the five numbers. RecordError, before anything is written, if the records lack
    one of the five, or a document its place.
    """
    kept = folder / "README.md"
    for path, place in ((kept, MEASURED), (quoted_in, FIVE)):
        if path is not None and path.exists():
            _placed(path, place, "")
    found = measured(records)
    texts = {}
    if kept.exists():
        texts[kept] = _placed(kept, MEASURED, _section(records, found))
    if quoted_in is not None:
        link = folder.resolve().relative_to(quoted_in.resolve().parent).as_posix()
        texts[quoted_in] = _placed(quoted_in, FIVE, _five(found, link, records[0].header.environment))
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "measured.html").write_text(page(records), encoding="utf-8")
    write_csv(records, folder / "samples.csv")
    draw(found, folder / "speed.png")
    for path, text in texts.items():
        path.write_text(text, encoding="utf-8")
    return [folder / "measured.html", folder / "samples.csv", folder / "speed.png", *texts]


def measured(records: Sequence[Record]) -> list[Measured]:
    """The rows with records, each from the record with the most samples; RecordError if one of the five is missing."""
    chosen: dict[str, tuple[Row, Record, Work]] = {}
    for row in ROWS:
        candidates = list(_candidates(records, row))
        if candidates:
            best = max(candidates, key=lambda one: len(list(_times(one[0], one[1], PEER))))
            chosen[row.label] = (row, *best)
    missing = [row.label for row in ROWS if row.is_quoted and row.label not in chosen]
    if missing:
        raise RecordError(
            f"these records lack what the README quotes: {'; '.join(missing)}. Run the campaigns put-get, small-files, mutable "
            f"and directories with {', '.join([*GRIDS, PEER])}"
        )
    return [_measure(record, work, row) for row, record, work in chosen.values()]


def draw(found: Sequence[Measured], path: Path) -> None:
    """Draw how many times as fast as Tahoe-LAFS 1.20 each Grid is, with intervals."""
    importlib.import_module("matplotlib").use("agg")
    pyplot = importlib.import_module("matplotlib.pyplot")
    rows = list(reversed(found))
    figure, panel = pyplot.subplots(figsize=(8, 1 + 0.36 * len(rows)), dpi=110)
    for place, one in enumerate(rows):
        for system, ratio in one.ratios.items():
            name, color, shift = STYLES[system]
            spread = [[ratio.median - ratio.interval.low], [ratio.interval.high - ratio.median]]
            panel.barh(place + shift, ratio.median, 0.36, color=color, label=name if one is rows[0] else None)
            panel.errorbar(ratio.median, place + shift, xerr=spread, color="#333333", linewidth=1, capsize=2)
    panel.set_yticks(range(len(rows)), [one.row.label for one in rows])
    panel.axvline(1, color="#333333", linewidth=1)
    panel.set(xlim=(0, None), xlabel="times the speed of Tahoe-LAFS 1.20 (line at 1), medians with 95 % intervals")
    panel.legend(loc="lower right", frameon=False)
    panel.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    figure.savefig(path, metadata={"Software": None}, bbox_inches="tight")
    pyplot.close(figure)


def _candidates(records: Sequence[Record], row: Row) -> Iterator[tuple[Record, Work]]:
    for record in records:
        if PEER in record.header.systems and set(GRIDS) <= set(record.header.systems):
            yield from ((record, work) for work in works(record) if row.fits(work))


def _measure(record: Record, work: Work, row: Row) -> Measured:
    rates = {}
    for system in (*GRIDS, PEER):
        times = list(_times(record, work, system))
        rates[system] = rate(work, median(times)) if times else "-"
    only = evolve(record, samples=tuple(sample for sample in record.samples if work_of(sample) == work))
    ratios = {system: speedups(only, system, PEER).get(work) for system in GRIDS}
    return Measured(row=row, rates=rates, ratios={name: one for name, one in ratios.items() if one is not None})


def _times(record: Record, work: Work, system: str) -> Iterator[float]:
    for sample in record.measured():
        if sample.system == system and sample.seconds is not None and work_of(sample) == work:
            yield sample.seconds


def _section(records: Sequence[Record], found: Sequence[Measured]) -> str:
    """The text between the comments of the performance page."""
    how = (
        "Medians; ratios are of speeds against Tahoe-LAFS 1.20 over Foolscap, paired within a run, with bootstrap intervals. Grid "
        "syncs its shares to disk before a put returns; Tahoe-LAFS does not."
    )
    head = [f"| {' | '.join(TITLES)} |", f"|{'---|' * len(TITLES)}"]
    lines = [f"{describe(dict(records[0].header.environment))} {how}", "", *head]
    for one in found:
        ratios = [
            f"{ratio.median:.2f} {bounds(ratio.interval)}" if (ratio := one.ratios.get(system)) else ""
            for system in GRIDS
        ]
        lines.append(f"| {' | '.join([one.row.label, *(one.rates[name] for name in (*GRIDS, PEER)), *ratios])} |")
    commits = dict.fromkeys(str(record.header.environment.get("commit"))[:10] for record in records)
    campaigns = ", ".join(record.header.campaign for record in records)
    pages = "[One page with every plot, every finding and all that was not measured](measured.html); [all samples](samples.csv)."
    lines += ["", f"Commits: {', '.join(commits)}. Campaigns: {campaigns}. {pages}"]
    lines += ["", "![Speed of Grid as a multiple of Tahoe-LAFS 1.20](speed.png)"]
    return "\n".join(lines)


def _five(found: Sequence[Measured], link: str, environment: Mapping[str, Any]) -> str:
    """The README's five numbers."""
    when, cores = str(environment.get("date"))[:10], environment.get("cpu_count")
    how = (
        "A file has 10 shares, any 3 of which restore it; children are the entries of a directory. "
        f"Measured on {when} with all processes on one machine of {cores} cores, over loopback: Grid over HTTP, its default; "
        "Tahoe-LAFS over Foolscap, its older protocol. Medians. Grid syncs shares to disk before a put returns; "
        "Tahoe-LAFS does not."
    )
    lines = ["| Operation | Grid | Tahoe-LAFS 1.20 |", "|---|---|---|"]
    lines += [f"| {one.row.label} | {one.rates[GRIDS[0]]} | {one.rates[PEER]} |" for one in found if one.row.is_quoted]
    return "\n".join([*lines, "", f"![Speed of Grid as a multiple of Tahoe-LAFS 1.20]({link}/speed.png)", "", how])


def _placed(path: Path, place: str, text: str) -> str:
    """The document with the text in its place; RecordError if it has no such place."""
    begin, end = f"<!-- {place} -->", f"<!-- end of {place} -->"
    document = path.read_text(encoding="utf-8")
    pattern = re.compile(f"{re.escape(begin)}.*?{re.escape(end)}", re.DOTALL)
    if len(pattern.findall(document)) != 1:
        raise RecordError(f"{path} has no place for what was measured: write {begin} and {end} into it, each once")
    return pattern.sub(lambda _: f"{begin}\n{text}\n{end}", document)
