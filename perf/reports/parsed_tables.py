"""Reads the published tables of samples and of transfers back. Pure: lines in, samples out.

A cell is trusted only after it was parsed. RecordError names the file and the line of one that cannot be.
"""

from __future__ import annotations

import csv
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, get_args, get_type_hints

from attrs import evolve, field, frozen

from perf.records.record import Factor, RecordError, Sample
from perf.records.work import work_of
from perf.reports.samples_table import FIELDS, FILE_COLUMNS, ORIGIN, Table

FACTOR, PRESSURE = "factor_", "pressure_"
"""How the columns of factors and of pressures begin. Other columns are of processes; only a campaign's own section needs them."""

NEWER = ("superseded",)
"""Columns of plain fields that older tables lack; what they say if empty is no."""

TOO_LARGE = 2**63
"""No number of a sample is as large."""


@frozen(kw_only=True)
class PublishedSamples:
    """A campaign in the table of samples. table: its rows and columns as they are written. transfers: lines, as well."""

    commit: str
    date: str
    table: Table
    samples: Sequence[Sample]
    transfers: Sequence[Sequence[str]] = field(factory=tuple)


@frozen(kw_only=True)
class _Row:
    """A line of the table of samples. cells: those that are not empty, and all that every row has."""

    line: int
    cells: Mapping[str, str]
    sample: Sample


def parse_samples(lines: Iterable[str], path: Path) -> dict[str, PublishedSamples]:
    """The campaigns in the table of samples. lines: with their line ends. path: named in errors."""
    table = _lines(lines, path)
    _, columns = next(table, (1, []))
    missing = [name for name in (*ORIGIN, *FIELDS) if name not in columns and name not in NEWER]
    if (columns != ["campaign"] or any(table)) and (missing or len(set(columns)) != len(columns)):
        what = f"has no column {missing[0]}" if missing else "has two columns of the same name"
        raise RecordError(f"{path}: line 1 is not the head of a table of samples: it {what}")
    found: dict[str, list[_Row]] = {}
    for line, cells in table:
        row = _parse_row(columns, cells, path, line)
        found.setdefault(row.cells["campaign"], []).append(row)
    for rows in found.values():
        _expect_alike(rows, path)
    used = _columns_used(columns, found)
    return {
        name: PublishedSamples(
            commit=rows[0].cells["commit"],
            date=rows[0].cells["date"],
            table=Table([column for column in columns if column in used[name]], [row.cells for row in rows]),
            samples=[row.sample for row in rows],
        )
        for name, rows in found.items()
    }


def parse_transfers(
    lines: Iterable[str], path: Path, known: Mapping[str, PublishedSamples]
) -> dict[str, PublishedSamples]:
    """The campaigns with the transfers of their samples."""
    table = _lines(lines, path)
    if next(table, (1, []))[1] != list(FILE_COLUMNS):
        raise RecordError(f"{path}: line 1 is not the head of a table of transfers")
    written: dict[str, list[list[str]]] = {name: [] for name in known}
    files: dict[tuple[str, ...], list[list[Any]]] = {}
    places = Counter(_place(name, one) for name, mine in known.items() for one in mine.samples)
    for line, cells in table:
        place = tuple(cells[:4])
        if len(cells) != len(FILE_COLUMNS) or places[place] != 1:
            raise RecordError(f"{path}: line {line} is not of one sample in the table of samples")
        files.setdefault(place, []).append(_transfer(cells, path, line))
        written[cells[0]].append(cells)
    return {
        name: evolve(
            mine,
            samples=[evolve(one, files=tuple(files.get(_place(name, one), ()))) for one in mine.samples],
            transfers=written[name],
        )
        for name, mine in known.items()
    }


def _place(campaign: str, sample: Sample) -> tuple[str, ...]:
    """A sample's cells in the lines of its transfers."""
    return campaign, str(sample.run), str(sample.order), sample.system


def _transfer(cells: Sequence[str], path: Path, line: int) -> list[Any]:
    """A transfer as its sample has it."""
    named = dict(zip(FILE_COLUMNS, cells, strict=True))
    times = [_number(named[name], path, line, name) for name in ("due_s", "started_s", "ended_s")]
    return [_integer(named["bytes"], path, line, "bytes"), *times, named["error"]]


