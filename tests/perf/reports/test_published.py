"""The project's published report, made from records by one command."""

from __future__ import annotations

from pathlib import Path

import pytest
from attrs import evolve

from perf.__main__ import main
from perf.records.work import work_of
from perf.reports.published import publish
from perf.reports.published_rows import BIG, ROWS, Row
from tests.perf.published import FIVE, PLACES, samples_of, small_record, write


def test_folder_of_records_becomes_the_page_the_table_the_plot_and_five_numbers(tmp_path: Path) -> None:
    records, folder, readme = tmp_path / "records", tmp_path / "docs" / "performance", tmp_path / "README.md"
    records.mkdir()
    folder.mkdir(parents=True)
    write(records / "one.jsonl", small_record(*ROWS[:5]))
    others = [row for row in ROWS[5:] if row.is_quoted]
    write(records / "two.jsonl", small_record(*others, campaign="trees", commit="1" * 40, date="2026-01-02T00:00:00Z"))
    (folder / "README.md").write_text(PLACES.format("measured"))
    readme.write_text(PLACES.format("five numbers"))
    assert main(["report", str(records), "--publish", str(folder), "--quote", str(readme)]) == 0
    section, quoted = (folder / "README.md").read_text(), readme.read_text()
    for text in (section, quoted):
        assert text.startswith("# Title\n\nBefore.\n")
        assert text.endswith("\nAfter.\n")
        assert "\nold\n" not in text
    assert "| get 100 MB | 200 MB/s | 200 MB/s | 100 MB/s | 2.00 (2-2) | 2.00 (2-2) | put-get |" in section
    assert "2.00 (2-2) | trees |" in section
    assert "| put-get | 2026-01-01T00:00:00Z | 0000000000 |  | 2 |" in section
    assert "| trees | 2026-01-02T00:00:00Z | 1111111111 |  | 2 |" in section
    assert "\n| CHK get, 100 MB | tahoe@foolscap | 3x | 2 (2 to 2), 2 runs | missed by 33% (2 runs) |" in section
    assert "Measured on 2026-01-01 and 2026-01-02 at commit 0000000000 and 1111111111 with" in quoted
    assert "| get 100 MB | 200 MB/s | 100 MB/s |" in quoted
    assert sum(line.startswith("| ") for line in quoted.splitlines()) == 7
    assert "](docs/performance/speed.png)" in quoted
    assert (folder / "speed.png").read_bytes().startswith(b"\x89PNG")
    assert "<svg" in (folder / "measured.html").read_text()
    assert not (folder / "files.csv").exists()
    assert len((folder / "samples.csv").read_text().splitlines()) == 1 + 6 * 8


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Publish the texts and tables alone."""
    monkeypatch.setattr("perf.reports.published.page", lambda _: "")
    monkeypatch.setattr("perf.reports.published.draw", lambda *_: None)


@pytest.mark.usefixtures("undrawn")
def test_table_of_transfers_is_published_unless_it_is_too_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = small_record(*FIVE)
    moved = evolve(made.samples[0], files=((1000, 0.0, 0.0, 0.5, ""), (2000, 0.0, 0.5, 1.0, "")))
    (tmp_path / "README.md").write_text(PLACES.format("measured"))
    records = [evolve(made, samples=(*made.samples, moved))]
    assert tmp_path / "files.csv" in publish(records, tmp_path, None)
    assert len((tmp_path / "files.csv").read_text().splitlines()) == 3
    assert "](files.csv)" in (tmp_path / "README.md").read_text()
    monkeypatch.setattr("perf.reports.published.FILES_AT_MOST", 10)
    publish(records, tmp_path, None)
    assert not (tmp_path / "files.csv").exists()
    assert "a line per transfer (2 lines, 0.0 MB) is left out" in (tmp_path / "README.md").read_text()


@pytest.mark.usefixtures("undrawn")
def test_sentence_about_needed_shares_is_from_the_record_of_that_campaign(tmp_path: Path) -> None:
    readme = tmp_path / "README.md"
    readme.write_text(PLACES.format("five numbers") + PLACES.format("needed shares"))
    many = [Row(label="", scenario="get", factors={"size": BIG, "k": k, "n": k, "site": "atlas"}) for k in (3, 60)]
    folder = tmp_path / "made"
    records = [small_record(*FIVE), small_record(many[0], campaign="atlas-k")]
    publish(records, folder, readme)
    assert "\nold\n" in readme.read_text()
    publish([*records, small_record(*many, campaign="atlas-k", commit="2" * 40)], folder, readme)
    assert (
        "at 200 MB/s if the file needs all 3 of 3 shares, and at 200 MB/s if it needs all 60 of 60."
        in readme.read_text()
    )
    assert "(campaign `atlas-k`, 2026-01-01, commit 2222222222, 2 runs)." in readme.read_text()


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
