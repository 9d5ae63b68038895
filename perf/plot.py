"""A picture of one record; needs matplotlib, which nothing else here does."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

from perf.records import Record
from perf.report import floor_of, works
from perf.statistics import estimate
from perf.work import MB, Work, work_of

AXES = (
    ("length", "octets read", 1.0),
    ("k", "shares needed", 1.0),
    ("segment", "segment, MB", MB),
    ("size", "size, MB", MB),
)
"""Factor, what it is called, its unit: the first that varies within a panel is its x."""


def plot(record: Record, path: Path) -> None:
    """Write one panel per kind of work, one line per system, and the floor; by the suffix of the path."""
    pyplot: Any = importlib.import_module("matplotlib.pyplot")
    panels = panels_of(works(record))
    figure, places = pyplot.subplots(1, len(panels), figsize=(5 * len(panels), 4), squeeze=False)
    for place, (title, mine) in zip(places[0], panels.items(), strict=True):
        factor, label, unit = axis_of(mine)
        for system in record.header.systems:
            _line(place, record, system, mine, (factor, unit))
        _floor_line(place, record, mine, (factor, unit))
        measure = mine[0].unit
        place.set(title=title, xscale="log", xlabel=label, ylabel=measure, ylim=(0, None))
        place.legend()
    figure.suptitle(f"{record.header.campaign}, {record.header.environment.get('date')}")
    figure.tight_layout()
    figure.savefig(path)


def panels_of(found: list[Work]) -> dict[str, list[Work]]:
    """What belongs on one pair of axes, by the title: the same scenario, client, number of files and unit."""
    panels: dict[str, list[Work]] = {}
    for work in found:
        files = f", {work.count} files" if work.count > 1 else ""
        panels.setdefault(f"{work.scenario}, {work.client}{files}, {work.unit}", []).append(work)
    return panels


def axis_of(mine: list[Work]) -> tuple[str, str, float]:
    """The factor that the works of a panel differ by, its label and its unit."""
    for axis in AXES:
        if len({dict(work.factors).get(axis[0]) for work in mine}) > 1:
            return axis
    return AXES[-1]


def _line(panel: Any, record: Record, system: str, mine: list[Work], axis: tuple[str, float]) -> None:  # noqa: ANN401
    places, middles, lows, highs = [], [], [], []
    for work in mine:
        times = [item.seconds for item in record.measured() if item.system == system and work_of(item) == work]
        values = [work.measure(time) for time in times if time is not None]
        if values:
            found = estimate(values)
            places.append(_place(work, axis))
            middles.append(found.median)
            lows.append(found.median - found.interval.low)
            highs.append(found.interval.high - found.median)
    if places:
        panel.errorbar(places, middles, yerr=[lows, highs], marker="o", capsize=3, label=system)


def _floor_line(panel: Any, record: Record, mine: list[Work], axis: tuple[str, float]) -> None:  # noqa: ANN401
    limits = [(_place(work, axis), limit) for work in mine if (limit := floor_of(record, work)) is not None]
    if limits:
        places, rates = zip(*limits, strict=True)
        panel.plot(places, rates, linestyle="--", marker="_", color="grey", label="floor")


def _place(work: Work, axis: tuple[str, float]) -> float:
    factor, unit = axis
    return float(dict(work.factors)[factor]) / unit