def _lines(lines: Iterable[str], path: Path) -> Iterator[tuple[int, list[str]]]:
    """Each row's cells, and the line on which it ends."""
    reader = csv.reader(lines, strict=True)
    try:
        for cells in reader:
            yield reader.line_num, cells
    except csv.Error as error:
        raise RecordError(f"{path}: line {reader.line_num}: {error}") from None


def _parse_row(columns: Sequence[str], cells: Sequence[str], path: Path, line: int) -> _Row:
    if len(cells) != len(columns):
        raise RecordError(f"{path}: line {line} has {len(cells)} cells instead of {len(columns)}")
    named = dict(zip(columns, cells, strict=True))
    given = {name: text for name, text in named.items() if text or name in ORIGIN or name in FIELDS}
    values: dict[str, Any] = {name: _value(name, named[name], path, line) for name in FIELDS if name in named}
    if values["seconds"] is not None and values["seconds"] <= 0:
        raise RecordError(f"{path}: line {line}: seconds of {named['seconds']}")
    sample = Sample(
        **values,
        factors={name.removeprefix(FACTOR): _factor(text) for name, text in given.items() if name.startswith(FACTOR)},
        pressure={
            name.removeprefix(PRESSURE): _number(text, path, line, name)
            for name, text in given.items()
            if name.startswith(PRESSURE)
        },
    )
    return _Row(line=line, cells=given, sample=sample)


def _columns_used(columns: Sequence[str], found: Mapping[str, Sequence[_Row]]) -> dict[str, set[str]]:
    """The columns of each campaign. One that is empty everywhere goes with the column before it."""
    used = {name: {column for row in rows for column in row.cells} for name, rows in found.items()}
    owner = next(iter(found), "")
    for column in columns:
        having = [name for name, mine in used.items() if column in mine]
        owner = having[0] if having else owner
        if owner:
            used[owner].add(column)
    return used


def _expect_alike(rows: Sequence[_Row], path: Path) -> None:
    """RecordError if rows cannot be of one record."""
    first = rows[0]
    kinds: dict[tuple[str, ...], tuple[list[type], int]] = {}
    for row in rows:
        if any(row.cells[name] != first.cells[name] for name in ORIGIN):
            raise RecordError(f"{path}: line {row.line} is of another commit or date than line {first.line}")
        # Work is sorted, and a number cannot be sorted beside a word.
        factors = dict(work_of(row.sample).factors)
        kind = [type(value) for value in factors.values()]
        known, line = kinds.setdefault((row.sample.scenario, row.sample.client, *factors), (kind, row.line))
        if known != kind:
            raise RecordError(f"{path}: line {row.line} has a word where line {line} has a number, or the reverse")


_KINDS = {name: get_args(hint) or (hint,) for name, hint in get_type_hints(Sample).items() if name in FIELDS}
"""The types of each plain field; those with a second one may be None."""

_TRUTHS = {"True": True, "False": False}


def _value(name: str, text: str, path: Path, line: int) -> Factor | None:
    """The value of a plain field."""
    kind, *others = _KINDS[name]
    if not text and others:
        return None
    if not text and name in NEWER:
        return False
    if kind is bool and text not in _TRUTHS:
        raise RecordError(f"{path}: line {line}: {name} is neither True nor False")
    if kind is bool:
        return _TRUTHS[text]
    if kind is int:
        return _integer(text, path, line, name)
    return _number(text, path, line, name) if kind is float else text


def _integer(text: str, path: Path, line: int, name: str) -> int:
    # Some counts are sums that a record keeps with a point.
    number = _number(text, path, line, name)
    if not number.is_integer() or not 0 <= number < TOO_LARGE:
        raise RecordError(f"{path}: line {line}: {name} is not a count")
    return int(text) if text.isdecimal() else int(number)


def _number(text: str, path: Path, line: int, name: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not abs(number) < TOO_LARGE:
        raise RecordError(f"{path}: line {line}: {name} is not a number")
    return number


def _factor(text: str) -> Factor:
    """A factor as its record has it, if its text can only be of a number or a truth; else the text."""
    if text in _TRUTHS:
        return _TRUTHS[text]
    for kind in (int, float):
        try:
            value = kind(text)
        except ValueError:
            continue
        if str(value) == text and abs(value) < TOO_LARGE:
            return value
    return text
