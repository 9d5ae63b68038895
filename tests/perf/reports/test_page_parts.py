"""Parts of the HTML page: outliers with what was kept of them, and modes of concurrency over time."""

from __future__ import annotations

import re
from collections.abc import Sequence

from attrs import evolve

from perf.records.beside import SlowTransfer, Timeline
from perf.records.record import Record, Sample
from perf.reports.outliers import DRAWN, LISTED
from perf.reports.page import page
from perf.reports.panels import modes_of
from tests.perf.samples import HEADER, sample


def slow(system: str, order: int, events: Sequence[Sequence[object]] = (), status: str = "") -> tuple[Sample, Timeline]:
    made = evolve(sample(system), order=order, seconds=0.2 * order)
    return made, Timeline(run=0, order=order, median=0.1, events=events, status=status)


def test_page_has_outliers_with_what_was_kept_of_them_within_bounds() -> None:
    events = [[0.0, "send", "Read", 0, [1], 9, 0], [1.5, "answer", "Read", 0, [1], 9, 0]]
    found = [slow("grid", order, events=events) for order in range(1, LISTED + 4)]
    found.append(slow("tahoe", 40, status="<recent>" + "x" * 5000))
    found.append(slow("grid", 50, events=events * 500))
    header = evolve(HEADER, systems=("grid", "tahoe"))
    text = page([Record(header, tuple(one for one, _ in found), tuple(kept for _, kept in found))])
    assert f"<details><summary>Outliers: {len(found)}</summary>" in text
    assert "order 40: tahoe, put 100 MB, 3-of-10, warm: 8 s, usually 0.1 s (80.0 times). Kept: 5008 characters" in text
    assert f"... and {len(found) - LISTED} more in the record." in text
    assert len(re.findall('aria-label="Timeline: grid', text)) == DRAWN
    assert "run 1</h4><pre" in text
    assert "&lt;recent&gt;x" in text
    assert "... and 3508 more characters in the record" in text


def test_page_has_slow_transfers_of_samples_that_count_within_bounds() -> None:
    made = [evolve(sample(), order=order, superseded=order == 1) for order in range(2)]
    slow = [
        SlowTransfer(run=0, order=0, number=number, size=9, due_s=1, started_s=2, ended_s=3 + number, usual_s=0.5)
        for number in range(LISTED + 2)
    ]
    slow.append(evolve(slow[0], order=1, number=99))
    text = page([Record(HEADER, tuple(made), transfers=tuple(slow))])
    assert f"<summary>Outliers: 0, and {LISTED + 2} single transfers</summary>" in text
    assert "transfer 2, 9 bytes, from 2 to 4 s of the sample: 3 s, usually 0.5 s (6.0 times)." not in text
    assert f"transfer {LISTED + 2}, 9 bytes, from 2 to 16 s of the sample: 15 s, usually 0.5 s (30.0 times)." in text
    assert "... and 2 more in the record." in text
    assert "transfer 100" not in text


def moved(mode: str, system: str, warm: str, cores: int) -> Sample:
    series = {"at_ms": [0, 1000], "cpu_ms": {"client": [0, 1000 * cores]}, "resident_kib": {"client": [1024, 2048]}}
    return evolve(sample(system, scenario="get"), factors={"mode": mode, "warm": warm, "count": 2}, series=series)


def test_modes_are_drawn_by_system_from_the_first_sample_without_warm_up() -> None:
    samples = [
        moved("limited", "s5cmd@versitygw", "never", 1),
        moved("serial", "boto3@versitygw", "yes", 2),
        moved("serial", "boto3@versitygw", "no", 3),
        moved("serial", "s5cmd@versitygw", "never", 4),
        moved("serial", "s5cmd@versitygw", "never", 5),
        moved("chunked", "rclone@versitygw", "never", 6),
    ]
    header = evolve(HEADER, systems=("boto3@versitygw", "s5cmd@versitygw", "rclone@versitygw"))
    made = Record(header, tuple(samples))
    cores = {
        mode: {name: one[1][-1] for name, one in systems.items()} for mode, systems in modes_of(made, "get").items()
    }
    assert cores == {"serial": {"boto3@versitygw": 3.0, "s5cmd@versitygw": 4.0}, "limited": {"s5cmd@versitygw": 1.0}}
    assert list(cores) == ["serial", "limited"]
    assert modes_of(made, "put") == {}
    text = page([made])
    assert "Processor and memory in each mode, get</h3>" in text
    assert "cores of the client</text>" in text
