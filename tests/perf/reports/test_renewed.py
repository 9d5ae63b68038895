"""The published report renewed campaign by campaign, without the records of the others."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

from perf.__main__ import main
from perf.records.beside import Gap
from perf.records.record import Record, RecordError
from perf.reports.page import section
from perf.reports.published import publish
from perf.reports.published_rows import BIG, GRIDS, PEER, ROWS, Row
from perf.reports.renewed import renew
from tests.perf.published import FIVE, PLACES, samples_of, small_record, write
from tests.perf.samples import HEADER, sample

NAMES = ("measured.html", "samples.csv", "files.csv", "speed.png", "README.md", "quoted.md")
TRANSFERS = ((1000, 0.0, 0.25, 0.5, ""), (2000, 0.125, 0.5, 1.0, "OSError: <no, room>"))
OLDER: dict[str, Any] = {"commit": "1" * 40, "date": "2026-01-02T00:00:00Z"}


@pytest.fixture(autouse=True)
def unplotted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sections without plots, which take long and are never equal twice."""
    monkeypatch.setattr("perf.reports.page.picture", lambda record, _=None: f"<p>{record.header.campaign}, drawn</p>")


def with_transfers(made: Record) -> Record:
    """The record with further samples: one of two transfers, one that failed, and one with an odd process and factors."""
    moved = evolve(made.samples[0], order=7, files=TRANSFERS, scenario="copy", factors={"warm": "007", "part": 0.5})
    failed = evolve(made.samples[0], order=8, seconds=None, error="OSError: <no room>\r\nleft")
    members: dict[str, dict[str, float | None]] = {
        "client": {"user_s": 0.1, "bytes_in": None},
        "gateway": {"user_s": None},
    }
    spent = evolve(made.samples[0], order=9, members=members, pressure={"io": 0.25}, factors={"cold": True})
    return evolve(made, samples=(*made.samples, moved, failed, spent))


def three() -> list[Record]:
    """What is published first. The middle one was measured in two environments at another time, beside a load."""
    trees = small_record(*FIVE[2:], campaign="trees", load=0.25, modified=True, tahoe="tahoe-lafs/1.20.0", **OLDER)
    many = [Row(label="", scenario="get", factors={"size": BIG, "k": k, "n": k, "site": "a, b"}) for k in (3, 60)]
    plan = {"purpose": "read time & k, <all> of them"}
    needed = small_record(*many, campaign="atlas-k")
    return [
        small_record(*FIVE[:2], ROWS[2]),
        with_transfers(trees),
        evolve(needed, header=evolve(needed.header, plan=plan), gaps=(Gap(system=PEER, work="", reason="none"),)),
    ]


def publish_in(folder: Path, records: list[Record]) -> dict[str, bytes]:
    """Publish all of them in a new folder."""
    folder.mkdir()
    (folder / "README.md").write_text(PLACES.format("measured"))
    (folder / "quoted.md").write_text(PLACES.format("five numbers") + PLACES.format("needed shares"))
    publish(records, folder, folder / "quoted.md")
    return contents(folder)


def contents(folder: Path) -> dict[str, bytes]:
    return {name: (folder / name).read_bytes() for name in NAMES if (folder / name).exists()}


def sections(page: bytes) -> list[str]:
    """What the page has before its sections, and each of these."""
    return re.split(r'\n(?=<h2 id="campaign-|</main>)', page.decode())


def change(path: Path, old: str, new: str, count: int = 1) -> None:
    text = path.read_bytes().decode()
    assert text.count(old) >= 1
    path.write_bytes(text.replace(old, new, count).encode())


def test_report_renewed_with_no_record_stays_byte_for_byte(tmp_path: Path) -> None:
    before = publish_in(tmp_path / "made", three())
    assert before.keys() == set(NAMES)
    assert b"OSError: &lt;no room&gt;\r\nleft" in before["measured.html"]
    assert main(["report", "--renew", str(tmp_path / "made"), "--quote", str(tmp_path / "made" / "quoted.md")]) == 0
    assert contents(tmp_path / "made") == before


