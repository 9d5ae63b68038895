"""The project's published report: one page with everything, tables and a plot, and what the README quotes.

One command makes it from records; perf.reports.renewed renews it campaign by campaign. Both fill places in documents
marked by two comments, and leave the rest unchanged.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Sequence
from pathlib import Path

from attrs import frozen

from perf.records.record import Record, RecordError
from perf.reports.page import page
from perf.reports.published_rows import Measured, measured
from perf.reports.published_texts import five, needed_shares, section
from perf.reports.samples_table import Table, table_of, transfer_lines, write_table, write_transfers

STYLES = {
    "grid@http": ("Grid over HTTP (default)", "#1f6f8b", 0.19),
    "grid@foolscap": ("Grid over Foolscap", "#99c5c4", -0.19),
}
"""Styles of the plot: label, color, and position of the bars."""

FIVE, MEASURED, NEEDED = "five numbers", "measured", "needed shares"
"""The places in documents: `<!-- five numbers -->` to `<!-- end of five numbers -->`."""

FILES_AT_MOST = 4_000_000
"""Bytes of the table of single transfers that may be published."""

LEFT_OUT = "is left out: `perf report --output` writes it"
"""The end of what the page says of a table of transfers that is too long."""


@frozen(kw_only=True)
class Contents:
    """What is published about records. transfers: the lines of their table; None if it has been left out before."""

    records: Sequence[Record]
    found: Sequence[Measured]
    page: str
    samples: Table
    transfers: Sequence[Sequence[object]] | None


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
    """Write page, tables of samples and of transfers, and plot into the folder, and fill the places in documents;
    return the written paths.

    quoted_in: a README with a place for the five numbers, and perhaps one for the sentence about needed shares.
    RecordError, before anything is written, if the records lack one of the five, or a document its place.
    """
    expect_places(folder, quoted_in)
    found = measured(records)
    contents = Contents(
        records=records,
        found=found,
        page=page(records),
        samples=table_of(records),
        transfers=transfer_lines(records),
    )
    return write(contents, folder, quoted_in)


def expect_places(folder: Path, quoted_in: Path | None) -> None:
    """RecordError if a document lacks its place."""
    for path, place in ((folder / "README.md", MEASURED), (quoted_in, FIVE)):
        if path is not None and path.exists():
            _placed(path.read_text(encoding="utf-8"), path, place, "")


def write(contents: Contents, folder: Path, quoted_in: Path | None) -> list[Path]:
    """Write all of it, and fill the places in documents; return the written paths."""
    kept = folder / "README.md"
    texts = {}
    if quoted_in is not None:
        link = folder.resolve().relative_to(quoted_in.resolve().parent).as_posix()
        texts[quoted_in] = _quote(contents, quoted_in, link)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "measured.html").write_text(contents.page, encoding="utf-8")
    write_table(contents.samples, folder / "samples.csv")
    draw(contents.found, folder / "speed.png")
    transfers, files = _write_transfers(contents.transfers, folder / "files.csv")
    if kept.exists():
        text = section(contents.records, contents.found, transfers)
        texts[kept] = _placed(kept.read_text(encoding="utf-8"), kept, MEASURED, text)
    for path, text in texts.items():
        path.write_text(text, encoding="utf-8")
    return [folder / "measured.html", folder / "samples.csv", *files, folder / "speed.png", *texts]


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
    panel.set(
        xlim=(0, None),
        xlabel="times the speed of Tahoe-LAFS 1.20 (line at 1), medians with 95 % intervals, or ranges of two runs",
    )
    panel.legend(loc="lower right", frameon=False)
    panel.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    figure.savefig(path, metadata={"Software": None}, bbox_inches="tight")
    pyplot.close(figure)


def _quote(contents: Contents, path: Path, link: str) -> str:
    """The README with its numbers; a sentence that the records cannot make stays as it is."""
    text = _placed(path.read_text(encoding="utf-8"), path, FIVE, five(contents.found, link))
    sentence = needed_shares(contents.records)
    return _placed(text, path, NEEDED, sentence) if sentence and f"<!-- {NEEDED} -->" in text else text


def _write_transfers(lines: Sequence[Sequence[object]] | None, path: Path) -> tuple[str, list[Path]]:
    """Write a line per transfer unless that is too much; return what to say about it, and the path if it is there."""
    if not lines:
        path.unlink(missing_ok=True)
        return f"a line per transfer {LEFT_OUT}" if lines is None else "", []
    write_transfers(lines, path)
    size = path.stat().st_size
    if size <= FILES_AT_MOST:
        return "[every transfer of workloads](files.csv)", [path]
    path.unlink()
    return (
        f"a line per transfer ({len(lines):,} lines, {size / 1e6:.1f} MB) {LEFT_OUT}",
        [],
    )


def _placed(document: str, path: Path, place: str, text: str) -> str:
    """The document with the text in its place; RecordError if it has no such place."""
    begin, end = f"<!-- {place} -->", f"<!-- end of {place} -->"
    pattern = re.compile(f"{re.escape(begin)}.*?{re.escape(end)}", re.DOTALL)
    if len(pattern.findall(document)) != 1:
        raise RecordError(f"{path} has no place for what was measured: write {begin} and {end} into it, each once")
    return pattern.sub(lambda _: f"{begin}\n{text}\n{end}", document)
