"""The history of a report's row over several records, oldest first, with its steps. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations

from perf.records.likeness import differences
from perf.records.record import Record, RecordError
from perf.records.work import Work
from perf.reports.report import spread, times_of, works
from perf.sampling.fits import CHANCE, FEWEST_GROUPS, SIMULATED, find_step
from perf.sampling.statistics import FEWEST, estimate_runs

Times = Mapping[int, Sequence[float]]


def history(records: Sequence[Record], wanted: str = "", *, force: bool = False) -> str:
    """A table for each system and work whose name contains `wanted`: date, commit, median, interval; then the step.

    RecordError if two records are of unlike machines, unless forced. Chance shows a step in any row of a history about once
    in twenty times.
    """
    if not force:
        _expect_one_machine(records)
    ordered = sorted(records, key=lambda record: str(record.header.environment.get("date")))
    names = dict.fromkeys(
        (system, work) for record in ordered for system in record.header.systems for work in works(record)
    )
    times = [{system: times_of(record, system) for system in record.header.systems} for record in ordered]
    rows: dict[tuple[str, Work], list[tuple[Record, Times]]] = {}
    for system, work in names:
        if wanted in f"{system} {work}":
            pairs = zip(ordered, times, strict=True)
            found: list[tuple[Record, Times]] = [
                (record, mine[system][work]) for record, mine in pairs if work in mine.get(system, {})
            ]
            if found:
                rows[system, work] = found
    judged = sum(len(groups) >= FEWEST_GROUPS for groups in rows.values())
    chance = max(CHANCE / max(1, judged), 2 / SIMULATED)
    lines = [line for (system, work), groups in rows.items() for line in _row(system, work, groups, chance)]
    if not rows:
        return f"no row has {wanted!r} in its name\n"
    note = f"Brackets: 95 % intervals, from {FEWEST} runs on. Parentheses: the range of fewer."
    return "\n".join([*lines, note]) + "\n"


def _expect_one_machine(records: Sequence[Record]) -> None:
    for one, other in combinations(records, 2):
        if unlike := differences(one.header.environment, other.header.environment):
            names = [f"{record.header.campaign} of {record.header.environment.get('date')}" for record in (one, other)]
            what = "; ".join(f"{name}: {old} and {new}" for name, (old, new) in unlike.items())
            raise RecordError(
                f"{' and '.join(names)} were measured in unlike environments, so their times make no history: {what}. "
                "--force joins them"
            )


def _row(system: str, work: Work, groups: Sequence[tuple[Record, Times]], chance: float) -> list[str]:
    lines = [
        f"## {system}, {work}, {work.unit}",
        "",
        "| date | commit | median | spread | runs |",
        "|---|---|---|---|---|",
    ]
    middles = []
    for record, times in groups:
        found = estimate_runs({run: [work.measure(time) for time in mine] for run, mine in times.items()})
        middles.append(found.median)
        lines.append(
            f"| {record.header.environment.get('date')} | {_commit(record)} | {found.median:.4g} | {spread(found)} "
            f"| {found.count} |"
        )
    if len(groups) < FEWEST_GROUPS:
        return [*lines, "", f"Too few records for a step, which shows from {FEWEST_GROUPS} on.", ""]
    step = find_step([[middle] for middle in middles], chance=chance)
    if step is None:
        return [*lines, "", "No step shown.", ""]
    commit = _commit(groups[step.at][0])
    return [*lines, "", f"A step at {commit}: {step.ratio:.3g} times what was before (p = {step.p:.2g}).", ""]


def _commit(record: Record) -> str:
    environment = record.header.environment
    return str(environment.get("commit") or "unknown")[:10] + ("+" if environment.get("modified") else "")