@pytest.mark.parametrize("place", range(3))
def test_renewed_campaign_makes_what_all_records_at_once_would(place: int, tmp_path: Path) -> None:
    old = three()
    dated = {**old[place].header.environment, "date": "2026-02-03T04:05:06Z"}
    again = evolve(
        old[place],
        header=evolve(old[place].header, environment=dated),
        samples=tuple(evolve(one, seconds=0.75) if one.system == PEER else one for one in old[place].samples),
    )
    new = [*old[:place], again, *old[place + 1 :]]
    before = publish_in(tmp_path / "made", old)
    wanted = publish_in(tmp_path / "wanted", new)
    write(tmp_path / "again.jsonl", again)
    words = ["--renew", str(tmp_path / "made"), "--quote", str(tmp_path / "made" / "quoted.md")]
    assert main(["report", *words, str(tmp_path / "again.jsonl")]) == 0
    made = contents(tmp_path / "made")
    assert made == wanted
    assert made["README.md"] != before["README.md"]
    pages = [sections(each["measured.html"])[1:] for each in (before, made)]
    kept = [one == other for one, other in zip(*pages, strict=True)]
    assert kept == [*(place != number for number in range(3)), True]


def test_new_campaigns_come_after_all_others(tmp_path: Path) -> None:
    added = [small_record(ROWS[4], campaign="ranges", **OLDER), small_record(ROWS[6], campaign="small.files")]
    before = publish_in(tmp_path / "made", three())
    wanted = publish_in(tmp_path / "wanted", [*three(), *added])
    written = renew(added, tmp_path / "made", tmp_path / "made" / "quoted.md")
    assert {path.name for path in written} == set(NAMES)
    assert contents(tmp_path / "made") == wanted
    assert sections(wanted["measured.html"])[1:4] == sections(before["measured.html"])[1:4]
    assert "| ranges | 2026-01-02T00:00:00Z | 1111111111 |  | 2 |" in wanted["README.md"].decode()


def test_columns_of_a_replaced_campaign_go_with_it(tmp_path: Path) -> None:
    old = three()
    publish_in(tmp_path / "made", old)
    trees = evolve(old[1], samples=old[1].samples[:-3])
    wanted = publish_in(tmp_path / "wanted", [old[0], trees, old[2]])
    renew([trees], tmp_path / "made", tmp_path / "made" / "quoted.md")
    made = contents(tmp_path / "made")
    assert made == wanted
    assert b"gateway_user_s" not in made["samples.csv"]
    assert "files.csv" not in made


def test_sentence_about_needed_shares_stays_without_their_record(tmp_path: Path) -> None:
    old = three()
    before = publish_in(tmp_path / "made", old)
    assert b"(campaign `atlas-k`, 2026-01-01, commit 0000000000, 2 runs)" in before["quoted.md"]
    renew([old[0]], tmp_path / "made", tmp_path / "made" / "quoted.md")
    assert contents(tmp_path / "made") == before


def of_three_runs(campaign: str, ratio: float) -> Record:
    """A record with intervals. Its samples are in another order than its systems."""
    made = small_record(FIVE[0], campaign=campaign)
    samples = [
        evolve(one, run=run, seconds=(1 + run / 1000) * (ratio if one.system == PEER else 1))
        for run in range(3)
        for one in reversed(list(samples_of(FIVE[0], 1))[:3])
    ]
    return evolve(made, samples=tuple(samples))


def test_campaigns_that_disagree_are_named_when_renewed_and_only_then(tmp_path: Path) -> None:
    alike, unlike = of_three_runs("modify", 2), of_three_runs("modify", 5)
    first = [small_record(*FIVE), of_three_runs("repair", 2), alike]
    before = publish_in(tmp_path / "made", first)
    wanted = publish_in(tmp_path / "wanted", [*first[:2], unlike])
    renew([unlike], tmp_path / "made", None)
    page = contents(tmp_path / "made")["measured.html"]
    assert page == wanted["measured.html"]
    assert page.count(b"They disagree") == 2
    assert b"grid@http against tahoe@foolscap: repair says 2 [2, 2], modify says 5 [5, 5]" in page
    renew([], tmp_path / "made", None)
    assert contents(tmp_path / "made")["measured.html"] == page
    renew([alike], tmp_path / "made", None)
    assert contents(tmp_path / "made")["measured.html"] == before["measured.html"]
    change(
        tmp_path / "made" / "measured.html",
        "<h2>Targets</h2>",
        '<h2 class="worse">Campaigns that disagree</h2><h2>Targets</h2>',
    )
    with pytest.raises(RecordError, match=r"measured\.html names other campaigns that disagree"):
        renew([], tmp_path / "made", None)


def with_the_peer_first(made: Record) -> Record:
    return evolve(made, header=evolve(made.header, systems=(PEER, *GRIDS)))


