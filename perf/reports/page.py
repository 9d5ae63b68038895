"""A report as one self-contained HTML page: no server, no network, light and dark themes, readable on phones."""

from __future__ import annotations

import re
import tempfile
import zlib
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from html import escape
from itertools import chain, count
from pathlib import Path

from perf.records.record import Record, Sample
from perf.records.work import work_of
from perf.reports.findings import disagreements, findings, overviews, per_file, sentences
from perf.reports.markdown import PEER_TITLES, peer_row
from perf.reports.outliers import DRAWN, listed, outliers, quoted, slow_transfers
from perf.reports.panels import draw_modes, draw_sides, modes_of
from perf.reports.plot import plot, plot_series, plot_timeline
from perf.reports.sides import NOTE as SIDES_NOTE
from perf.reports.sides import has_sides, overview_of_sides, sides_of
from perf.reports.target_rows import NOTE, TITLES, cells, counts, outcomes
from perf.sampling.environment import day_of, describe

STYLE = """
:root { color-scheme: light dark; --back: #fff; --text: #1b1f24; --soft: #57606a; --line: #d0d7de; --good: #116329; --bad: #a40e26; }
@media (prefers-color-scheme: dark) {
  :root { --back: #0d1117; --text: #e6edf3; --soft: #9198a1; --line: #3d444d; --good: #56d364; --bad: #ff7b72; }
}
body { background: var(--back); color: var(--text); font: 16px/1.5 system-ui, sans-serif; max-width: 70rem; margin: 0 auto; padding: 1rem; }
h1, h2, h3 { line-height: 1.2; } p, li { overflow-wrap: anywhere; } .soft { color: var(--soft); }
summary { cursor: pointer; padding: .7rem 0; } nav li { padding: .2rem 0; } a { color: inherit; }
.better { color: var(--good); } .worse, .failed { color: var(--bad); }
.scroll { overflow-x: auto; } table { border-collapse: collapse; font-size: .9rem; }
th, td { border-bottom: 1px solid var(--line); padding: .3rem .6rem; text-align: left; white-space: nowrap; }
svg { max-width: 100%; height: auto; color: var(--text); fill: currentColor; }
pre { overflow-x: auto; font-size: .8rem; max-height: 20rem; }
"""

MODES_NOTE = (
    "The client alone, of each system its first sample, without warm-up where there are both. Memory on a logarithmic scale; if a "
    "command runs for each file, what ended commands held last may still count, so that it only climbs."
)

INTRODUCTION = (
    "A campaign measures a set of operations in one or more runs; its section begins with its date, its commit and its "
    "machine. A ratio of speeds above 1 means that the system named first is faster. Square brackets, or '95 %', enclose "
    "the true ratio in 19 of 20 cases, so that a ratio whose interval has 1 in it shows no difference; one or two runs only "
    "have a range, in parentheses, and may differ by chance."
)

_HEAD = re.compile(r'^<h2 id="[^"]*">')
"""How a section begins."""

QUARRELS = '<h2 class="worse">Campaigns that disagree</h2>'
END = "\n</main></body></html>\n"
"""Everything after the last section."""

SHOWN_SERIES = 3
"""Series over time drawn for each record: those of outliers first, then the longest."""


def page(records: Sequence[Record], subject: str | None = None) -> str:
    """The whole page. subject: the system that others are compared with; by default that of `subject_of`."""
    return assemble(records, [section(record, subject) for record in records])


def assemble(records: Sequence[Record], sections: Iterable[str]) -> str:
    """The whole page of these sections, with the contents, the targets and the disagreements of the records first."""
    title = "Measurements"
    known = _anchors(records)
    named = [_HEAD.sub(f'<h2 id="{name}">', one, count=1) for name, one in zip(known, sections, strict=True)]
    contents = f'<p class="soft">{escape(INTRODUCTION)}</p>\n{_contents(records, known)}'
    parts = [f"<h1>{title}</h1>", contents, *_targets(records), *quarrels(records), *named]
    body = "\n".join(parts)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{STYLE}</style></head>\n<body><main>\n{body}{END}"
    )


def section(record: Record, subject: str | None = None) -> str:
    """A campaign's part of the page, from its heading on."""
    return "\n".join(_section(record, subject))


def quarrels(records: Sequence[Record]) -> list[str]:
    """Campaigns that disagree; empty if none do."""
    found = disagreements(records)
    return [QUARRELS, _list(str(one) for one in found)] if found else []


def stated(sentence: str) -> str:
    """How the page begins its targets, with this sentence of their counts."""
    return f"<h2>Targets</h2><p>{escape(sentence)} "


