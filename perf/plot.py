"""A picture of one record; needs matplotlib, which nothing else here does."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

from perf.records import Record
from perf.report import MB, Work, works
from perf.statistics import estimate


def plot(record: Record, path: Path) -> None:
    """Write throughput over size, one line per system, one panel per scenario and client; by the suffix of the path."""
    pyplot: Any = importlib.import_module("matplotlib.pyplot")
    kinds = sorted({(work.scenario, work.client) for work in works(record)})
    figure, panels = pyplot.subplots(1, len(kinds), figsize=(5 * len(kinds), 4), squeeze=False)
    for panel, (scenario, client) in zip(panels[0], kinds, strict=True):
        mine = [work for work in works(record) if (work.scenario, work.client) == (scenario, client)]
        for system in record.header.systems:
            _line(panel, record, system, mine)
        panel.set(title=f"{scenario}, {client}", xscale="log", xlabel="size, MB", ylabel="MB/s", ylim=(0, None))
        panel.legend()
    figure.suptitle(f"{record.header.campaign}, {record.header.environment.get('date')}")
    figure.tight_layout()
    figure.savefig(path)


def _line(panel: Any, record: Record, system: str, mine: list[Work]) -> None:  # noqa: ANN401 - matplotlib's
    sizes, middles, lows, highs = [], [], [], []
    for size in sorted({work.size for work in mine}):
        rates = [
            size / MB / sample.seconds
            for sample in record.measured()
            if sample.system == system and sample.size == size and sample.seconds is not None
            if any((sample.scenario, sample.client) == (work.scenario, work.client) for work in mine)
        ]
        if rates:
            found = estimate(rates)
            sizes.append(size / MB)
            middles.append(found.median)
            lows.append(found.median - found.interval.low)
            highs.append(found.interval.high - found.median)
    panel.errorbar(sizes, middles, yerr=[lows, highs], marker="o", capsize=3, label=system)
