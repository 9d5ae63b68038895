"""All samples as one table: CSV, and Parquet where pyarrow is installed."""

from __future__ import annotations

import csv
import importlib
from collections.abc import Mapping, Sequence
from pathlib import Path

from attrs import asdict, fields, frozen

from perf.records.record import Record, Sample
from perf.records.work import work_of

Cell = str | int | float | bool | None

FILE_COLUMNS = (
    "campaign", "run", "order", "system", "work", "file", "bytes", "due_s", "started_s", "ended_s", "error", "seconds"
)  # fmt: skip

_NESTED = (
    "factors",
    "server_cpus_s",
    "server_peaks_rss",
    "pressure",
    "members",
    "series",
    "timeline",
    "status",
    "files",
)

ORIGIN = ("campaign", "commit", "date")
FIELDS = tuple(attribute.name for attribute in fields(Sample) if attribute.name not in _NESTED)
"""Columns that every row has: where the sample is from, then its own values."""


@frozen
class Table:
    """A table of samples. rows: have all its columns or fewer; the cells of others are empty."""

    columns: Sequence[str]
    rows: Sequence[Mapping[str, Cell]]


def table_of(records: Sequence[Record]) -> Table:
    """One row per sample, including warm-ups and failures."""
    found = [_row(record, sample) for record in records for sample in record.samples]
    return Table(list(dict.fromkeys(name for row in found for name in row)), found)


def joined(tables: Sequence[Table]) -> Table:
    """Several tables, one below the other."""
    columns = dict.fromkeys(name for one in tables for name in one.columns)
    return Table(list(columns), [row for one in tables for row in one.rows])


def rows(records: Sequence[Record]) -> list[dict[str, Cell]]:
    """One row per sample, including warm-ups and failures; every row has every column."""
    table = table_of(records)
    return [{name: row.get(name) for name in table.columns} for row in table.rows]


def write_csv(records: Sequence[Record], path: Path) -> None:
    """Write the table; unknown values are empty cells."""
    write_table(table_of(records), path)


def write_table(table: Table, path: Path) -> None:
    """Write a table; unknown values are empty cells."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, table.columns or ["campaign"])
        writer.writeheader()
        writer.writerows(table.rows)


def write_files_csv(records: Sequence[Record], path: Path) -> bool:
    """Write a line per transfer of samples that count or failed, and have them; return False, without a file, if none does."""
    lines = transfer_lines(records)
    if lines:
        write_transfers(lines, path)
    return bool(lines)


def transfer_lines(records: Sequence[Record]) -> list[Sequence[object]]:
    """The cells of each transfer, under FILE_COLUMNS."""
    return [
        [
            record.header.campaign,
            sample.run,
            sample.order,
            sample.system,
            work_of(sample),
            number,
            *one,
            one[3] - one[1],
        ]
        for record in records
        for sample in record.samples
        if not sample.superseded
        for number, one in enumerate(sample.files)
    ]


def write_transfers(lines: Sequence[Sequence[object]], path: Path) -> None:
    """Write the table of transfers."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(FILE_COLUMNS)
        writer.writerows(lines)


def write_parquet(records: Sequence[Record], path: Path) -> bool:
    """Write the table; return False if pyarrow is not installed."""
    try:
        arrow, parquet = importlib.import_module("pyarrow"), importlib.import_module("pyarrow.parquet")
    except ImportError:
        return False
    table = [{name: str(value) if name in _MIXED else value for name, value in row.items()} for row in rows(records)]
    parquet.write_table(arrow.Table.from_pylist(table), path)
    return True


_MIXED = ("factor_mode", "factor_site", "factor_format", "factor_cache", "factor_chunk", "factor_segment")


def _row(record: Record, sample: Sample) -> dict[str, Cell]:
    """A sample's row, with columns for its factors, pressures and members' costs."""
    environment = record.header.environment
    row: dict[str, Cell] = {
        "campaign": record.header.campaign,
        "commit": environment.get("commit"),
        "date": environment.get("date"),
    }
    row |= {name: value for name, value in asdict(sample).items() if name not in _NESTED}
    row |= {f"factor_{name}": value for name, value in sample.factors.items()}
    row |= {f"pressure_{name}": value for name, value in sample.pressure.items()}
    for member, spent in sample.members.items():
        row |= {f"{member}_{name}": value for name, value in spent.items()}
    return row
