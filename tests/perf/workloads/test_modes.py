"""Modes of concurrency, with known answers; nothing here depends on how long anything takes."""

from __future__ import annotations

import threading

import pytest

from perf.campaigns.arrivals import Schedule, schedule
from perf.workloads.modes import Transfer, run_schedule, summarize


def test_serial_runs_one_at_a_time_in_order() -> None:
    done: list[int] = []

    transfers = run_schedule(schedule("serial", 5, 8, "1"), done.append)

    assert done == [0, 1, 2, 3, 4]
    assert [one.index for one in transfers] == done


def test_parallel_starts_all_before_any_ends() -> None:
    all_here = threading.Barrier(20)

    transfers = run_schedule(schedule("parallel", 20, 2, "1"), lambda _: all_here.wait(timeout=60))

    assert not any(one.error for one in transfers)


def test_staccato_counts_from_when_a_transfer_was_meant_to_start() -> None:
    late = Transfer(index=0, due_s=1.0, started_s=4.0, ended_s=6.0)

    assert late.seconds == 5.0


def test_an_open_loop_starts_no_transfer_before_its_time() -> None:
    transfers = run_schedule(Schedule(workers=3, due_s=(0.0, 0.02, 0.01), fresh=True), lambda _: None)

    assert all(one.started_s >= one.due_s for one in transfers)


def test_a_transfer_that_fails_is_kept_with_its_error_and_others_go_on() -> None:
    def operation(index: int) -> None:
        if index == 1:
            raise ValueError("refused")

    transfers = run_schedule(schedule("serial", 3, 1, "1"), operation)

    assert [one.error for one in transfers] == ["", "ValueError: refused", ""]


def test_an_interrupted_schedule_begins_nothing_more() -> None:
    begun: list[int] = []

    def operation(index: int) -> None:
        begun.append(index)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_schedule(schedule("serial", 50, 1, "1"), operation)

    assert len(begun) < 50


def test_the_summary_leaves_failures_out() -> None:
    good = [Transfer(index=i, due_s=0.0, started_s=0.0, ended_s=float(i + 1)) for i in range(3)]
    bad = Transfer(index=3, due_s=0.0, started_s=0.0, ended_s=9.0, error="refused")

    assert summarize([*good, bad]) == (1.0, 2.0, 3.0, 9.0)
