"""The runner over systems that keep files in memory."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import TypeVar

import pytest
from attrs import evolve

from perf.campaigns.campaign import Campaign, Encoding, Load, whole_files
from perf.campaigns.labels import ALIASES, BASES
from perf.network.contract import Placement
from perf.records.record import Header, Record, RecordWriter, read_record
from perf.runs.runner import Options, run_campaign
from perf.sampling.usage import Trace, Usage
from perf.systems.contract import Capabilities, Fetch, Member, WarmClient
from perf.systems.peers import make_system

CAMPAIGN = Campaign(
    name="small",
    purpose="",
    duration="",
    systems=("grid", "tahoe"),
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


TREES = evolve(
    CAMPAIGN,
    loads=(
        Load(scenario="mkdir", count=3),
        Load(scenario="add-each", count=4),
        Load(scenario="add-batch", count=4),
        Load(scenario="list", count=5),
        Load(scenario="overwrite", size=3000, length=100, format="mdmf"),
        Load(scenario="range", size=3000, length=10, format="mdmf"),
    ),
)
IDLE = evolve(CAMPAIGN, loads=(Load(scenario="idle", seconds=0.01),), warmups=0)

T = TypeVar("T")


class MemoryClient:
    """Files and directories in dictionaries."""

    def __init__(self, files: dict[str, bytes], events: list[str], fault: str) -> None:
        self.pids: Sequence[int] = ()
        self.ports: Collection[int] = ()
        self._files = files
        self._trees: dict[str, list[str]] = {}
        self._events = events
        self._fault = fault

    def put(self, sources: Sequence[Path], concurrency: int, format: str) -> list[str]:
        caps = [f"direct:{len(self._files) + index}" for index in range(len(sources))]
        self._files |= {cap: source.read_bytes() for cap, source in zip(caps, sources, strict=True)}
        return caps

    def get(self, fetches: Sequence[Fetch], concurrency: int) -> list[float]:
        for fetch in fetches:
            stop = None if fetch.length is None else fetch.offset + fetch.length
            fetch.target.write_bytes(self._files[fetch.cap][fetch.offset : stop])
        return [0.0] * len(fetches)

    def overwrite(self, cap: str, offset: int, source: Path) -> None:
        self._events.append("overwrite")
        data = b"" if self._fault == "lost change" else source.read_bytes()
        old = self._files[cap]
        self._files[cap] = old[:offset] + data + old[offset + len(data) :]

    def make_directories(self, count: int) -> list[str]:
        self._events.append(f"mkdir {count}")
        if self._fault == "mkdir":
            raise OSError("no room")
        caps = [f"tree {len(self._trees) + number}" for number in range(count)]
        self._trees |= {cap: [] for cap in caps}
        return caps

    def add_children(self, directory: str, children: Sequence[tuple[str, str]], *, at_once: bool) -> None:
        self._events.append(f"add {len(children)} {'at once' if at_once else 'singly'}")
        assert all(cap in self._files for _, cap in children)
        lost = self._fault == "lost child"
        self._trees[directory] += [name for name, _ in children][lost:]

    def list_children(self, directory: str) -> list[str]:
        return self._trees[directory]

    def status(self) -> str:
        return "a page"

    def trace(self) -> Trace | None:
        return None


class MemorySystem:
    """A grid of nothing but a dictionary."""

    def __init__(self, label: str, events: list[str], fault: str = "") -> None:
        self.label = label
        self._events = events
        self._fault = fault
        self._files: dict[str, bytes] = {}
        self._encodings: Sequence[Encoding] = ()
        self._client = MemoryClient(self._files, events, fault)
        self._asked = 0

    def start(self, root: Path, servers: int, encodings: Sequence[Encoding], placement: Placement) -> None:
        self._events.append(f"start {self.label}")
        if self._fault == "start" or (self._fault == "start once" and not root.name.endswith("again")):
            raise RuntimeError("will not start")
        assert not root.exists()
        assert servers == CAMPAIGN.servers
        self._encodings = encodings

    def stop(self) -> None:
        self._events.append(f"stop {self.label}")

    def put(
        self, client: str, encoding: Encoding, sources: Sequence[Path], concurrency: int, format: str = "chk"
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

    def ask(self, encoding: Encoding, operation: Callable[[WarmClient], T], client: str = "warm") -> tuple[T, Usage]:
        result = operation(self._client)
        self._asked += 1
        slow = self._fault == "slow once" and self._asked == 61
        return result, evolve(usage(), seconds=2.0 if slow else 0.25, trace=Trace(7, TIMELINE))

    def capabilities(self, encoding: Encoding) -> Capabilities:
        return Capabilities(expansion=1.0, encrypts="nobody", proves="nothing", syncs=False, survives=0)

    def refuses(self, load: Load, client: str) -> str:
        return "it lists nothing" if self._fault == "no lists" and load.scenario == "list" else ""

    def members(self) -> Sequence[Member]:
        return ()

    def server_cpus_s(self) -> list[float]:
        return [2.0, 3.0]

    def server_peaks(self) -> list[int]:
        return [1024, 4096]


TIMELINE = json.dumps({"left_out": 0, "events": [[0.0, "send", "ReadBatch", 0, [1], 10, 0]]})


def usage() -> Usage:
    return Usage(seconds=0.25, client_cpu_s=0.125, client_idle_rss=1, client_peak_rss=2)


def run(tmp_path: Path, make: Callable[[str], MemorySystem], campaign: Campaign = CAMPAIGN) -> tuple[int, Record]:
    path = tmp_path / "record.jsonl"
    work = tmp_path / "work"
    work.mkdir()
    with RecordWriter(path, Header(campaign="small", seed=1, environment={}, systems=("grid", "tahoe"))) as writer:
        failures = run_campaign(campaign, 1, work, writer, Options(tell=lambda _: None, make=make))
    assert [found for found in work.rglob("*") if found.is_file()] == []
    return failures, read_record(path)


def test_run_takes_every_sample_once_with_fresh_systems_per_run(tmp_path: Path) -> None:
    events: list[str] = []
    failures, record = run(tmp_path, lambda label: MemorySystem(label, events))
    assert failures == 0
    assert [event for event in events if event[0] == "s"] == [
        "start grid",
        "start tahoe",
        "stop tahoe",
        "stop grid",
    ] * 2
    assert len(record.samples) == 2 * 2 * 2 * (2 + 1) * 2
    assert [sample.order for sample in record.samples if sample.run == 1] == list(range(24))
    first = record.samples[0]
    assert (first.warmup, first.scenario, first.seconds, first.server_cpu_s) == (True, "put", 0.25, 0.0)


def test_run_when_a_put_fails_keeps_it_and_goes_on(tmp_path: Path) -> None:
    failures, record = run(tmp_path, lambda label: MemorySystem(label, [], "put" if label == "grid" else ""))
    assert failures == 12
    assert {sample.error for sample in record.failures()} == {"OSError: no room"}
    assert {sample.scenario for sample in record.samples if sample.system == "grid"} == {"put"}
    assert len([sample for sample in record.samples if sample.system == "tahoe"]) == 24


def test_run_when_a_get_returns_a_wrong_byte_counts_a_failure(tmp_path: Path) -> None:
    failures, record = run(tmp_path, lambda label: MemorySystem(label, [], "wrong byte" if label == "tahoe" else ""))
    assert failures == 12
    assert {sample.scenario for sample in record.failures()} == {"get"}
    assert all("not what was put" in str(sample.error) for sample in record.failures())


def test_run_when_a_system_will_not_start_stops_those_that_did(tmp_path: Path) -> None:
    events: list[str] = []
    with pytest.raises(RuntimeError, match="will not start"):
        run(tmp_path, lambda label: MemorySystem(label, events, "start" if label == "tahoe" else ""))
    assert events == ["start grid", *["start tahoe", "stop tahoe"] * 2, "stop grid"]


def test_run_when_a_system_starts_at_the_second_attempt_goes_on(tmp_path: Path) -> None:
    events: list[str] = []
    failures, record = run(tmp_path, lambda label: MemorySystem(label, events, "start once"))
    assert failures == 0
    assert len(record.samples) == 48
    assert events.count("start grid") == 2 * 2


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


def test_run_of_ranges_from_a_given_place_says_so_and_reads_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    offsets: set[int] = set()
    get = MemorySystem.get

    def noted(system: MemorySystem, client: str, encoding: Encoding, fetches: Sequence[Fetch], width: int) -> Usage:
        offsets.update(fetch.offset for fetch in fetches)
        return get(system, client, encoding, fetches, width)

    monkeypatch.setattr(MemorySystem, "get", noted)
    loads = (
        Load(scenario="range", size=3000, length=100, origin="start"),
        Load(scenario="range", size=3000, length=100, origin="middle"),
    )
    failures, record = run(tmp_path, lambda label: MemorySystem(label, []), evolve(RANGES, loads=loads))
    assert failures == 0
    assert {sample.factors["from"] for sample in record.samples} == {"start", "middle"}
    assert offsets == {0, 1500}


def test_run_of_ranges_when_a_byte_is_wrong_counts_a_failure(tmp_path: Path) -> None:
    failures, record = run(tmp_path, lambda label: MemorySystem(label, [], "wrong byte"), RANGES)
    assert failures == len(record.samples)
    assert all("not what was put" in str(sample.error) for sample in record.samples)


def test_run_of_ranges_when_the_put_fails_says_so_and_goes_on(tmp_path: Path) -> None:
    failures, record = run(tmp_path, lambda label: MemorySystem(label, [], "put"), RANGES)
    assert failures == len(record.samples) == 48
    assert {sample.error for sample in record.failures()} == {"before it began: OSError: no room"}


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
    for name in (*ALIASES, *BASES, "grid+zfec", "grid@http+undurable"):
        assert make_system(f"{name}#2").label == f"{name}#2"


def test_run_of_trees_checks_names_and_bytes_after_every_change(tmp_path: Path) -> None:
    events: list[str] = []
    failures, record = run(tmp_path, lambda label: MemorySystem(label, events), TREES)
    assert [sample.error for sample in record.failures()] == []
    assert failures == 0
    assert len(record.samples) == 2 * 2 * 6 * (2 + 1)
    assert events.count("mkdir 3") == events.count("overwrite") == 2 * 2 * 3
    assert events.count("add 4 singly") == events.count("add 4 at once") == 2 * 2 * 3
    assert events.count("add 5 at once") == 2 * 2
    assert {sample.requests for sample in record.samples if sample.scenario == "list"} == {7}


@pytest.mark.parametrize(
    ("fault", "scenarios"),
    [("lost child", {"add-each", "add-batch", "list"}), ("lost change", {"overwrite", "range"}), ("mkdir", set())],
)
def test_run_of_trees_when_a_change_is_lost_counts_failures(tmp_path: Path, fault: str, scenarios: set[str]) -> None:
    failures, record = run(tmp_path, lambda label: MemorySystem(label, [], fault), TREES)
    failed = {sample.scenario for sample in record.failures()}
    assert failures == len(record.failures()) > 0
    assert failed <= scenarios if scenarios else failed == {"mkdir", "add-each", "add-batch", "list"}
    assert failed >= scenarios - {"range"}


def test_run_of_idle_systems_watches_all_of_them_at_once(tmp_path: Path) -> None:
    failures, record = run(tmp_path, lambda label: MemorySystem(label, []), IDLE)
    assert failures == 0
    assert [sample.system for sample in record.samples].count("grid") == 2 * 2
    assert {sample.server_cpu_s for sample in record.samples} == {0.0}
    assert {sample.server_peaks_rss for sample in record.samples} == {(1024, 4096)}


def test_run_of_idle_systems_gives_each_cell_a_sample_of_its_own_load(tmp_path: Path) -> None:
    loads = (Load(scenario="idle", seconds=0.001), Load(scenario="idle", seconds=0.002))
    failures, record = run(
        tmp_path,
        lambda label: MemorySystem(label, []),
        evolve(IDLE, loads=loads, clients=("warm", "gateway"), repetitions=4, runs=1, warmups=1),
    )
    assert failures == 0
    found = Counter((one.system, one.client, one.warmup) for one in record.samples)
    assert set(found.values()) == {2 * 4, 2 * 1}
    assert len({one.unix_time for one in record.samples}) == len(record.samples)


def test_run_when_one_takes_long_keeps_its_timeline_and_no_other(tmp_path: Path) -> None:
    only = evolve(TREES, loads=(Load(scenario="mkdir", count=2),), repetitions=30, runs=1, systems=("grid",))
    _, record = run(tmp_path, lambda label: MemorySystem(label, [], "slow once"), only)
    (kept,) = record.timelines
    (slow,) = [sample for sample in record.samples if sample.order == kept.order]
    assert (slow.seconds, kept.median, kept.left_out) == (2.0, 0.25, 0)
    assert kept.events == [[0.0, "send", "ReadBatch", 0, [1], 10, 0]]


def test_run_when_a_system_has_no_such_operation_leaves_its_cells_out_and_says_so(tmp_path: Path) -> None:
    failures, record = run(
        tmp_path, lambda label: MemorySystem(label, [], "no lists" if label == "grid" else ""), TREES
    )
    assert failures == 0
    listed = {sample.system for sample in record.samples if sample.scenario == "list"}
    assert listed == {"tahoe"}
    assert [(gap.system, gap.reason) for gap in record.gaps] == [("grid", "it lists nothing")]


def test_sample_that_leaves_its_band_is_reported_at_once_and_its_status_kept(tmp_path: Path) -> None:
    told: list[str] = []
    work = tmp_path / "work"
    work.mkdir()
    header = Header(campaign="small", seed=1, environment={}, systems=("grid", "tahoe"))
    options = Options(tell=told.append, make=lambda label: MemorySystem(label, [], "slow once"))
    only = evolve(TREES, loads=(Load(scenario="mkdir", count=2),), repetitions=40, runs=1, systems=("grid",))
    with RecordWriter(tmp_path / "record.jsonl", header) as writer:
        run_campaign(only, 1, work, writer, options)
    (place,) = (number for number, line in enumerate(told) if "OUTLIER" in line)
    assert "2.000 s, where 0.250 s are usual" in told[place]
    assert "2.000 s" in told[place - 1]


def test_peer_that_is_missing_is_a_gap_and_no_failure(tmp_path: Path) -> None:
    def make(label: str) -> MemorySystem:
        if label == "tahoe":
            raise ValueError("it is not installed")
        return MemorySystem(label, [])

    failures, record = run(tmp_path, make)
    assert failures == 0
    assert {sample.system for sample in record.samples} == {"grid"}
    assert [(gap.system, gap.work, gap.reason) for gap in record.gaps] == [("tahoe", "", "it is not installed")]
