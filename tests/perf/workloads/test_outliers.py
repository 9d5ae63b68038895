"""Workloads tell of slow samples, and of slow transfers within a sample, and keep what is known of them."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from perf.peers.commands import timed_each
from perf.peers.contract import Cost
from perf.peers.grids import GridClientName
from perf.reports.page import page
from perf.reports.report import report
from perf.sampling.sampler import stalls
from tests.perf.workloads.folder_grid import DONE, FolderGrid, stand_in
from tests.perf.workloads.test_failing_peers import head
from tests.perf.workloads.test_workloads import run

EVENTS = '{"left_out": 0, "events": [[0.0, "send", "Read", 0, [1], 9, 0]]}'
SLOW = Cost(seconds=1.0)


class SlowOnce(FolderGrid):
    """A grid whose n-th puts of a folder are slow, counted over all that a test makes."""

    def __init__(self, asked: list[str], slow: Sequence[int], client: GridClientName = "cli") -> None:
        super().__init__(client, asked)
        self._slow = slow

    def put_folder(self, source: Path, name: str) -> Cost:
        super().put_folder(source, name)
        return SLOW if len(self.asked) in self._slow else DONE


def slow_at(monkeypatch: pytest.MonkeyPatch, *slow: int) -> None:
    asked: list[str] = []
    stand_in(monkeypatch, lambda: SlowOnce(asked, slow))


def test_slow_sample_of_a_workload_is_told_at_once_and_is_on_the_page_with_its_series(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow_at(monkeypatch, 4)
    told: list[str] = []

    record = run(f'{head("size-count")}sets = ["1k_3"]\nruns = 5\n', tmp_path, tell=told.append)

    (line,) = [number for number, one in enumerate(told) if "OUTLIER" in one]
    assert told[line].startswith("  OUTLIER: 1.000 s, where 0.100 s are usual; pressure: ")
    assert told[line - 1].startswith("run 4 grid@http/cli put 3 x ")
    (kept,) = record.timelines
    assert (kept.run, kept.median, kept.events, kept.status) == (3, 0.1, [], "")
    series = "processor, memory and pressure" if stalls() else "processor and memory"
    assert f"1 s, usually 0.1 s (10.0 times). Kept: {series} over time" in page([record])
    assert "1 s, usually 0.1 s (10.0 times)" in report(record)


def test_first_run_is_judged_by_the_later_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    slow_at(monkeypatch, 1)
    record = run(f'{head("size-count")}sets = ["1k_3"]\nruns = 4\n', tmp_path)
    assert [(one.run, one.median) for one in record.timelines] == [(0, 0.1)]


def test_warmups_are_neither_told_nor_part_of_what_is_usual(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def put(peer: FolderGrid, source: Path, name: str, number: int = 0, words: Sequence[str] = ()) -> Cost:
        warm(peer, source, name, number, words)
        return SLOW if "warm-up-4" in name else DONE

    warm = FolderGrid.put
    monkeypatch.setattr(FolderGrid, "put", put)
    stand_in(monkeypatch, FolderGrid)
    told: list[str] = []

    record = run(f'{head("size-count")}sets = ["1k_3"]\nwarmups = 1\nruns = 5\n', tmp_path, tell=told.append)

    assert [one.seconds for one in record.samples if one.warmup and one.scenario == "put"] == [0.1] * 4 + [1.0]
    assert sum("(warm-up)" in one for one in told) == 2 * 5
    assert not any("OUTLIER" in one for one in told)
    assert record.timelines == ()


def test_client_is_asked_for_its_events_and_status_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    slow_at(monkeypatch, 4)
    asked: list[str] = []

    def status(_: FolderGrid) -> Callable[[], str]:
        def ask() -> str:
            asked.append("status")
            return "recent: a put"

        return ask

    monkeypatch.setattr(FolderGrid, "status", property(status))
    monkeypatch.setattr(FolderGrid, "forget", lambda _: asked.append("forget"))
    text = f'{head("size-count")}sets = ["1k_3"]\nruns = 5\n'
    (tmp_path / "one").mkdir()

    (kept,) = run(text, tmp_path / "one").timelines
    assert kept.status == "recent: a put"
    # The client begins anew with each sample, and the page is fetched only for the slow one.
    assert (asked.count("forget"), asked.count("status")) == (2 * 5, 1)

    slow_at(monkeypatch, 4)
    monkeypatch.setattr(FolderGrid, "timeline", lambda _: EVENTS)
    (tmp_path / "two").mkdir()
    (kept,) = run(text, tmp_path / "two").timelines
    assert (len(kept.events), kept.status) == (1, "")


@pytest.mark.parametrize(
    ("driver", "keys"),
    [
        ("streams", "jobs = [4]"),
        ("copy-modes", 'modes = ["limited"]'),
        ("copy-modes", 'modes = ["staccato"]\nspan_s = 0.1'),
        ("doors", "jobs = [4]"),
    ],
)
def test_transfer_that_hangs_is_told_and_kept_with_when_it_began_and_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, driver: str, keys: str
) -> None:
    began: list[float] = []
    others = threading.Semaphore(0)

    def put(peer: FolderGrid, source: Path, name: str, number: int = 0, words: Sequence[str] = ()) -> Cost:
        if name.endswith("-17"):
            for _ in range(17):
                others.acquire()
            # No transfer so far can have taken as long as the sample has, so that this one is slow on any machine.
            time.sleep(6 * (time.perf_counter() - began[-1]))
        cost = original(peer, source, name, number, words)
        others.release()
        return cost

    original = FolderGrid.put
    monkeypatch.setattr(os, "sync", lambda: began.append(time.perf_counter()))
    monkeypatch.setattr(FolderGrid, "put", put)
    stand_in(monkeypatch, lambda: FolderGrid("gateway"))
    told: list[str] = []

    record = run(f'{head(driver, "grid@http/gateway")}sets = ["1k_20"]\n{keys}\n', tmp_path, tell=told.append)

    assert not record.failures()
    sample, _ = record.samples
    (slow,) = [one for one in record.transfers if one.order == sample.order and one.number == 17]
    assert (sample.scenario, slow.size) == ("put", 1000)
    assert [slow.size, slow.due_s, slow.started_s, slow.ended_s, ""] == sample.files[17]
    assert any("OUTLIER" in line and "transfer 18 of 20, 1000 bytes, from" in line for line in told)
    assert "transfer 18, 1000 bytes, from" in page([record])
    assert "transfer 18, 1000 bytes, from" in report(record)


def test_transfers_that_a_client_makes_one_by_one_for_a_folder_are_compared_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def put_folder(peer: FolderGrid, source: Path, name: str) -> Cost:
        cost = original(peer, source, name)
        each = [(0.5 * number, 0.5 * number + (0.25 if number != 7 else 2.0)) for number in range(9)]
        return Cost(seconds=cost.seconds, each=each)

    original = FolderGrid.put_folder
    monkeypatch.setattr(FolderGrid, "put_folder", put_folder)
    stand_in(monkeypatch, FolderGrid)

    record = run(f'{head("size-count")}sets = ["1k_9"]\n', tmp_path)

    (slow,) = record.transfers
    assert (slow.number, slow.size, slow.started_s, slow.ended_s, slow.usual_s) == (7, 1000, 3.5, 5.5, 0.25)
    # Of thousands of files there would be too many lines.
    assert not record.samples[0].files


def test_each_item_of_many_has_its_beginning_and_end_in_order() -> None:
    done: list[int] = []
    cost = timed_each(done.append, range(20))
    assert sorted(done) == list(range(20))
    assert len(cost.each) == 20
    assert all(0 <= began <= ended <= cost.seconds for began, ended in cost.each)
