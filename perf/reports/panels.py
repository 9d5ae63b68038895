"""Small panels of one record with matplotlib: processor seconds of both sides, and modes of concurrency over time."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from perf.campaigns.arrivals import MODES
from perf.records.record import Record, Sample
from perf.records.work import Work
from perf.reports.plot import colors_of, load_pyplot, series_of
from perf.reports.report import short
from perf.reports.sides import Side, Sides

COLORS = {
    ("client", "user"): "#2f7fb5",
    ("client", "system"): "#8fc1e3",
    ("servers", "user"): "#c2652a",
    ("servers", "system"): "#e8b48c",
}
"""Of medium brightness, for light and dark pages."""

COLUMNS = 2
"""Panels beside each other, each of one kind of work."""

ROOM = 0.45
"""Part of a panel's width right of the longest bar, for words."""

Curve = tuple[Sequence[float], Sequence[float], Sequence[float]]
"""Seconds, cores in use, and MiB held."""


def draw_sides(found: Sequence[Sides], path: Path) -> None:
    """Write a panel per kind of work: for each system a bar of the client and one of all servers, user and system
    seconds stacked, with the ceiling of each.
    """
    pyplot = load_pyplot()
    panels: dict[Work, list[Sides]] = {}
    for one in found:
        panels.setdefault(one.work, []).append(one)
    rows = -(-len(panels) // COLUMNS)
    tall = max(map(len, panels.values()))
    figure, grid = pyplot.subplots(rows, COLUMNS, figsize=(11, rows * (1.2 + 0.42 * tall)), squeeze=False)
    places = list(grid.flat)
    for place in places[len(panels) :]:
        place.set_visible(False)
    for place, (work, mine) in zip(places, panels.items(), strict=False):
        for number, one in enumerate(mine):
            _bar(place, number - 0.19, one.client, work)
            _bar(place, number + 0.19, one.servers, work)
        place.set_yticks(range(len(mine)), [one.system for one in mine], fontsize=8)
        place.set_ylim(len(mine) - 0.5, -0.5)
        place.margins(x=ROOM)
        place.set_xlabel("processor seconds", fontsize=8)
        place.set_title(textwrap.fill(str(work), 60), fontsize=9)
    handles = [pyplot.Rectangle((0, 0), 1, 1, color=color) for color in COLORS.values()]
    figure.legend(handles, [" ".join(key) for key in COLORS], loc="upper center", ncols=4, frameon=False)
    figure.tight_layout(rect=(0, 0, 1, 1 - 0.4 / figure.get_figheight()))
    figure.savefig(path)
    pyplot.close(figure)


def modes_of(record: Record, scenario: str) -> dict[str, dict[str, Curve]]:
    """The client's processor and memory over time, by mode of concurrency and system: of each the first sample, without
    warm-up where both were measured.
    """
    found: dict[str, dict[str, Sample]] = {}
    for sample in record.measured():
        mode = str(sample.factors.get("mode"))
        if sample.scenario == scenario and mode in MODES and len((sample.series or {}).get("at_ms", ())) > 1:
            kept = found.setdefault(mode, {}).setdefault(sample.system, sample)
            if kept.factors.get("warm") == "yes" and sample.factors.get("warm") == "no":
                found[mode][sample.system] = sample
    curves = {
        mode: {system: series_of(sample).get("client") for system, sample in by_system.items()}
        for mode, by_system in found.items()
    }
    ordered = [mode for mode in MODES if mode in curves]
    return {mode: {system: one for system, one in curves[mode].items() if one is not None} for mode in ordered}


def draw_modes(curves: Mapping[str, Mapping[str, Curve]], path: Path) -> None:
    """Write two panels per mode, cores and MiB of the client over time, with a line per system."""
    pyplot = load_pyplot()
    systems = list(dict.fromkeys(system for by_system in curves.values() for system in by_system))
    colors = colors_of(len(systems))
    figure, grid = pyplot.subplots(2, len(curves), figsize=(11, 5.5), squeeze=False, sharey="row")
    for column, (mode, by_system) in enumerate(curves.items()):
        above, below = grid[0][column], grid[1][column]
        for system, (at, cores, memory) in by_system.items():
            color = colors[systems.index(system)]
            above.plot(at, cores, color=color, linewidth=1.2)
            below.plot(at, memory, color=color, linewidth=1.2)
        above.set_title(mode, fontsize=10)
        below.set_xlabel("s", fontsize=8)
        for panel in (above, below):
            panel.tick_params(labelsize=8)
    grid[0][0].set(ylabel="cores of the client", ylim=(0, None))
    has_memory = any(max(memory, default=0) > 0 for by_system in curves.values() for _, _, memory in by_system.values())
    grid[1][0].set(ylabel="MiB of the client", yscale="log" if has_memory else "linear")
    handles = [pyplot.Line2D([], [], color=color) for color in colors]
    figure.legend(handles, systems, loc="upper center", ncols=3, frameon=False, fontsize=9)
    figure.tight_layout(rect=(0, 0, 1, 0.88))
    figure.savefig(path)
    pyplot.close(figure)


def _bar(panel: Any, place: float, side: Side, work: Work) -> None:  # noqa: ANN401 - matplotlib's
    panel.barh(place, side.user_s, 0.36, color=COLORS[side.name, "user"])
    panel.barh(place, side.system_s, 0.36, left=side.user_s, color=COLORS[side.name, "system"])
    ceiling = side.ceiling(work.size)
    told = f"{side.used:.0%}, ceiling {short(ceiling)} MB/s" if ceiling else f"{side.used:.0%}"
    end = (side.user_s + side.system_s, place)
    panel.annotate(told, end, xytext=(3, 0), textcoords="offset points", va="center", fontsize=7)
