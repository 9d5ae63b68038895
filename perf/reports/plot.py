"""Plots records and single operations with matplotlib."""

from __future__ import annotations

import importlib
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from attrs import evolve

from perf.records.beside import Timeline
from perf.records.record import Record, Sample
from perf.records.work import MB, Work, work_of
from perf.reports.report import floor_of, times_of, works
from perf.sampling.statistics import FEWEST, Estimate, estimate_runs

AXES = (
    ("length", "bytes read", 1.0),
    ("k", "shares needed", 1.0),
    ("count", "children", 1.0),
    ("concurrency", "files at a time", 1.0),
    ("segment", "segment, MB", MB),
    ("size", "size, MB", MB),
)
"""Factor, its label, its unit. The one with the most values is the x axis; of equals, the first."""

COLUMNS, COLUMNS_OF_MANY = 3, 2
INCHES = 15
"""All columns together."""
ROW_INCHES = 4
COLORS = (
    "#1f77b4", "#ff7f0e", "#2ca02c", "#d62728", "#9467bd", "#8c564b", "#e377c2", "#7f7f7f", "#bcbd22", "#17becf",
    "#6baed6", "#fdae6b", "#74c476", "#fb9a99", "#b39ddb", "#c49c94", "#f7b6d2", "#a6a6a6", "#dbdb8d", "#9edae5",
)  # fmt: skip
"""matplotlib's own, of medium brightness, for light and dark pages, and lighter ones."""
FEWEST_BARS = 4
"""Fewer bars leave room empty: a single one would fill a panel."""
FEW_SYSTEMS = 6
"""The names of more systems than these need room beside a panel."""
Known = Mapping[str, Mapping[Work, Estimate]]
"""What is drawn, by system and work."""
_SHARED = ("format", "count", "n", "happy", "warm")
"""Factors that a panel's title contains anyway, that follow from another, or that stand beside a system."""
_WARMED = {"yes": "after a warm-up", "no": "without a warm-up"}
"""What a factor `warm` says beside a system."""


