"""The runner over systems that keep files in memory."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from perf.campaigns import Campaign
from perf.records import Header, Record, RecordWriter, read_record
from perf.runner import make_system, run_campaign
from perf.systems.processes import Encoding
from perf.usage import Usage

CAMPAIGN = Campaign(name="small", purpose="", systems=("a", "b"), sizes=(10, 3000), runs=2, repetitions=2, warmups=1)


class MemorySystem:
    """A grid of nothing but a dictionary."""

    def __init__(self, label: str, events: list[str], fault: str = "") -> None:
        self.label = label
        self._events = events
        self._fault = fault
        self._files: dict[str, bytes] = {}

    def start(self, root: Path, encoding: Encoding) -> None:
        self._events.append(f"start {self.label}")
        if self._fault == "start":
            raise RuntimeError("will not start")
        assert not root.exists()
        assert encoding.needed == CAMPAIGN.needed

    def stop(self) -> None:
        self._events.append(f"stop {self.label}")

    def put(self, client: str, source: Path) -> tuple[str, Usage]:
        if self._fault == "put":
            raise OSError("no room")
        cap = f"{client}:{len(self._files)}"
        self._files[cap] = source.read_bytes()
        return cap, usage()

    def get(self, client: str, cap: str, target: Path) -> Usage:
        data = self._files[cap]
        target.write_bytes(b"?" + data[1:] if self._fault == "wrong byte" else data)
        return usage()

    def server_cpu_s(self) -> float:
        return 2.0

    def server_peak_rss(self) -> int:
        return 4096


def usage() -> Usage:
    return Usage(seconds=0.25, client_cpu_s=0.125, client_idle_rss=1, client_peak_rss=2)


def run(tmp_path: Path, make: Callable[[str], MemorySystem]) -> tuple[int, Record]:
    path = tmp_path / "record.jsonl"
    work = tmp_path / "work"
    work.mkdir()
    with RecordWriter(path, Header(campaign="small", seed=1, environment={}, systems=("a", "b"))) as writer:
        failures = run_campaign(CAMPAIGN, 1, work, writer, tell=lambda _: None, make=make)
    assert [found for found in work.rglob("*") if found.is_file()] == []
    return failures, read_record(path)


def test_run_takes_every_sample_once_with_fresh_systems_per_run(tmp_path: Path) -> None:
    events: list[str] = []
    failures, record = run(tmp_path, lambda label: MemorySystem(label, events))
    assert failures == 0
    assert events == ["start a", "start b", "stop b", "stop a"] * 2
    assert len(record.samples) == 2 * 2 * 2 * (2 + 1) * 2
    assert [sample.order for sample in record.samples if sample.run == 1] == list(range(24))
    first = record.samples[0]
    assert (first.warmup, first.scenario, first.seconds, first.server_cpu_s) == (True, "put", 0.25, 0.0)


def test_run_when_a_put_fails_keeps_it_and_goes_on(tmp_path: Path) -> None:
    failures, record = run(tmp_path, lambda label: MemorySystem(label, [], "put" if label == "a" else ""))
    assert failures == 12
    assert {sample.error for sample in record.failures()} == {"OSError: no room"}
    assert {sample.scenario for sample in record.samples if sample.system == "a"} == {"put"}
    assert len([sample for sample in record.samples if sample.system == "b"]) == 24


def test_run_when_a_get_returns_a_wrong_byte_counts_a_failure(tmp_path: Path) -> None:
    failures, record = run(tmp_path, lambda label: MemorySystem(label, [], "wrong byte" if label == "b" else ""))
    assert failures == 12
    assert {sample.scenario for sample in record.failures()} == {"get"}
    assert all("not what was put" in str(sample.error) for sample in record.failures())


def test_run_when_a_system_will_not_start_stops_those_that_did(tmp_path: Path) -> None:
    events: list[str] = []
    with pytest.raises(RuntimeError, match="will not start"):
        run(tmp_path, lambda label: MemorySystem(label, events, "start" if label == "b" else ""))
    assert events == ["start a", "start b", "stop b", "stop a"]


def test_system_of_an_unknown_label_is_refused() -> None:
    with pytest.raises(ValueError, match="no system 'ftp'"):
        make_system("ftp#2")
    assert make_system("grid#2").label == "grid#2"
