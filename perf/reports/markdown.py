"""Parts of the HTML page as Markdown: findings, what each system does with bytes, and gaps. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from perf.records.record import Record
from perf.reports.findings import disagreements, per_file, sentences
from perf.reports.sides import has_sides, overview_of_sides, sides_of

PEER_TITLES = ["system", "stores", "hidden from", "proves", "syncs", "failures survived", "versions", "notes"]


def peer_row(name: str, values: dict[str, object]) -> list[str]:
    """A system's row in the table of compared systems."""
    versions = values.get("versions")
    known = ", ".join(f"{one} {two}" for one, two in versions.items()) if isinstance(versions, dict) else ""
    hidden = {"server": "servers", "line": "the line only"}.get(str(values.get("encrypts")), "nobody")
    return [
        name,
        f"{float(str(values.get('expansion', 'nan'))):.2f} bytes for each",
        hidden,
        str(values.get("proves")),
        "yes" if values.get("syncs") else "no",
        str(values.get("survives")),
        known,
        str(values.get("notes", "")),
    ]


def found_section(record: Record, subject: str | None = None) -> str:
    """A record's findings, its table of systems, seconds per file, and gaps."""
    lines = ["## What was found", "", *(f"- {line}" for line in sentences(record, subject))]
    if has_sides(record):
        lines += ["", "## Both sides, and the bottleneck", ""]
        lines += [f"- {line}" for line in overview_of_sides(sides_of(record))]
    if peers := record.header.environment.get("capabilities") or {}:
        lines += ["", "## What each system does with bytes", ""]
        lines += table(PEER_TITLES, [peer_row(name, values) for name, values in peers.items()])
    if files := per_file(record):
        lines += ["", "## Seconds of each file", ""]
        rows = [[system, str(work), *(f"{value:.4g}" for value in times)] for system, work, *times in files]
        lines += table(["system", "work", "least", "mean", "greatest"], rows)
    if record.gaps:
        lines += ["", "## Not measured", ""]
        lines += [f"- {gap.system}{', ' + gap.work if gap.work else ''}: {gap.reason}" for gap in record.gaps]
    return "\n".join([*lines, ""])


def quarrels_section(records: Sequence[Record]) -> str:
    """Campaigns that disagree; empty if none do."""
    quarrels = disagreements(records)
    return "\n".join(["## Campaigns that disagree", "", *(f"- {one}" for one in quarrels), ""]) if quarrels else ""


def table(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """The lines of a table."""
    return [f"| {' | '.join(cells)} |" for cells in (titles, ["---"] * len(titles), *rows)]
