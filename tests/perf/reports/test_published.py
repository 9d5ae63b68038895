"""The project's published report, made from records by one command."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from attrs import evolve

from perf.__main__ import main
from perf.records.record import Header, Record, RecordWriter, Sample
from perf.records.work import work_of
from perf.reports.published import GRIDS, PEER, ROWS, Row
from tests.perf.samples import HEADER, sample

PLACES = "# Title\n\nBefore.\n\n<!-- {0} -->\nold\n<!-- end of {0} -->\n\nAfter.\n"


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


def small_record(*rows: Row) -> Record:
    header = evolve(HEADER, systems=(*GRIDS, PEER))
    return Record(header, tuple(one for row in rows for one in samples_of(row, 0.5)))


def write(path: Path, record: Record) -> None:
    header = Header(
        campaign=record.header.campaign, seed=1, environment=record.header.environment, systems=record.header.systems
    )
    with RecordWriter(path, header) as writer:
        for one in record.samples:
            writer.write(one)


def test_folder_of_records_becomes_the_page_the_table_the_plot_and_five_numbers(tmp_path: Path) -> None:
    records, folder, readme = tmp_path / "records", tmp_path / "docs" / "performance", tmp_path / "README.md"
    records.mkdir()
    folder.mkdir(parents=True)
    write(records / "one.jsonl", small_record(*ROWS[:5]))
    write(records / "two.jsonl", small_record(*(row for row in ROWS[5:] if row.is_quoted)))
    (folder / "README.md").write_text(PLACES.format("measured"))
    readme.write_text(PLACES.format("five numbers"))
    assert main(["report", str(records), "--publish", str(folder), "--quote", str(readme)]) == 0
    section, quoted = (folder / "README.md").read_text(), readme.read_text()
    for text in (section, quoted):
        assert text.startswith("# Title\n\nBefore.\n")
        assert text.endswith("\nAfter.\n")
        assert "\nold\n" not in text
    assert "| get 100 MB | 200 MB/s | 200 MB/s | 100 MB/s | 2.00 [2, 2] | 2.00 [2, 2] |" in section
    assert sum(line.startswith("| ") for line in section.splitlines()) == 9
    assert "| get 100 MB | 200 MB/s | 100 MB/s |" in quoted
    assert sum(line.startswith("| ") for line in quoted.splitlines()) == 6
    assert "](docs/performance/speed.png)" in quoted
    assert (folder / "speed.png").read_bytes().startswith(b"\x89PNG")
    assert "<svg" in (folder / "measured.html").read_text()
    assert len((folder / "samples.csv").read_text().splitlines()) == 1 + 6 * 8


def test_records_without_one_of_the_five_numbers_change_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path / "one.jsonl", small_record(*(row for row in ROWS if row.scenario != "list")))
    assert main(["report", str(tmp_path / "one.jsonl"), "--publish", str(tmp_path / "made")]) == 1
    assert "lack what the README quotes: list 1,000 children" in capsys.readouterr().err
    assert not (tmp_path / "made").exists()


def test_document_without_a_place_is_left_as_it_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    readme = tmp_path / "README.md"
    readme.write_text("# Title\n")
    write(tmp_path / "one.jsonl", small_record(*ROWS))
    words = ["--publish", str(tmp_path / "made"), "--quote", str(readme)]
    assert main(["report", str(tmp_path / "one.jsonl"), *words]) == 1
    assert "write <!-- five numbers --> and <!-- end of five numbers -->" in capsys.readouterr().err
    assert readme.read_text() == "# Title\n"
    assert not (tmp_path / "made").exists()


def test_folder_without_records_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(tmp_path)]) == 1
    assert "there is no record" in capsys.readouterr().err


def test_row_is_of_warm_clients_on_this_machine_as_it_is_alone() -> None:
    row = ROWS[0]
    own = next(samples_of(row, 0.5))
    assert row.fits(work_of(own))
    for changed in (
        evolve(own, factors={**own.factors, "site": "wan30"}),
        evolve(own, factors={**own.factors, "segment": 131072}),
        evolve(own, factors={**own.factors, "k": 60}),
        evolve(own, client="gateway"),
        evolve(own, scenario="put"),
    ):
        assert not row.fits(work_of(changed))
