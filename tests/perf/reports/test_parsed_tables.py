"""The published tables of samples and transfers, read back."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path

import pytest
from attrs import evolve

from perf.records.record import Record, RecordError, Sample
from perf.reports.parsed_tables import PublishedSamples, parse_samples, parse_transfers
from perf.reports.samples_table import joined, table_of, transfer_lines, write_table, write_transfers
from tests.perf.samples import HEADER, record, sample

PATH = Path("samples.csv")
SPENT: dict[str, dict[str, float | None]] = {"server0": {"user_s": 0.5, "bytes_in": None}, "server": {"left": None}}
FULL = evolve(
    sample(),
    order=3,
    error='OSError: "no, room"\r\nleft',
    seconds=None,
    warmup=True,
    segments_out=12,
    codec="isal",
    load=1.25,
    key="0017",
    others_cpu_s=0.0,
    stored_bytes=2**40,
    factors={
        "k": 3,
        "site": "a, b",
        "warm": "007",
        "rate": 0.5,
        "cold": True,
        "big": 10**30,
        "exact": "1e5",
        "way": "nan",
    },
    pressure={"cpu": 0.5},
    members=SPENT,
    server_cpus_s=(),
    server_peaks_rss=(),
)


def written(*records: Record) -> str:
    """The table of samples as it is published."""
    file = io.StringIO(newline="")
    table = table_of(records)
    writer = csv.DictWriter(file, table.columns or ["campaign"])
    writer.writeheader()
    writer.writerows(table.rows)
    return file.getvalue()


def read(text: str) -> dict[str, PublishedSamples]:
    return parse_samples(io.StringIO(text, newline=""), PATH)


def named(name: str, *samples: Sample) -> Record:
    return Record(evolve(HEADER, campaign=name), samples)


def test_samples_when_read_are_those_that_were_written() -> None:
    found = read(written(named("one", FULL, sample("tahoe")), named("two", sample())))
    assert list(found) == ["one", "two"]
    one, other = found["one"].samples
    assert one == evolve(FULL, members={}, factors={**FULL.factors, "big": str(10**30)})
    assert [type(value) for value in one.factors.values()] == [int, str, str, float, bool, str, str, str]
    assert other.system == "tahoe"
    assert (found["two"].commit, found["two"].date) == ("0" * 40, "2026-01-01T00:00:00Z")


def test_tables_when_joined_again_are_what_was_read(tmp_path: Path) -> None:
    records = [
        named("one", sample(), FULL),
        named("two", evolve(sample(), factors={"k": 3, "way": "tar"}, pressure={"io": 1.0})),
    ]
    text = written(*records)
    found = read(text)
    write_table(joined([one.table for one in found.values()]), tmp_path / "again.csv")
    assert (tmp_path / "again.csv").read_bytes().decode() == text
    assert "server_left" in found["one"].table.columns
    assert "factor_site" not in found["two"].table.columns
    assert "pressure_io" not in found["one"].table.columns


def test_older_table_without_a_newer_column_is_read_and_joined(tmp_path: Path) -> None:
    table = list(csv.reader(io.StringIO(written(named("one", sample())), newline="")))
    column = table[0].index("superseded")
    file = io.StringIO(newline="")
    csv.writer(file).writerows([*row[:column], *row[column + 1 :]] for row in table)
    older, newer = read(file.getvalue())["one"], read(written(named("two", evolve(sample(), superseded=True))))["two"]
    write_table(joined([older.table, newer.table]), tmp_path / "joined.csv")
    found = read((tmp_path / "joined.csv").read_bytes().decode())
    assert [one.superseded for campaign in found.values() for one in campaign.samples] == [False, True]


def test_table_without_samples_has_no_campaigns() -> None:
    assert read(written()) == {}


def damaged(column: str, value: str, row: int = 1) -> str:
    """The table of three samples with another value in a cell."""
    rows = list(csv.reader(io.StringIO(written(record({"grid": [[0.5]], "tahoe": [[1.0], [2.0]]})), newline="")))
    rows[row][rows[0].index(column)] = value
    file = io.StringIO(newline="")
    csv.writer(file).writerows(rows)
    return file.getvalue()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1 is not the head of a table of samples: it has no column campaign"),
        ("campaign\r\none\r\n", "line 1 .*: it has no column commit"),
        (damaged("bytes_out", "requests", 0), "line 1 .*: it has no column bytes_out"),
        (damaged("factor_n", "factor_k", 0), "line 1 .*: it has two columns of the same name"),
        (damaged("size", "") + "\r\n", "line 2: size is not a number"),
        (damaged("size", "1.5", 2), "line 3: size is not a count"),
        (damaged("size", "-1", 2), "line 3: size is not a count"),
        (damaged("size", "9" * 5000), "line 2: size is not a number"),
        (damaged("run", "٣.٥"), "line 2: run is not a count"),
        (damaged("client_cpu_s", "nan"), "line 2: client_cpu_s is not a number"),
        (damaged("client_cpu_s", "1e400"), "line 2: client_cpu_s is not a number"),
        (damaged("unix_time", ""), "line 2: unix_time is not a number"),
        (damaged("seconds", "0.0"), "line 2: seconds of 0.0"),
        (damaged("seconds", "-0.5"), "line 2: seconds of -0.5"),
        (damaged("warmup", "yes", 3), "line 4: warmup is neither True nor False"),
        (damaged("factor_k", "three", 3), "line 4 has a word where line 2 has a number"),
        (damaged("commit", "1" * 40, 2), "line 3 is of another commit or date than line 2"),
        (damaged("date", "", 2), "line 3 is of another commit or date than line 2"),
        (written(record({"grid": [[0.5]]})).rstrip("\r\n") + ",7\r\n", "line 2 has 41 cells instead of 40"),
        (written(record({"grid": [[0.5]]})) + "\r\n", "line 3 has 0 cells instead of 40"),
        (damaged("system", "x" * 200_000), "line 2: field larger than field limit"),
        (written(record({"grid": [[0.5]]})) + '"put-get', "line 3: unexpected end of data"),
    ],
)  # fmt: skip
def test_damaged_table_is_refused_and_the_line_is_named(text: str, message: str) -> None:
    with pytest.raises(RecordError, match=rf"^samples\.csv: {message}"):
        read(text)


TRANSFERS = ((1000, 0.0, 0.25, 0.5, ""), (2000, 0.125, 0.5, 1.0, "OSError: no, room"))


def transfers(path: Path, records: Sequence[Record]) -> str:
    write_transfers(transfer_lines(records), path)
    return path.read_bytes().decode()


def test_transfers_when_read_are_those_of_their_samples(tmp_path: Path) -> None:
    moved = evolve(sample(), order=5, files=TRANSFERS)
    records = [named("one", sample(), moved), named("two", moved, sample())]
    text = transfers(tmp_path / "files.csv", records)
    known = read(written(*records))
    found = parse_transfers(io.StringIO(text, newline=""), tmp_path / "files.csv", known)
    assert [len(one.files) for mine in found.values() for one in mine.samples] == [0, 2, 2, 0]
    assert [tuple(one) for one in found["one"].samples[1].files] == list(TRANSFERS)
    write_transfers([line for mine in found.values() for line in mine.transfers], tmp_path / "again.csv")
    assert (tmp_path / "again.csv").read_bytes().decode() == text


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("campaign,run", "run,campaign", "line 1 is not the head of a table of transfers"),
        ("one,0,5,grid", "one,0,6,grid", "line 2 is not of one sample in the table of samples"),
        ("one,0,5,grid", "none,0,5,grid", "line 2 is not of one sample in the table of samples"),
        (",0.5\r\n", "\r\n", "line 2 is not of one sample"),
        (",2000,", ",many,", "line 3: bytes is not a number"),
        (",0.125,", ",,", "line 3: due_s is not a number"),
    ],
)
def test_damaged_transfers_are_refused_and_the_line_is_named(old: str, new: str, message: str, tmp_path: Path) -> None:
    records = [named("one", sample(), evolve(sample(), order=5, files=TRANSFERS))]
    text = transfers(tmp_path / "files.csv", records)
    assert old in text
    with pytest.raises(RecordError, match=rf"^files\.csv: {message}"):
        parse_transfers(io.StringIO(text.replace(old, new, 1), newline=""), Path("files.csv"), read(written(*records)))


def test_transfers_of_one_of_two_samples_of_the_same_place_are_refused(tmp_path: Path) -> None:
    records = [named("one", sample(), evolve(sample(), files=TRANSFERS))]
    text = transfers(tmp_path / "files.csv", records)
    with pytest.raises(RecordError, match="line 2 is not of one sample in the table of samples"):
        parse_transfers(io.StringIO(text, newline=""), Path("files.csv"), read(written(*records)))