def anchor(campaign: str) -> str:
    """The id of the heading of the first record of a campaign."""
    return "campaign-" + re.sub(r"[^A-Za-z0-9]+", "-", campaign)


def is_anchor(text: str, campaign: str) -> bool:
    """Whether this is the id of a heading of this campaign, the first or another of its name."""
    return re.fullmatch(rf"{anchor(campaign)}(-[0-9]+)?", text) is not None


def _anchors(records: Sequence[Record]) -> list[str]:
    """The ids of the records' headings, each once on the page: the second of a name ends in -2."""
    found: list[str] = []
    for record in records:
        first = anchor(record.header.campaign)
        others = (f"{first}-{number}" for number in count(2))
        found.append(next(name for name in chain([first], others) if name not in found))
    return found


def _contents(records: Sequence[Record], anchors: Sequence[str]) -> str:
    """The campaigns, with the day of each and what it measures."""
    items = [
        f'<li><a href="#{name}">{escape(record.header.campaign)}</a>{escape(_day(record))}: {escape(_purpose(record))}</li>'
        for name, record in zip(anchors, records, strict=True)
    ]
    return f"<nav><ul>{''.join(items)}</ul></nav>"


def _targets(records: Sequence[Record]) -> Iterable[str]:
    """The targets that these records judge."""
    found = outcomes(records)
    measured = [one for one in found if one.findings]
    if measured:
        yield f"{stated(counts(found))}{escape(NOTE)}</p>"
        yield f"<details><summary>Row by row</summary>{_table(TITLES, map(cells, measured))}</details>"


def _day(record: Record) -> str:
    """When it was measured, as the list has it; empty if its record does not say."""
    environment = record.header.environment
    return f" ({day_of(environment)})" if environment.get("date") else ""


def _purpose(record: Record) -> str:
    return str(record.header.plan.get("purpose") or "its record does not say what for")


def _section(record: Record, subject: str | None) -> Iterable[str]:
    mine = subject if subject in record.header.systems else None
    found = findings(record, mine)
    verdicts = {str(one): one.verdict for one in found}
    yield f'<h2 id="{anchor(record.header.campaign)}">{escape(record.header.campaign)}</h2>'
    yield f"<p>{escape(_purpose(record))}</p>"
    yield f'<p class="soft">{escape(describe(dict(record.header.environment)))}</p>'
    if next(iter(record.measured()), None) is not None:
        yield picture(record)
    yield "<h3>What was found</h3>"
    yield _list([*overviews(found), *(line for line in sentences(record, mine) if line not in verdicts)])
    if found:
        yield f"<details><summary>Row by row</summary>{_list(verdicts, verdicts)}</details>"
    yield from _both_sides(record)
    peers = record.header.environment.get("capabilities") or {}
    if peers:
        yield "<h3>What each system does with bytes</h3>"
        yield _table(PEER_TITLES, [peer_row(name, values) for name, values in peers.items()])
    if files := per_file(record):
        yield _folded(
            "Seconds of each file",
            ["system", "work", "least", "mean", "greatest"],
            [[system, str(work), *(f"{value:.4g}" for value in times)] for system, work, *times in files],
        )
    yield from _costs(record)
    if record.sites:
        yield "<h3>Networks as they were found</h3>"
        yield _list(f"run {one.run + 1}, {one.site}: {one.found}" for one in record.sites)
    if record.gaps:
        yield "<h3>Not measured</h3>"
        yield _list(f"{gap.system}{', ' + gap.work if gap.work else ''}: {gap.reason}" for gap in record.gaps)
    if failures := record.failures():
        yield f'<h3 class="failed">Failed: {len(failures)} of {len(record.samples)}</h3>'
        yield _list(f"{sample.system}, {work_of(sample)}: {sample.error}" for sample in failures)
    yield from _outliers(record)
    yield from _modes(record)
    for sample in shown_series(record):
        yield f"<h3>Over time: {escape(sample.system)}, {escape(str(work_of(sample)))}</h3>"
        yield picture(record, sample)


def _outliers(record: Record) -> Iterable[str]:
    """What took unusually long, with what was kept of it."""
    found, transfers = outliers(record), slow_transfers(record)
    if not found and not transfers:
        return
    parts = [_list(listed(list(map(str, found))))] if found else []
    for one in [one for one in found if one.is_drawn][:DRAWN]:
        what = f"Timeline: {one.sample.system}, {work_of(one.sample)}, run {one.sample.run + 1}"
        parts.append(f"<h4>{escape(what)}</h4>{_drawn(what, partial(plot_timeline, record, one.kept))}")
    for one, text in quoted(found):
        parts.append(f"<h4>Status page: {escape(one.sample.system)}, run {one.sample.run + 1}</h4>")
        parts.append(f'<pre tabindex="0">{escape(text)}</pre>')
    if transfers:
        parts.append(f"<h4>Single transfers within a sample</h4>{_list(listed(transfers))}")
    beside = f", and {len(transfers)} single transfers" if transfers else ""
    yield f"<details><summary>Outliers: {len(found)}{beside}</summary>{''.join(parts)}</details>"