def test_campaigns_with_grid_after_others_are_read_as_they_were_written(tmp_path: Path) -> None:
    first = [small_record(*FIVE), with_the_peer_first(of_three_runs("repair", 2)), of_three_runs("modify", 5)]
    before = publish_in(tmp_path / "made", first)
    page = before["measured.html"]
    assert page.count(b"grid@http against tahoe@foolscap: repair says 2 [2, 2], modify says 5 [5, 5]") == 1
    renew([], tmp_path / "made", tmp_path / "made" / "quoted.md")
    assert contents(tmp_path / "made") == before
    wanted = publish_in(tmp_path / "wanted", [first[0], first[1], with_the_peer_first(of_three_runs("modify", 3))])
    renew([with_the_peer_first(of_three_runs("modify", 3))], tmp_path / "made", tmp_path / "made" / "quoted.md")
    assert contents(tmp_path / "made") == wanted


def test_section_in_the_form_of_before_is_kept(tmp_path: Path) -> None:
    """It compares with the first system, and has no folded tables; the list of campaigns is made anew."""
    publish_in(tmp_path / "made", [small_record(*FIVE), with_the_peer_first(of_three_runs("repair", 2))])
    page = tmp_path / "made" / "measured.html"
    parts = sections(page.read_bytes())
    older = section(with_the_peer_first(of_three_runs("repair", 2)), PEER).replace(
        "<details><summary>Seconds of each file</summary>", "<h3>Seconds of each file</h3>\n"
    )
    assert "<li>tahoe@foolscap has " in older
    assert "<h3>Seconds of each file</h3>" in older
    old_head = re.sub(r'<p class="soft">A campaign .*?</p>\n', "", parts[0]).replace(" (2026-01-01):", ":")
    page.write_text(
        "\n".join([old_head, parts[1], older.replace("</table></div></details>", "</table></div>"), parts[3]])
    )
    renew([], tmp_path / "made", tmp_path / "made" / "quoted.md")
    again = sections(page.read_bytes())
    assert (again[0], again[1], again[3]) == (parts[0], parts[1], parts[3])
    assert "<li>tahoe@foolscap has " in again[2]


def test_times_beside_other_programs_are_kept_without_their_record(tmp_path: Path) -> None:
    names = ("rclone@versitygw", "grid@http/gateway")
    samples = [
        evolve(
            sample(name, seconds=1.5 + place), client="", order=place, factors={"size": 10**6, "count": 100}, count=100
        )
        for place, name in enumerate(names)
    ]
    sets = Record(evolve(HEADER, campaign="size-count", systems=names), tuple(samples))
    before = publish_in(tmp_path / "made", [*three(), sets])
    assert b"| put 100 files of 1 MB, s | 2.5 | 1.5 |" in before["README.md"]
    renew([three()[0]], tmp_path / "made", tmp_path / "made" / "quoted.md")
    assert contents(tmp_path / "made") == before


def test_campaigns_whose_names_look_alike_keep_their_places(tmp_path: Path) -> None:
    alike = [*three(), small_record(ROWS[4], campaign="a.b"), small_record(ROWS[4], campaign="a-b")]
    before = publish_in(tmp_path / "made", alike)
    assert b'<h2 id="campaign-a-b-2">a-b</h2>' in before["measured.html"]
    renew([alike[4]], tmp_path / "made", tmp_path / "made" / "quoted.md")
    assert contents(tmp_path / "made") == before


def test_campaign_without_samples_stays_on_the_page(tmp_path: Path) -> None:
    empty = evolve(small_record(campaign="doors"), gaps=(Gap(system="grid@http", work="", reason="no door"),))
    before = publish_in(tmp_path / "made", [*three(), empty])
    assert b"| doors | 2026-01-01T00:00:00Z | 0000000000 |  | 0 |" in before["README.md"]
    renew([], tmp_path / "made", tmp_path / "made" / "quoted.md")
    assert contents(tmp_path / "made") == before


def test_table_of_transfers_that_was_left_out_stays_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "made"
    publish_in(folder, three())
    monkeypatch.setattr("perf.reports.published.FILES_AT_MOST", 10)
    renew([], folder, None)
    assert "; a line per transfer (2 lines, 0.0 MB) is left out: `perf report" in (folder / "README.md").read_text()
    assert not (folder / "files.csv").exists()
    monkeypatch.undo()
    renew([], folder, None)
    assert (
        "; a line per transfer is left out: `perf report --output` writes it.\n" in (folder / "README.md").read_text()
    )
    assert not (folder / "files.csv").exists()


def cut_transfers(folder: Path) -> None:
    (folder / "files.csv").unlink()


