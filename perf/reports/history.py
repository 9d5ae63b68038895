"""The history of a report's row over several records, oldest first, with its steps. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from perf.records.record import Record
from perf.records.work import Work, work_of
from perf.reports.report import works
from perf.sampling.fits import find_step
from perf.sampling.statistics import estimate


def history(records: Sequence[Record], wanted: str = "") -> str:
    """A table for each system and work whose name contains `wanted`: date, commit, median, interval; then the step."""
    ordered = sorted(records, key=lambda record: str(record.header.environment.get("date")))
    rows = dict.fromkeys(
        (system, work) for record in ordered for system in record.header.systems for work in works(record)
    )
    lines: list[str] = []
    for system, work in rows:
        if wanted in f"{system} {work}":
            lines += _row(ordered, system, work)
    return "\n".join(lines or [f"no row has {wanted!r} in its name"]) + "\n"


def _row(records: Sequence[Record], system: str, work: Work) -> list[str]:
    groups = [(record, values) for record in records if (values := _values(record, system, work))]
    if not groups:
        return []
    lines = [f"## {system}, {work}, {work.unit}", "", "| date | commit | median | 95 % | n |", "|---|---|---|---|---|"]
    for record, values in groups:
        found, environment = estimate(values), record.header.environment
        commit = str(environment.get("commit") or "unknown")[:10] + ("+" if environment.get("modified") else "")
        bounds = f"[{found.interval.low:.4g}, {found.interval.high:.4g}]"
        lines.append(f"| {environment.get('date')} | {commit} | {found.median:.4g} | {bounds} | {found.count} |")
    step = find_step([values for _, values in groups])
    if step is None:
        return [*lines, "", "No step shown.", ""]
    commit = str(groups[step.at][0].header.environment.get("commit"))[:10]
    return [*lines, "", f"A step at {commit}: {step.ratio:.3g} times what was before (p = {step.p:.2g}).", ""]


def _values(record: Record, system: str, work: Work) -> list[float]:
    return [
        work.measure(sample.seconds)
        for sample in record.measured()
        if sample.system == system and sample.seconds is not None and work_of(sample) == work
    ]
