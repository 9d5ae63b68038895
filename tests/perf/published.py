"""Small records of the rows that the project publishes, and documents with places for them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from attrs import evolve

from perf.records.record import Record, RecordWriter, Sample
from perf.reports.published_rows import GRIDS, PEER, ROWS, Row
from tests.perf.samples import HEADER, sample

PLACES = "# Title\n\nBefore.\n\n<!-- {0} -->\nold\n<!-- end of {0} -->\n\nAfter.\n"

FIVE = [row for row in ROWS if row.is_quoted]
"""The rows that the README quotes."""


def samples_of(row: Row, seconds: float) -> Iterator[Sample]:
    """Two runs of a row, Grid twice as fast as its peer."""
    known = {"k": 3, "n": 10, **row.factors}
    count = int(known.pop("count", 1))
    size = int(known.get("length", known.get("size", 0))) * (count if row.scenario != "list" else 1)
    for run in range(2):
        for system in (*GRIDS, PEER):
            yield evolve(
                sample(system, run=run, seconds=seconds * (2 if system == PEER else 1)),
                scenario=row.scenario,
                factors=known | ({"count": count, "concurrency": 4} if count > 1 else {}),
                count=count,
                size=size,
            )


def small_record(*rows: Row, campaign: str = "put-get", seconds: float = 0.5, **environment: object) -> Record:
    """A record of two runs of these rows."""
    header = evolve(
        HEADER, systems=(*GRIDS, PEER), campaign=campaign, environment={**HEADER.environment, **environment}
    )
    return Record(header, tuple(one for row in rows for one in samples_of(row, seconds)))


def write(path: Path, record: Record) -> None:
    """As a raw record."""
    with RecordWriter(path, record.header) as writer:
        for one in record.samples:
            writer.write(one)
        for gap in record.gaps:
            writer.write_gap(gap)
