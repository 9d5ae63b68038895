"""What is reported and kept of slow samples, and of slow transfers within samples."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from attrs import evolve

from perf.records.record import Record, RecordWriter, Resumed, Sample, read_record
from perf.sampling.watch import OutlierWatch
from tests.perf.samples import HEADER, sample

WORKLOAD = evolve(HEADER, plan={"driver": "streams"})
EVENTS = [[0.0, "send", "Read", 0, [1], 9, 0]]


def looked_at(
    folder: Path, *samples: Sample, ends: bool = True, earlier: Record | None = None
) -> tuple[list[str], Record]:
    """The lines that were shown, and the record, of samples that come in this order."""
    told: list[str] = []
    path, first = folder / "record.jsonl", len(earlier.samples) if earlier is not None else 0
    with RecordWriter(path, WORKLOAD if earlier is None else None) as writer:
        watch = OutlierWatch(writer, told.append, earlier)
        for order, one in enumerate(samples, first):
            made = evolve(one, order=order, key=str(order))
            writer.write(made)
            watch.look(made)
            writer.write_end(made.key)
        if ends:
            watch.end()
    return told, read_record(path)


def several(*times: float) -> Sequence[Sample]:
    return [sample(seconds=seconds) for seconds in times]


def kept(record: Record) -> list[tuple[int, float]]:
    return [(one.order, one.median) for one in record.timelines]


def test_slow_sample_is_told_at_once_and_kept_with_its_events_and_pressure(tmp_path: Path) -> None:
    text = json.dumps({"left_out": 3, "events": EVENTS})
    slow = evolve(sample(seconds=1.0), timeline=text, pressure={"cpu": 0.5, "io": 0.031})
    told, record = looked_at(tmp_path, *several(0.5, 0.5, 0.5), slow, *several(0.5))
    assert told == ["  OUTLIER: 1.000 s, where 0.500 s are usual; pressure: cpu 50%, io 3%"]
    (line,) = record.timelines
    assert (line.order, line.median, line.left_out, line.events) == (3, 0.5, 3, EVENTS)


def test_system_without_events_is_asked_for_its_status_page_only_when_it_was_slow(tmp_path: Path) -> None:
    asked: list[str] = []

    def status() -> str:
        asked.append("status")
        if len(asked) == 2:
            raise OSError("it does not answer")
        return "recent: a put"

    made = [evolve(one, status=status) for one in several(0.5, 0.5, 0.5, 0.5, 2.0, 3.0)]
    told, record = looked_at(tmp_path, *made)
    assert len(told) == len(asked) == 2
    assert [one.status for one in record.timelines] == ["recent: a put", "OSError: it does not answer"]


def test_first_sample_that_was_slow_is_kept_when_the_others_have_shown_it(tmp_path: Path) -> None:
    told, record = looked_at(tmp_path, *several(1.0, 0.5, 0.5, 0.5))
    assert told == []
    assert kept(record) == [(0, 0.5)]


def test_warmups_failures_and_other_kinds_are_not_compared(tmp_path: Path) -> None:
    others = (
        evolve(sample(seconds=9.0), warmup=True),
        evolve(sample(), seconds=None, error="broken"),
        sample("tahoe", seconds=9.0),
        sample(scenario="get", seconds=9.0),
        evolve(sample(seconds=9.0), factors={"k": 3, "n": 10, "size": 10**8, "site": "atlas"}),
        evolve(sample(seconds=9.0), factors={"k": 3, "n": 6, "size": 10**8}),
    )
    told, record = looked_at(tmp_path, *several(0.5, 0.5, 0.5), *others)
    assert (told, record.timelines) == ([], ())


def test_runs_are_compared_with_each_other(tmp_path: Path) -> None:
    told, record = looked_at(tmp_path, *(sample(run=run, seconds=0.5 + (run == 3)) for run in range(4)))
    assert len(told) == 1
    assert [(one.run, one.order) for one in record.timelines] == [(3, 3)]


def test_open_loop_is_judged_by_its_files_because_the_clock_says_how_long_it_lasts(tmp_path: Path) -> None:
    def staccato(each_s: float, total_s: float) -> Sample:
        files = [[1000, float(number), float(number), number + each_s, ""] for number in range(4)]
        return evolve(sample(seconds=total_s), factors={"mode": "staccato", "count": 4}, files=files)

    told, record = looked_at(
        tmp_path, *(staccato(*times) for times in [(0.1, 4.0), (0.1, 9.0), (0.1, 4.0), (0.1, 9.0), (0.3, 4.0)])
    )
    assert ["0.300 s, where 0.100 s" in line for line in told] == [True]
    assert [order for order, _ in kept(record)] == [4]


def test_slow_transfer_within_a_sample_is_told_and_kept_with_its_beginning_and_end(tmp_path: Path) -> None:
    files = [[1000, 0.0, 0.5 * number, 0.5 * number + 0.25, ""] for number in range(8)]
    files = [[size, started, started, ended, error] for size, _, started, ended, error in files]
    files.append([1000, 4.0, 4.25, 6.0, ""])
    told, record = looked_at(tmp_path, evolve(sample(), files=files, pressure={"io": 0.5}))
    assert told == [
        "  OUTLIER: 2.000 s, where 0.250 s are usual; transfer 9 of 9, 1000 bytes, from 4.250 to 6.000 s; pressure: io 50%"
    ]
    (slow,) = record.transfers
    assert (slow.order, slow.number, slow.size, slow.due_s, slow.started_s, slow.ended_s, slow.usual_s) == (
        (0, 8, 1000, 4.0, 4.25, 6.0, 0.25)
    )
    assert record.timelines == ()


def test_record_that_is_continued_knows_what_was_usual_and_repeats_nothing(tmp_path: Path) -> None:
    _, begun = looked_at(tmp_path, *several(2.0, 0.5, 0.5, 0.5, 1.0), ends=False)
    assert kept(begun) == [(4, 0.5)]
    with RecordWriter(tmp_path / "record.jsonl", None) as writer:
        writer.write_resumed(Resumed(environment={}))

    told, whole = looked_at(tmp_path, *several(0.9), earlier=begun)

    assert [line.split(";")[0] for line in told] == ["  OUTLIER: 0.900 s, where 0.500 s are usual"]
    # The last is the first sample, which came too early to be judged then.
    assert [order for order, _ in kept(whole)] == [4, 5, 0]