def _both_sides(record: Record) -> Iterable[str]:
    """Processor seconds of both sides as bars, the bottleneck of each kind of work, and the ceilings."""
    found = sides_of(record) if has_sides(record) else []
    if found:
        yield "<h3>Processor seconds of both sides, and the bottleneck</h3>"
        yield f'<p class="soft">{escape(SIDES_NOTE)}</p>'
        yield _drawn("User and system seconds of client and servers", partial(draw_sides, found))
        yield _list(overview_of_sides(found))
        yield f"<details><summary>Row by row</summary>{_list(map(str, found))}</details>"


def _modes(record: Record) -> Iterable[str]:
    """The client's processor and memory in each mode of concurrency, for each direction."""
    for scenario in ("get", "put"):
        curves = modes_of(record, scenario)
        if curves:
            yield f"<h3>Processor and memory in each mode, {scenario}</h3>"
            yield f'<p class="soft">{escape(MODES_NOTE)}</p>'
            what = (
                f"The client's cores and MiB over time, {scenario}, a column for each mode and a line for each system"
            )
            yield _drawn(what, partial(draw_modes, curves))


def picture(record: Record, sample: Sample | None = None) -> str:
    """A record, or one sample over time, as SVG that takes its colors from the page."""
    if sample is None:
        what = f"Plot of {record.header.campaign}; the table of samples has its numbers"
        return _drawn(what, partial(plot, record))
    what = "Processor, memory and pressure" if (sample.series or {}).get("waited_ms") else "Processor and memory"
    return _drawn(f"{what} over time: {sample.system}, {work_of(sample)}", partial(plot_series, sample))


def _drawn(what: str, draw: Callable[[Path], None]) -> str:
    """The SVG that a function writes. what: the text alternative."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "picture.svg"
        draw(path)
        return inline(path.read_text(encoding="utf-8"), what)


def inline(svg: str, what: str) -> str:
    """Prepare an SVG for embedding: without its head and background, in the page's text color, with unique ids.

    what: the text alternative.
    """
    text = svg[svg.index("<svg") :]
    prefix = f"p{zlib.crc32(svg.encode()):x}-"
    text = re.sub(r'(\bid="|url\(#|href="#)', rf"\g<1>{prefix}", text)
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = text.replace("<svg", f'<svg role="img" aria-label="{escape(what)}"', 1)
    return text.replace("#000000", "currentColor").replace("#ffffff", "none")


def _costs(record: Record) -> Iterable[str]:
    """User and system seconds of both sides."""
    seen = [sample for sample in record.measured() if sample.client_user_s is not None]
    if not seen:
        return
    kinds = dict.fromkeys((sample.system, work_of(sample)) for sample in seen)
    rows = []
    for system, work in kinds:
        mine = [one for one in seen if (one.system, work_of(one)) == (system, work)]
        sums = [
            sum(getattr(one, name) or 0 for one in mine) / len(mine)
            for name in ("client_user_s", "client_system_s", "server_user_s", "server_system_s")
        ]
        rows.append([system, str(work), *(f"{value:.3f}" for value in sums)])
    titles = ["system", "work", "client user", "client system", "servers user", "servers system"]
    yield _folded("Processor seconds, mean", titles, rows)


def shown_series(record: Record) -> list[Sample]:
    """Samples whose series are worth a picture."""
    outliers = {(one.run, one.order) for one in record.timelines}
    having = [one for one in record.measured() if one.series and len(one.series.get("at_ms", ())) > 2]
    having.sort(key=lambda one: ((one.run, one.order) not in outliers, -(one.seconds or 0)))
    return having[:SHOWN_SERIES]


def _list(lines: Iterable[str], classes: dict[str, str] | None = None) -> str:
    known = classes or {}
    items = [
        f'<li class="{known[line]}">{escape(line)}</li>' if line in known else f"<li>{escape(line)}</li>"
        for line in lines
    ]
    return f"<ul>{''.join(items)}</ul>" if items else "<p>Nothing.</p>"


def _folded(summary: str, titles: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table that opens on demand."""
    return f"<details><summary>{escape(summary)}</summary>{_table(titles, rows)}</details>"


def _table(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    head = "".join(f'<th scope="col">{escape(title)}</th>' for title in titles)
    body = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
    # Wide tables scroll on their own, and the keyboard reaches them.
    return f'<div class="scroll" tabindex="0"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'
