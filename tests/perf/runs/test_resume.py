"""Resuming an interrupted campaign."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

from perf.campaigns.campaign import Encoding, Load
from perf.network.contract import Host, Loopback, Placement
from perf.records.record import Header, RecordWriter, read_record
from perf.runs.runner import Options, run_campaign
from perf.sampling.usage import Usage
from tests.perf.runs.test_runner import CAMPAIGN, MemorySystem


class Interrupted(MemorySystem):
    """Stops the campaign at its n-th put."""

    puts = 0

    def put(
        self, client: str, encoding: Encoding, sources: Sequence[Path], concurrency: int, format: str = "chk"
    ) -> tuple[Sequence[str], Usage]:
        type(self).puts += 1
        if self.puts == 17:
            raise KeyboardInterrupt
        return super().put(client, encoding, sources, concurrency, format)


def test_campaign_that_was_interrupted_goes_on_with_what_is_left(tmp_path: Path) -> None:
    events: list[str] = []
    Interrupted.puts = 0
    path, work = tmp_path / "record.jsonl", tmp_path / "work"
    work.mkdir()
    header = Header(campaign="small", seed=1, environment={}, systems=("grid", "tahoe"))
    options = Options(tell=lambda _: None, make=lambda label: Interrupted(label, events))
    with RecordWriter(path, header) as writer, pytest.raises(KeyboardInterrupt):
        run_campaign(CAMPAIGN, 1, work, writer, options)
    assert events[-2:] == ["stop tahoe", "stop grid"]
    assert list(work.iterdir()) == []
    with path.open("a") as file:
        file.write('{"run":1,"or')
    begun = read_record(path)
    before = len(begun.samples)
    assert not begun.has_ended
    again = evolve(options, done=begun.done_keys(), orders=begun.next_orders(), begun=begun.begun_places())
    with RecordWriter(path, None) as writer:
        assert run_campaign(CAMPAIGN, 1, work, writer, again) == 0
    whole = read_record(path)
    assert whole.has_ended
    measured = [sample for sample in whole.samples if not sample.warmup]
    assert len(measured) == 2 * 2 * 2 * 2 * 2
    assert {sample.run for sample in whole.samples[:before]} == {0, 1}
    # Yesterday's half of a run is not compared with today's.
    assert {sample.run for sample in whole.samples[before:]} == {CAMPAIGN.runs}
    assert [one.found.get("continues run") for one in whole.sites] == [None, None, 2]
    assert len({(sample.run, sample.order) for sample in whole.samples}) == len(whole.samples)
    assert len({(sample.key, sample.scenario) for sample in measured}) == len(measured)
    Interrupted.puts = 100
    with RecordWriter(path, None) as writer:
        run_campaign(CAMPAIGN, 1, work, writer, evolve(again, done=whole.done_keys()))
    assert len(read_record(path).samples) == len(whole.samples)


def test_campaign_whose_time_is_up_within_a_run_says_so_and_goes_on_later(tmp_path: Path) -> None:
    path, work = tmp_path / "record.jsonl", tmp_path / "work"
    work.mkdir()
    ticks = count()
    campaign = evolve(CAMPAIGN, runs=1, budget=0.1)
    header = Header(campaign="small", seed=1, environment={}, systems=("grid", "tahoe"))
    options = Options(tell=lambda _: None, make=lambda label: MemorySystem(label, []), clock=lambda: float(next(ticks)))
    with RecordWriter(path, header) as writer:
        assert run_campaign(campaign, 1, work, writer, options) == 0
    cut = read_record(path)
    # 0.1 minutes are 6 looks at the clock: the first is at the start, the second before the run.
    assert len(cut.samples) == 2 * 5
    assert [(gap.work, gap.reason) for gap in cut.gaps] == [
        ("7 cells from run 1 on", "the budget of 0.1 minutes was used up; `perf resume` goes on")
    ]
    assert cut.has_ended
    again = evolve(options, done=cut.done_keys(), orders=cut.next_orders(), begun=cut.begun_places(), clock=lambda: 0.0)
    with RecordWriter(path, None) as writer:
        assert run_campaign(campaign, 1, work, writer, again) == 0
    whole = read_record(path)
    assert whole.gaps == ()
    assert {one.run for one in whole.samples[10:]} == {1}
    assert len({(one.key, one.scenario) for one in whole.measured()}) == 2 * 2 * 2 * 2


class Counting(Loopback):
    """A network that counts how often it was asked what it found."""

    asked = 0

    def found(self) -> Mapping[str, Any]:
        type(self).asked += 1
        return {"throttled": self.asked}


class OnDisk(Loopback):
    """A network whose servers have their shares on a medium."""

    def __init__(self, medium: Path) -> None:
        self.placement = Placement(servers=(Host(name="server", directory=medium),))


def test_cold_cache_is_without_the_shares_on_a_medium_and_what_holds_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    evicted: list[Path] = []
    monkeypatch.setattr("perf.runs.scenarios.evict", evicted.append)
    medium = tmp_path / "image" / "medium"
    campaign = evolve(
        CAMPAIGN, loads=(Load(size=10, cache="cold"),), systems=("grid",), runs=1, repetitions=1, warmups=0
    )
    header = Header(campaign="small", seed=1, environment={}, systems=("grid",))
    options = Options(
        tell=lambda _: None, make=lambda label: MemorySystem(label, []), topology=lambda site, servers: OnDisk(medium)
    )
    (tmp_path / "work").mkdir()
    with RecordWriter(tmp_path / "record.jsonl", header) as writer:
        run_campaign(campaign, 1, tmp_path / "work", writer, options)
    assert evicted == [medium, medium.parent, tmp_path / "work"] * 2


def test_counters_of_a_site_are_recorded_at_the_end_of_each_run_too(tmp_path: Path) -> None:
    header = Header(campaign="small", seed=1, environment={}, systems=("grid", "tahoe"))
    options = Options(
        tell=lambda _: None, make=lambda label: MemorySystem(label, []), topology=lambda site, servers: Counting()
    )
    (tmp_path / "work").mkdir()
    Counting.asked = 0
    with RecordWriter(tmp_path / "record.jsonl", header) as writer:
        run_campaign(CAMPAIGN, 1, tmp_path / "work", writer, options)
    sites = read_record(tmp_path / "record.jsonl").sites
    assert [(one.run, one.found) for one in sites] == [
        (0, {"throttled": 1}),
        (0, {"afterwards": {"throttled": 2}}),
        (1, {"throttled": 3}),
        (1, {"afterwards": {"throttled": 4}}),
    ]