def plot(record: Record, path: Path) -> None:
    """Write one panel per kind of work, with a bar or a line per system and the floor; the path's suffix selects the format."""
    pyplot = load_pyplot()
    panels = panels_of(drawn_works(record) or works(record))
    most = COLUMNS if len(record.header.systems) <= FEW_SYSTEMS else COLUMNS_OF_MANY
    columns = min(most, len(panels))
    rows = -(-len(panels) // columns)
    figure, grid = pyplot.subplots(rows, columns, figsize=(INCHES / most * columns, ROW_INCHES * rows), squeeze=False)
    places = list(grid.flat)
    known = {system: _estimates(record, system) for system in record.header.systems}
    colors = dict(zip(known, colors_of(len(known)), strict=True))
    for place in places[len(panels) :]:
        place.set_visible(False)
    for place, (title, mine) in zip(places, panels.items(), strict=False):
        if has_bars(mine):
            _bars(place, record, mine, known, colors)
        else:
            _lines(place, record, mine, known, colors)
        place.set_title(textwrap.fill(title, 44), fontsize=10)
    figure.suptitle(
        f"{record.header.campaign}, {record.header.environment.get('date')}\n"
        f"medians; lines: 95 % intervals, or of fewer than {FEWEST} runs the range of all samples",
        fontsize=10,
        y=1 - 0.1 / (ROW_INCHES * rows),
    )
    figure.tight_layout()
    figure.savefig(path)
    pyplot.close(figure)


def colors_of(count: int) -> list[str]:
    """A color for each system."""
    return [COLORS[number % len(COLORS)] for number in range(count)]


def drawn_works(record: Record) -> list[Work]:
    """The works that a system of the header did; others, such as trials of ciphers, would be empty panels."""
    known = {work_of(sample) for sample in record.measured() if sample.system in record.header.systems}
    return [work for work in works(record) if work in known]


def plot_timeline(record: Record, kept: Timeline, path: Path) -> None:
    """Write one operation: a lane per server, and a bar per request from sending to answer."""
    pyplot = load_pyplot()
    spans, marks = spans_of(kept)
    lanes = max((lane for lane, *_ in spans), default=0)
    figure, panel = pyplot.subplots(figsize=(12, 2 + 0.35 * (lanes + 2)))
    kinds = dict.fromkeys(kind for *_, kind, _ in spans)
    colours = {kind: f"C{number % 10}" for number, kind in enumerate(kinds)}
    for lane, start, stop, kind, end in spans:
        style = {"hatch": "///", "alpha": 0.4} if end != "answer" else {"alpha": 0.7}
        panel.barh(lane, max(stop - start, 0.05), left=start, height=0.7, color=colours[kind], **style)
    for kind, colour in colours.items():
        panel.barh(0, 0, color=colour, label=kind)
    for at, what in marks:
        panel.axvline(at, color="grey", linewidth=0.6)
        panel.text(at, lanes + 0.8, what, rotation=30, fontsize=6)
    found = [sample for sample in record.samples if (sample.run, sample.order) == (kept.run, kept.order)]
    title = f"{found[0].system}, {work_of(found[0])}: {found[0].seconds:.3g} s" if found else "unknown"
    panel.set(title=f"{title}, usually {kept.median:.3g} s", xlabel="ms", ylabel="server (-1: this client)")
    panel.legend(fontsize=6, loc="lower right")
    figure.tight_layout()
    figure.savefig(path)
    pyplot.close(figure)


def plot_series(sample: Sample, path: Path) -> None:
    """Write one operation over time: cores in use and memory, of the client and of all servers together, and the part of the
    time in which some task of the machine waited for a resource, where the kernel reports it.
    """
    pyplot = load_pyplot()
    pressures = pressures_of(sample)
    count = 3 if pressures else 2
    figure, (above, below, *others) = pyplot.subplots(count, 1, figsize=(8, 2.5 * count), sharex=True)
    for name, (at, cores, memory) in series_of(sample).items():
        above.plot(at, cores, label=name)
        below.plot(at, memory, label=name)
    above.set(ylabel="cores", ylim=(0, None))
    below.set(ylabel="MiB", ylim=(0, None))
    above.legend()
    for panel in others:
        for name, (at, parts) in pressures.items():
            panel.plot(at, parts, label=name)
        panel.set(ylabel="waiting, %", ylim=(0, 105))
        panel.legend()
    [below, *others][-1].set_xlabel("s")
    figure.tight_layout()
    figure.savefig(path)
    pyplot.close(figure)


def series_of(sample: Sample) -> dict[str, tuple[list[float], list[float], list[float]]]:
    """Seconds, cores in use since the previous point, and MiB held, of the client and of all servers together."""
    series = sample.series or {}
    at = [value / 1e3 for value in series.get("at_ms", ())]
    groups: dict[str, list[str]] = {}
    for name in series.get("cpu_ms", {}):
        groups.setdefault("servers" if name.startswith("server") else name, []).append(name)
    found = {}
    for group, names in groups.items():
        spent = [sum(column) for column in zip(*(series["cpu_ms"][name] for name in names), strict=True)]
        held = [sum(column) / 1024 for column in zip(*(series["resident_kib"][name] for name in names), strict=True)]
        cores = [
            0.0,
            *(
                (b - a) / 1e3 / (u - t) if u > t else 0.0
                for a, b, t, u in zip(spent, spent[1:], at, at[1:], strict=False)
            ),
        ]
        found[group] = (at, cores, held)
    return found


def pressures_of(sample: Sample) -> dict[str, tuple[list[float], list[float]]]:
    """Seconds, and the percentage of the time since the previous point in which some task waited, by resource."""
    series = sample.series or {}
    at = [value / 1e3 for value in series.get("at_ms", ())]
    found = {}
    for name, waited in series.get("waited_ms", {}).items():
        steps = zip(waited, waited[1:], at, at[1:], strict=False)
        found[name] = (at, [0.0, *(min(100.0, (b - a) / 10 / (u - t)) if u > t else 0.0 for a, b, t, u in steps)])
    return found


Span = tuple[int, float, float, str, str]
"""Lane, start and end in ms, the request, and how it ended."""


def spans_of(kept: Timeline) -> tuple[list[Span], list[tuple[float, str]]]:
    """The requests of a timeline, and other moments worth a mark. Unfinished requests extend to the last event."""
    spans: list[Span] = []
    marks: list[tuple[float, str]] = []
    waiting: dict[tuple[int, int], list[tuple[float, str]]] = {}
    last = max((float(event[0]) for event in kept.events), default=0.0)
    for at, what, detail, server, _shares, _bytes, request in kept.events:
        sent = waiting.setdefault((server, request), [])
        if what == "send":
            sent.append((at, detail))
        elif what in ("answer", "fail", "cancel"):
            # Plans number their requests separately, so a number may be ambiguous; a failure gives its reason, not its
            # request.
            mine = next((one for one in sent if one[1] == detail), sent[0] if sent else None)
            if mine is not None:
                sent.remove(mine)
                spans.append((server, mine[0], at, mine[1], what))
        elif what != "progress":
            marks.append((at, f"{what} {detail}".strip()))
    for (server, _), left in waiting.items():
        spans += [(server, start, last, kind, "open") for start, kind in left]
    return spans, marks


def load_pyplot() -> Any:  # noqa: ANN401 - imported only where pictures are drawn
    """matplotlib.pyplot, set up to draw into files."""
    library = importlib.import_module("matplotlib")
    library.use("agg")
    library.rcParams["svg.fonttype"] = "none"  # Text can be searched, and a page with it has half the size.
    return importlib.import_module("matplotlib.pyplot")


def panels_of(found: list[Work]) -> dict[str, list[Work]]:
    """Works that share a pair of axes, by title: all alike but for the factor of the x axis."""
    kinds: dict[str, list[Work]] = {}
    for work in found:
        files = f"{work.count} files" if work.size and work.count > 1 else ""
        format = str(dict(work.factors).get("format", "")).upper()
        title = ", ".join(filter(None, [f"{format} {work.scenario}".strip(), work.client, files, work.unit]))
        kinds.setdefault(title, []).append(work)
    panels: dict[str, list[Work]] = {}
    for title, mine in kinds.items():
        factor = axis_of(mine)[0]
        for work in mine:
            panels.setdefault(", ".join([title, *_others(work, mine, factor)]), []).append(work)
    return panels


def _others(work: Work, mine: list[Work], factor: str) -> Iterator[str]:
    """What else the work is, where its kind differs in more than the factor."""
    for name, value in work.factors:
        varies = len({dict(one.factors).get(name) for one in mine}) > 1
        if varies and name != factor and name not in _SHARED:
            known = (
                {"size": f"{float(value) / MB:g} MB", "length": f"{value} bytes"} if name in ("size", "length") else {}
            )
            yield known.get(name, f"{name} {value}")


def axis_of(mine: list[Work]) -> tuple[str, str, float]:
    """The factor by which a panel's works differ most, with its label and unit."""
    values = {axis: len({dict(work.factors).get(axis[0]) for work in mine}) for axis in AXES}
    most = max(values.values())
    return next(axis for axis in AXES if values[axis] == most) if most > 1 else AXES[-1]


def has_bars(mine: list[Work]) -> bool:
    """Whether a panel's works have no axis on which they differ."""
    factor = axis_of(mine)[0]
    return len({dict(work.factors).get(factor) for work in mine}) == 1


def bars_of(mine: list[Work], known: Known) -> list[tuple[str, str, Estimate]]:
    """The bars of a panel: the system, its name with what its works differ in, and what was measured."""
    return [
        (system, ", ".join(filter(None, [system, _WARMED.get(str(dict(work.factors).get("warm")))])), found[work])
        for system, found in known.items()
        for work in mine
        if work in found
    ]


def _lines(panel: Any, record: Record, mine: list[Work], known: Known, colors: Mapping[str, str]) -> None:  # noqa: ANN401
    """One line per system over the factor that varies."""
    factor, label, unit = axis_of(mine)
    for system, found in known.items():
        _line(panel, system, mine, (factor, unit), found, colors[system])
    _floor_line(panel, record, mine, (factor, unit))
    panel.set(xscale="log", xlabel=label, ylabel=mine[0].unit)
    panel.set_ylim(0, min(panel.get_ylim()[1], _top(record, mine, known)))
    places = sorted({_place(work, (factor, unit)) for work in mine})
    panel.set_xticks(places, [f"{place:g}" for place in places], fontsize=8)
    panel.minorticks_off()
    if len(panel.get_legend_handles_labels()[1]) <= FEW_SYSTEMS:
        panel.legend()
    else:
        panel.legend(fontsize=7, loc="upper left", bbox_to_anchor=(1, 1), frameon=False)


def _bars(panel: Any, record: Record, mine: list[Work], known: Known, colors: Mapping[str, str]) -> None:  # noqa: ANN401
    """One bar per system, with its name, if nothing varies, and the floor as a line across."""
    bars = bars_of(mine, known)
    for number, (system, _, found) in enumerate(bars):
        ends = [[found.median - found.interval.low], [found.interval.high - found.median]]
        panel.barh(number, found.median, 0.7, xerr=ends, capsize=3, color=colors[system])
    panel.set_yticks(range(len(bars)), [name for _, name, _ in bars], fontsize=8)
    panel.set_ylim(max(len(bars), FEWEST_BARS) - 0.5, -0.5)
    limit = floor_of(record, mine[0])
    if limit is not None:
        panel.axvline(limit, linestyle="--", color="grey", label="floor")
        panel.legend(fontsize=8)
    panel.set_xlim(0, min(panel.get_xlim()[1], _top(record, mine, known)))
    panel.set_xlabel(f"{mine[0].unit}\n{textwrap.fill(_shared(mine), 50)}", fontsize=8)


def _shared(mine: list[Work]) -> str:
    """What the works of a panel share, in words."""
    factors = tuple(pair for pair in mine[0].factors if pair[0] != "warm")
    return str(evolve(mine[0], factors=factors))


def _line(
    panel: Any,  # noqa: ANN401 - matplotlib's
    system: str,
    mine: list[Work],
    axis: tuple[str, float],
    known: Mapping[Work, Estimate],
    color: str,
) -> None:
    works = [work for work in sorted(mine, key=lambda work: _place(work, axis)) if work in known]
    if works:
        places = [_place(work, axis) for work in works]
        middles = [known[work].median for work in works]
        lows = [known[work].median - known[work].interval.low for work in works]
        highs = [known[work].interval.high - known[work].median for work in works]
        panel.errorbar(places, middles, yerr=[lows, highs], marker="o", capsize=3, label=system, color=color)


def _top(record: Record, mine: list[Work], known: Known) -> float:
    """The most that a panel shows: what was measured is not made small by intervals of few runs, which then leave it."""
    greatest = [found[work].greatest for found in known.values() for work in mine if work in found]
    limits = [limit for work in mine if (limit := floor_of(record, work)) is not None]
    return max(2 * max(greatest, default=1.0), 1.05 * max(limits, default=0.0))


def _floor_line(panel: Any, record: Record, mine: list[Work], axis: tuple[str, float]) -> None:  # noqa: ANN401
    limits = sorted((_place(work, axis), limit) for work in mine if (limit := floor_of(record, work)) is not None)
    if limits:
        places, rates = zip(*limits, strict=True)
        panel.plot(places, rates, linestyle="--", marker="_", color="grey", label="floor")


def _estimates(record: Record, system: str) -> dict[Work, Estimate]:
    """What is drawn of a system."""
    return {
        work: estimate_runs({run: [work.measure(time) for time in times] for run, times in runs.items()})
        for work, runs in times_of(record, system).items()
    }


def _place(work: Work, axis: tuple[str, float]) -> float:
    factor, unit = axis
    return float(dict(work.factors)[factor]) / unit
