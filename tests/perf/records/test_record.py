"""Records: written and read back unchanged, and anything else is refused."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from attrs import evolve

from perf.records.beside import Gap, SlowTransfer, Timeline
from perf.records.record import WHOLE, Header, RecordError, RecordWriter, Resumed, Sample, read_record
from perf.runs.command import resumed_section
from tests.perf.samples import HEADER, sample


def write(path: Path, *samples: Sample, header: Header = HEADER) -> None:
    with RecordWriter(path, header) as writer:
        for one in samples:
            writer.write(one)


def test_record_when_read_back_is_what_was_written(tmp_path: Path) -> None:
    samples = (sample(), evolve(sample(), seconds=None, error="it broke\nbadly", server_peak_rss=None))
    write(tmp_path / "new" / "a.jsonl", *samples)
    record = read_record(tmp_path / "new" / "a.jsonl")
    assert record.header == HEADER
    assert record.samples == samples


def test_record_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    for name, reason in (
        ("none.jsonl", "No such file or directory"),
        (".", "Is a directory"),
        ("b.jsonl", "this is no text in UTF-8"),
    ):
        path = tmp_path / name
        (tmp_path / "b.jsonl").write_bytes(b"\xff")
        with pytest.raises(RecordError) as caught:
            read_record(path)
        assert str(caught.value).startswith(f"{path}: {reason}")


def test_record_that_exists_is_never_overwritten(tmp_path: Path) -> None:
    write(tmp_path / "a.jsonl", sample())
    with pytest.raises(FileExistsError):
        write(tmp_path / "a.jsonl")
    assert len(read_record(tmp_path / "a.jsonl").samples) == 1


def test_sample_is_in_the_file_before_the_next_is_taken(tmp_path: Path) -> None:
    with RecordWriter(tmp_path / "a.jsonl", HEADER) as writer:
        writer.write(sample())
        assert read_record(tmp_path / "a.jsonl").samples == (sample(),)


def test_record_cut_inside_its_last_line_loses_only_that(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    write(path, sample(), evolve(sample(), order=1))
    path.write_text(path.read_text()[:-20])
    assert read_record(path).samples == (sample(),)


def test_record_with_fields_of_a_later_harness_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    write(path, sample())
    head, line, _ = path.read_text().split("\n")
    path.write_text(f"{head}\n{json.dumps({**json.loads(line), 'messages': 7})}\n")
    assert read_record(path).samples == (sample(),)


@pytest.mark.parametrize(
    "text",
    ["", "\n", "no JSON\n", "[]\n", '{"record": 2}\n', '{"record": 1, "campaign": "x"}\n'],
    ids=["empty", "blank", "text", "list", "later version", "header cut"],
)
def test_file_that_is_not_a_record_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.jsonl").write_text(text)
    with pytest.raises(RecordError, match="line 1"):
        read_record(tmp_path / "a.jsonl")


def test_record_with_a_bad_line_is_refused_by_number(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    write(path, sample())
    path.write_text(path.read_text() + '{"run": 1}\n')
    with pytest.raises(RecordError, match="line 3"):
        read_record(path)


def test_measured_leaves_out_warmups_and_failures(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    write(path, sample(), evolve(sample(), warmup=True), evolve(sample(), seconds=None, error="x"))
    record = read_record(path)
    assert list(record.measured()) == [sample()]
    assert [one.error for one in record.failures()] == ["x"]


def test_timelines_are_read_back_beside_their_samples_which_have_none(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    kept = Timeline(run=0, order=3, median=0.5, left_out=2, events=[[0.0, "send", "Read", 0, [1], 10, 0]])
    with RecordWriter(path, HEADER) as writer:
        writer.write(evolve(sample(), timeline="{}"))
        writer.write_timeline(kept)
        writer.write(sample())
    record = read_record(path)
    assert record.timelines == (kept,)
    assert record.samples == (sample(), sample())


def test_slow_transfers_are_read_back_beside_their_samples(tmp_path: Path) -> None:
    slow = SlowTransfer(run=0, order=0, number=3, size=1000, due_s=0.5, started_s=1.0, ended_s=3.0, usual_s=0.25)
    with RecordWriter(tmp_path / "a.jsonl", HEADER) as writer:
        writer.write(sample())
        writer.write_transfer(slow)
    record = read_record(tmp_path / "a.jsonl")
    assert record.samples == (sample(),)
    assert record.transfers == (slow,)
    assert slow.seconds == 2.5


def test_timeline_with_parts_missing_is_refused_by_number(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    write(path, sample())
    path.write_text(path.read_text() + '{"timeline": {"run": 1}}\n')
    with pytest.raises(RecordError, match="line 3"):
        read_record(path)


def test_record_says_whether_its_campaign_came_to_an_end_and_what_was_cut_off(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    write(path, evolve(sample(), seconds=None, error="x"))
    assert not read_record(path).has_ended
    gap = Gap(system="all systems", work="2 cells", reason="no time")
    with RecordWriter(path, None) as writer:
        writer.write_cut(gap)
    assert (read_record(path).has_ended, read_record(path).gaps) == (True, (gap,))
    with RecordWriter(path, None) as writer:
        writer.write_end(WHOLE)
    assert (read_record(path).has_ended, read_record(path).gaps) == (True, ())


def test_work_that_was_cut_short_counts_from_its_last_attempt_on(tmp_path: Path) -> None:
    def put_get(writer: RecordWriter, key: str, run: int, scenarios: Sequence[str], *, warmup: bool = False) -> None:
        for order, scenario in enumerate(scenarios):
            writer.write(evolve(sample(scenario=scenario, run=run), order=order, key=key, warmup=warmup))

    with RecordWriter(tmp_path / "a.jsonl", HEADER) as writer:
        put_get(writer, "warm", 0, ["put", "get"], warmup=True)
        put_get(writer, "whole", 0, ["put", "get"])
        put_get(writer, "half", 0, ["put"])
        writer.write(evolve(sample(), key="failed", seconds=None, error="broken"))
    assert not any(one.superseded for one in read_record(tmp_path / "a.jsonl").samples)
    with RecordWriter(tmp_path / "a.jsonl", None) as writer:
        writer.write_resumed(Resumed(environment={}))
        put_get(writer, "warm", 1, ["put", "get"], warmup=True)
        put_get(writer, "half", 1, ["put", "get"])
        writer.write(evolve(sample(), run=1, key="failed"))
    record = read_record(tmp_path / "a.jsonl")
    assert [(one.key, one.run, one.scenario) for one in record.samples if one.superseded] == [
        ("half", 0, "put"),
        ("failed", 0, "put"),
    ]
    assert [(one.key, one.run, one.scenario) for one in record.measured()] == [
        ("whole", 0, "put"),
        ("whole", 0, "get"),
        ("half", 1, "put"),
        ("half", 1, "get"),
        ("failed", 1, "put"),
    ]
    assert record.failures() == []
    assert "superseded" not in (tmp_path / "a.jsonl").read_text()


def test_record_continued_in_another_environment_tells_from_where_on_and_what_differs(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    write(path, sample())
    for commit in (HEADER.environment["commit"], "1" * 40):
        with RecordWriter(path, None) as writer:
            writer.write_resumed(Resumed(environment={**HEADER.environment, "commit": commit}))
            writer.write(evolve(sample(), run=1))
    record = read_record(path)
    assert [one.before for one in record.resumed] == [1, 2]
    (site,) = record.sites
    assert (site.run, site.found) == (1, {"commit": f"{'1' * 40} instead of {'0' * 40}"})
    assert resumed_section(record).splitlines()[2:] == [
        f"- All after sample 2 of 3: commit was {'0' * 40}, and then {'1' * 40}."
    ]
    assert record.begun_places() == {(0, ""), (1, "")}