def spoil_page(folder: Path) -> None:
    (folder / "measured.html").write_bytes(b"\xff")


def drop_section(folder: Path) -> None:
    parts = sections((folder / "measured.html").read_bytes())
    (folder / "measured.html").write_text("\n".join([*parts[:2], *parts[3:]]))


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda folder: change(folder / "samples.csv", ",0.5,", ",half,"), r"samples\.csv: line 2: seconds is not a number"),
        (lambda folder: change(folder / "samples.csv", "0000,2026-01-01", "0000,2026-01-02", 99), r"samples\.csv has put-get of 2026-01-02"),
        (lambda folder: change(folder / "samples.csv", "0.5,0.01", "0.25,0.01", 8), r"says of its targets: .* Its samples say: "),
        (lambda folder: change(folder / "README.md", "| 2 |\n| trees", "| 3 |\n| trees"), r"README\.md says of put-get: .* \| 3; .* say: .* \| 2$"),
        (lambda folder: change(folder / "README.md", "Of the targets (`perf.reports.target_rows`), ", ""), "says of its targets: nothing"),
        (lambda folder: change(folder / "README.md", "| trees | 2026", "| tree | 2026"), r"README\.md has tree, of which"),
        (lambda folder: change(folder / "README.md", "| campaign | begun |", "| campaign |"), r"README\.md does not have one table"),
        (lambda folder: change(folder / "measured.html", "nice unknown", "nasty"), r"measured\.html: the environment of put-get: "),
        (lambda folder: change(folder / "measured.html", "<h2>Targets</h2><p>", "<h2>Targets</h2><p>1"), "says of its targets: "),
        (drop_section, r"README\.md has trees, of which measured\.html has no section"),
        (cut_transfers, r"files\.csv is missing: there is nothing to renew\. --publish makes it"),
        (spoil_page, r"measured\.html is not a text in UTF-8"),
    ],
)  # fmt: skip
def test_report_whose_files_are_damaged_is_left_as_it_is(
    damage: Callable[[Path], None], message: str, tmp_path: Path
) -> None:
    publish_in(tmp_path / "made", three())
    damage(tmp_path / "made")
    before = contents(tmp_path / "made")
    with pytest.raises(RecordError, match=message):
        renew([three()[0]], tmp_path / "made", tmp_path / "made" / "quoted.md")
    assert contents(tmp_path / "made") == before


def test_counts_that_targets_no_longer_give_are_renewed_by_force(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = publish_in(tmp_path / "made", three())
    for name in ("README.md", "measured.html"):
        change(tmp_path / "made" / name, "measured rows are met", "measured rows were met")
    words = ["report", "--renew", str(tmp_path / "made")]
    assert main(words) == 1
    assert "--force renews it all the same, if targets have changed since it was published" in capsys.readouterr().err
    assert main([*words, "--force"]) == 0
    assert contents(tmp_path / "made") == before


def test_two_records_of_a_campaign_are_refused(tmp_path: Path) -> None:
    old = three()
    before = publish_in(tmp_path / "made", old)
    with pytest.raises(RecordError, match="several of these records are of campaign put-get"):
        renew([old[0], old[0]], tmp_path / "made", None)
    assert contents(tmp_path / "made") == before
    publish_in(tmp_path / "twice", [*old, old[0]])
    with pytest.raises(RecordError, match="several sections of put-get, whose samples nothing separates"):
        renew([old[1]], tmp_path / "twice", None)


def test_folder_without_a_report_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match=r"measured\.html is missing: .* --publish makes it from all records"):
        renew(three(), tmp_path, None)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--renew", "a", "--publish", "b", "c"], "--publish: not allowed with argument --renew"),
        (["--publish", "b"], "the following arguments are required: records"),
        ([], "the following arguments are required: records"),
    ],
)
def test_wrong_usage_says_what_is_wrong(words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["report", *words])
    assert message in capsys.readouterr().err


def test_five_numbers_are_of_old_and_new_campaigns(tmp_path: Path) -> None:
    publish_in(tmp_path / "made", three())
    renew([small_record(*FIVE[:2], ROWS[2], seconds=0.25)], tmp_path / "made", tmp_path / "made" / "quoted.md")
    quoted = (tmp_path / "made" / "quoted.md").read_text()
    assert "| get 100 MB | 400 MB/s | 200 MB/s |" in quoted
    assert "Measured on 2026-01-01 and 2026-01-02 at commit 0000000000 and 1111111111 with" in quoted
