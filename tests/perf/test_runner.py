"""The runner over systems that keep files in memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from attrs import evolve

from perf.campaigns import Campaign, Encoding, Load, whole_files
from perf.records import Header, Record, RecordWriter, read_record
from perf.runner import ALIASES, SYSTEMS, make_system, run_campaign
from perf.systems.processes import Fetch
from perf.usage import Usage

CAMPAIGN = Campaign(
    name="small",
    purpose="",
    duration="",
    systems=("a", "b"),
    loads=whole_files(10, 3000),
    runs=2,
    repetitions=2,
    warmups=1,
)
RANGES = evolve(
    CAMPAIGN,
    loads=(
        *(Load(scenario="range", size=3000, length=length) for length in (1, 100, 3000)),
        Load(scenario="alacrity", size=3000, length=1),
    ),
)
MANY = evolve(CAMPAIGN, loads=(Load(size=70, count=20, concurrency=4),), encodings=(Encoding(), Encoding(total=20)))


class MemorySystem:
    """A grid of nothing but a dictionary."""

    def __init__(self, label: str, events: list[str], fault: str = "") -> None:
        self.label = label
        self._events = events
        self._fault = fault
        self._files: dict[str, bytes] = {}
        self._encodings: Sequence[Encoding] = ()

    def start(self, root: Path, servers: int, encodings: Sequence[Encoding]) -> None:
        self._events.append(f"start {self.label}")
        if self._fault == "start":
            raise RuntimeError("will not start")
        assert not root.exists()
        assert servers == CAMPAIGN.servers
        self._encodings = encodings

    def stop(self) -> None:
        self._events.append(f"stop {self.label}")

    def put(
        self, client: str, encoding: Encoding, sources: Sequence[Path], concurrency: int
    ) -> tuple[Sequence[str], Usage]:
        assert encoding in self._encodings
        self._events.append(f"put {len(sources)} at {concurrency}")
        if self._fault == "put":
            raise OSError("no room")
        caps = [f"{client}:{len(self._files) + index}" for index in range(len(sources))]
        self._files |= {cap: source.read_bytes() for cap, source in zip(caps, sources, strict=True)}
        return caps, usage()

    def get(self, client: str, encoding: Encoding, fetches: Sequence[Fetch], concurrency: int) -> Usage:
        self._events.append(f"get {len(fetches)} at {concurrency}")
        for fetch in fetches:
            stop = None if fetch.length is None else fetch.offset + fetch.length
            data = self._files[fetch.cap][fetch.offset : stop]
            wrong = self._fault == "wrong byte" and fetch is fetches[-1]
            fetch.target.write_bytes(bytes([data[0] ^ 1]) + data[1:] if wrong else data)
        return evolve(usage(), first_byte_s=0.0625)

    def server_cpu_s(self) -> float:
        return 2.0

    def server_peak_rss(self) -> int:
        return 4096


def usage() -> Usage:
    return Usage(seconds=0.25, client_cpu_s=0.125, client_idle_rss=1, client_peak_rss=2)


def run(tmp_path: Path, make: Callable[[str], MemorySystem], campaign: Campaign = CAMPAIGN) -> tuple[int, Record]:
    path = tmp_path / "record.jsonl"
    work = tmp_path / "work"
    work.mkdir()
    with RecordWriter(path, Header(campaign="small", seed=1, environment={}, systems=("a", "b"))) as writer:
        failures = run_campaign(campaign, 1, work, writer, tell=lambda _: None, make=make)
    assert [found for found in work.rglob("*") if found.is_file()] == []
    return failures, read_record(path)


def test_run_takes_every_sample_once_with_fresh_systems_per_run(tmp_path: Path) -> None:
    events: list[str] = []
    failures, record = run(tmp_path, lambda label: MemorySystem(label, events))
    assert failures == 0
    assert [event for event in events if event[0] == "s"] == ["start a", "start b", "stop b", "stop a"] * 2
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


def test_run_of_ranges_puts_a_file_once_and_alacrity_each_time(tmp_path: Path) -> None:
    events: list[str] = []
    failures, record = run(tmp_path, lambda label: MemorySystem(label, events), RANGES)
    assert failures == 0
    assert len(record.samples) == 2 * 2 * 4 * (2 + 1)
    assert events.count("put 1 at 1") == 2 * 2 * (1 + 3)
    assert {sample.scenario for sample in record.samples} == {"range", "alacrity"}
    lengths = {(sample.factors["length"], sample.size) for sample in record.samples}
    assert lengths == {(1, 1), (100, 100), (3000, 3000)}
    assert {sample.first_byte_s for sample in record.samples} == {0.0625}


def test_run_of_ranges_when_a_byte_is_wrong_counts_a_failure(tmp_path: Path) -> None:
    failures, record = run(tmp_path, lambda label: MemorySystem(label, [], "wrong byte"), RANGES)
    assert failures == len(record.samples)
    assert all("not what was put" in str(sample.error) for sample in record.samples)


def test_run_of_ranges_when_the_put_fails_says_so_and_goes_on(tmp_path: Path) -> None:
    failures, record = run(tmp_path, lambda label: MemorySystem(label, [], "put"), RANGES)
    assert failures == len(record.samples) == 48
    assert {sample.error for sample in record.failures()} == {"before the read: OSError: no room"}


def test_run_of_many_files_asks_for_all_at_once(tmp_path: Path) -> None:
    events: list[str] = []
    failures, record = run(tmp_path, lambda label: MemorySystem(label, events), MANY)
    assert failures == 0
    assert events.count("put 20 at 4") == events.count("get 20 at 4") == 2 * 2 * 2 * 3
    assert {sample.factors["n"] for sample in record.samples} == {10, 20}
    assert {(sample.size, sample.count, sample.factors["concurrency"]) for sample in record.samples} == {(1400, 20, 4)}


def test_run_of_many_files_when_the_last_is_wrong_counts_a_failure(tmp_path: Path) -> None:
    failures, record = run(tmp_path, lambda label: MemorySystem(label, [], "wrong byte"), MANY)
    assert failures == 24
    assert {sample.scenario for sample in record.failures()} == {"get"}


def test_system_of_an_unknown_label_is_refused() -> None:
    with pytest.raises(ValueError, match="no system 'ftp'"):
        make_system("ftp#2")
    for name in (*ALIASES, *SYSTEMS):
        assert make_system(f"{name}#2").label == f"{name}#2"
