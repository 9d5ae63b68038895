"""The HTML page and the table of samples."""

from __future__ import annotations

import csv
import importlib
import importlib.util
import re
from html.parser import HTMLParser
from pathlib import Path

from attrs import evolve

from perf.records.beside import Gap, SiteFound, Timeline
from perf.records.record import Record
from perf.reports.page import page
from perf.reports.samples_table import rows, write_csv, write_parquet
from tests.perf.samples import record, sample

SERIES = {
    "at_ms": [0, 100, 200],
    "cpu_ms": {"client": [0, 50, 150], "server0": [0, 10, 20], "server1": [0, 10, 20]},
    "resident_kib": {"client": [1024] * 3, "server0": [2048] * 3, "server1": [1024] * 3},
}
WATCHED = evolve(
    sample(),
    order=7,
    series=SERIES,
    client_user_s=0.1,
    members={"client": {"user_s": 0.1, "bytes_in": None}},
    pressure={"cpu": 0.5},
)
CAPABILITIES = {
    "expansion": 3.33,
    "encrypts": "server",
    "proves": "every byte <now>",
    "syncs": True,
    "survives": 7,
    "versions": {"grid": "1"},
}


def everything() -> Record:
    made = record({"grid": [[0.5], [0.51], [0.5]], "tahoe": [[1.0], [1.1], [1.0]]})
    failed = evolve(sample(), seconds=None, error="OSError: <no room>", run=1, order=9)
    return evolve(
        made,
        header=evolve(made.header, environment={**made.header.environment, "capabilities": {"grid": CAPABILITIES}}),
        samples=(*made.samples, WATCHED, failed),
        timelines=(Timeline(run=0, order=7, median=0.1),),
        gaps=(Gap(system="rclone", work="", reason="it is not installed"),),
        sites=(SiteFound(run=0, site="wan30", found={"round_trip_ms": 30.1}),),
    )


class Checked(HTMLParser):
    """Counts tags, and resources that would be fetched from elsewhere."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.fetched: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in ("meta", "br"):
            self.open.append(tag)
        self.fetched += [value for name, value in attrs if name in ("src", "href", "xlink:href") and value]

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.fetched += [value for name, value in attrs if name in ("src", "href", "xlink:href") and value]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_page_stands_alone_and_says_everything() -> None:
    text = page([everything()])
    checked = Checked()
    checked.feed(text)
    assert checked.open == []
    assert all(link.startswith("#") for link in checked.fetched)
    assert len(re.findall("<svg", text)) == 2
    ids = re.findall(r'\bid="([^"]+)"', text)
    assert len(ids) == len(set(ids))
    assert "prefers-color-scheme: dark" in text
    assert 'name="viewport"' in text
    assert "#000000" not in text
    assert len(re.findall(r"<text[^>]*>[^<]*cores</text>", text)) == 1
    for said in (
        '<li class="better">put 100 MB',
        "OSError: &lt;no room&gt;",
        "rclone: it is not installed",
        "round_trip_ms",
        "every byte &lt;now&gt;",
        "3.33 bytes for each",
        "Over time: grid",
        "<summary>Outliers: 1</summary>",
        "<h2>Targets</h2><p>",
        "<td>CHK put, 100 MB, durability full</td>",
    ):
        assert said in text, said


def test_list_of_campaigns_says_how_to_read_them_and_when_each_was_measured() -> None:
    made = everything()
    undated = evolve(made, header=evolve(made.header, campaign="old", environment={}))
    head = page([made, undated]).partition("</nav>")[0]
    assert head.index("A ratio of speeds above 1 means") < head.index("<nav>")
    assert '<li><a href="#campaign-put-get">put-get</a> (2026-01-01): its record' in head
    assert '<li><a href="#campaign-old">old</a>: its record' in head


def test_records_of_one_campaign_have_places_of_their_own() -> None:
    made = [
        evolve(one, header=evolve(one.header, campaign=name))
        for one in [record({"grid": [[0.5]]})]
        for name in ("a-2", "a", "a.", "a", "a")
    ]
    text = page(made)
    places = ["campaign-a-2", "campaign-a", "campaign-a-", "campaign-a-3", "campaign-a-4"]
    assert re.findall('<h2 id="([^"]+)">', text) == places
    assert re.findall('<a href="#([^"]+)">', text) == places


def test_long_tables_open_on_demand() -> None:
    text = page([everything()])
    for title in ("Seconds of each file", "Processor seconds, mean"):
        assert f'<details><summary>{title}</summary><div class="scroll"' in text


def test_table_of_samples_has_every_sample_and_every_column(tmp_path: Path) -> None:
    made = everything()
    write_csv([made], tmp_path / "samples.csv")
    with (tmp_path / "samples.csv").open() as file:
        found = list(csv.DictReader(file))
    assert len(found) == len(made.samples)
    assert {row["error"] for row in found} == {"", "OSError: <no room>"}
    assert (found[6]["client_user_s"], found[6]["pressure_cpu"], found[0]["pressure_cpu"]) == ("0.1", "0.5", "")
    assert found[0]["factor_k"] == "3"
    assert all(list(row) == list(found[0]) for row in rows([made]))


def test_parquet_where_it_can_be_written_holds_what_the_table_holds(tmp_path: Path) -> None:
    path = tmp_path / "samples.parquet"
    assert write_parquet([everything()], path) == path.exists() == (importlib.util.find_spec("pyarrow") is not None)
    if path.exists():
        parquet = importlib.import_module("pyarrow.parquet")
        assert parquet.read_table(path).to_pylist() == rows([everything()])
