"""Workloads as campaigns, and some carried out with the one peer that every machine has."""

from __future__ import annotations

import csv
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from attrs import asdict, evolve

from perf.__main__ import main
from perf.campaigns.files import load, names
from perf.campaigns.toml_file import CampaignError
from perf.campaigns.workload import DRIVERS, Workload, parse_set, parse_workload, workload_from
from perf.peers.contract import Cost
from perf.peers.copy import Copy
from perf.peers.s3_commands import BUCKET, TUNED_WORKERS, S5cmd
from perf.records.record import Header, Record, RecordWriter, Resumed, read_record
from perf.reports.findings import per_file, sentences
from perf.reports.fitted import knees
from perf.workloads import running
from perf.workloads.rows import Begun

GOOD = """driver = "copy-modes"
purpose = "mine"
systems = ["cp", "restic"]
sets = ["1k_4"]
modes = ["serial", "parallel", "saturation", "limited", "staccato"]
span_s = 0.05
"""


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An index of installed peers with nothing but cp."""
    monkeypatch.setenv("GRID_PEERS", str(tmp_path))
    found = {"cp": {"program": shutil.which("cp"), "version": "of this machine"}}
    (tmp_path / "peers.json").write_text(json.dumps({"found": found, "missing": {"restic": "there is no Go"}}))


def run(
    text: str, folder: Path, begun: Record | None = None, tell: Callable[[str], None] = lambda line: None
) -> Record:
    """Carry it out, into a record in the folder; or what is left of it, if it was begun."""
    workload = running.prepared(parse_workload(text, "mine", "mine.toml"), 1)
    header = Header(campaign="mine", seed=1, environment={}, systems=workload.systems, plan=asdict(workload))
    work = folder / "work"
    work.mkdir()
    after = Begun.of(begun) if begun is not None else None
    try:
        with RecordWriter(folder / "record.jsonl", header if begun is None else None) as writer:
            if begun is not None:
                writer.write_resumed(Resumed(environment={}))
            running.run_workload(workload, work, writer, tell, {}, after)
    finally:
        shutil.rmtree(work)
    return read_record(folder / "record.jsonl")


def test_there_is_a_function_for_every_driver() -> None:
    assert set(running.DRIVERS) == set(DRIVERS)


@pytest.mark.parametrize("name", names())
def test_every_workload_comes_back_from_the_plan_in_its_record(name: str) -> None:
    for smoke in (False, True):
        workload = load(name, smoke=smoke)
        if isinstance(workload, Workload):
            assert workload_from(json.loads(json.dumps(asdict(workload)))) == workload


@pytest.mark.parametrize(
    ("old", "new", "line", "says"),
    [
        ("span_s", "spam_s", 6, "there is no key spam_s"),
        ('"limited"', '"slow"', 5, "modes cannot be 'slow'; allowed: serial"),
        ('"1k_4"', '"10x_1"', 4, "sets cannot be '10x_1'; allowed: SIZE_COUNT"),
        ('"restic"', '"grid@http"', 3, "a grid has a client behind its label"),
        ('"restic"', '"cp/cli"', 3, "a peer has none"),
        ('"copy-modes"', '"copying"', 1, "driver cannot be 'copying'"),
        ("span_s = 0.05", "[smoke]\nruns = 0", 7, "runs cannot be 0"),
        ('purpose = "mine"', "=", 2, "Invalid"),
        ("span_s = 0.05", 'topology = "mars"', 6, "topology cannot be 'mars'; allowed: loopback"),
        ("span_s = 0.05", 'encoding = "3-of-40 happy 11"', 6, "needs more servers than there are, 10"),
        ('"copy-modes"', '"faults"\nmedium = "tmpfs"', 2, "the driver faults has no medium"),
        ('"restic"', '"tahoe@http/library"', 3, "the client library is Grid's own"),
        ("span_s = 0.05", "slow-clients = 0", 6, "slow-clients cannot be 0"),
        ('"restic"', '"grid@http+unhedged/cli"', 3, "options of the engine reach the client library only"),
        ("span_s = 0.05", "chunks = [5]", 6, "the driver copy-modes has no chunks"),
        ("span_s = 0.05", "budget = 5", 6, "a workload has no budget"),
        ("span_s = 0.05", "[smoke]\nkeys = 5", 7, "the driver copy-modes has no keys"),
        ("modes =", "#", 1, "nothing to do without modes; it needs systems, sets, modes"),
        ('systems = ["cp", "restic"]', "", 1, "nothing to do without systems"),
        ("span_s = 0.05", "[smoke]\nservers = 4\nencoding = '3-of-10'", 8, "needs more servers than there are, 4"),
    ],
)
def test_a_mistake_in_a_file_is_named_before_anything_starts(old: str, new: str, line: int, says: str) -> None:
    with pytest.raises(CampaignError) as caught:
        parse_workload(GOOD.replace(old, new), "mine", "mine.toml")

    assert str(caught.value).startswith(f"mine.toml:{line}: ")
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("driver", "systems", "more", "says"),
    [
        ("reverify", '"scp"', "jobs = 1", "cannot measure scp; it measures grids with their clients"),
        ("repair", '"grid@http/cli", "cp"', "lost = 1", "cannot measure cp"),
        ("scp-ciphers", '"scp", "cp"', "", "cannot measure cp; it measures scp and sftp"),
        ("transfer-modes", '"s5cmd@minio"', "jobs = 1\nchunks = 5", "it measures rclone"),
        ("faults", '"tahoe@foolscap/cli"', "", "cannot measure tahoe@foolscap/cli; it measures grid@foolscap"),
        ("moving", '"rclone@versitygw"', "", "rclone that encrypts"),
        ("size-count", '"cp"', 'sets = "images"', "has files of one size"),
    ],
)
def test_system_that_a_driver_cannot_measure_is_refused_before_anything_starts(
    driver: str, systems: str, more: str, says: str
) -> None:
    sets = "" if driver == "faults" or "sets" in more else 'sets = "1k_4"\n'
    text = f'driver = "{driver}"\npurpose = "mine"\n{sets}systems = [{systems}]\n{more}\n'

    with pytest.raises(CampaignError, match=says) as caught:
        parse_workload(text, "mine", "mine.toml")

    wrong = more if "sets" in more else f"systems = [{systems}]"
    assert str(caught.value).startswith(f"mine.toml:{text.splitlines().index(wrong) + 1}: ")


@pytest.mark.usefixtures("index")
def test_workload_with_a_site_and_warmups_has_both_in_its_record(tmp_path: Path) -> None:
    text = 'driver = "streams"\npurpose = "mine"\nsystems = ["cp"]\nsets = ["1k_2"]\njobs = [1, 2]\naes = [true, false]\nwarmups = 1\n'

    record = run(text, tmp_path)

    assert not record.failures()
    assert {one.factors.get("site") for one in record.samples} == {None, "loopback, without AES instructions"}
    assert sum(one.warmup for one in record.samples) == 4
    assert len(list(record.measured())) == 8
    assert len({(one.key, one.scenario, one.warmup) for one in record.measured()}) == 8
    assert [site.site for site in record.sites] == ["loopback, without AES instructions"]


def test_sets_are_read_as_they_are_written() -> None:
    assert parse_set("10k_1000") == (10_000, 1000)
    assert parse_set("1g_4") == (10**9, 4)


@pytest.mark.usefixtures("index")
def test_copy_modes_leaves_a_sample_for_each_mode_and_a_line_for_each_file(tmp_path: Path) -> None:
    path, output = tmp_path / "mine.toml", tmp_path / "out"
    path.write_text(GOOD)

    assert main(["run", str(path), "--output", str(output / "record.jsonl"), "--directory", str(tmp_path)]) == 0
    assert main(["report", "--output", str(output / "page.html"), str(output / "record.jsonl")]) == 0

    record = read_record(output / "record.jsonl")
    assert len(record.samples) == 10
    assert not record.failures()
    assert len({(one.key, one.scenario) for one in record.samples}) == 10
    assert all(len(one.files) == 4 for one in record.samples)
    assert len(per_file(record)) == 10
    assert [gap.reason for gap in record.gaps] == ["restic is missing: there is no Go"]
    with (output / "page-files.csv").open() as file:
        assert len(list(csv.DictReader(file))) == 40
    assert any("staccato" in line for line in sentences(record))
    assert "restic is missing" in (output / "page.html").read_text()


@pytest.mark.usefixtures("index")
@pytest.mark.parametrize("driver", ["streams", "size-count", "tiny-files"])
def test_other_drivers_say_what_they_found(tmp_path: Path, driver: str) -> None:
    record = run(
        f'driver = "{driver}"\npurpose = "mine"\nsystems = ["cp"]\nsets = ["1k_10", "100k_10"]\n'
        + ("jobs = [1, 2]\n" if driver == "streams" else ""),
        tmp_path,
    )

    assert record.samples
    assert not record.failures()
    assert sentences(record)
    assert bool(knees(record)) == (driver == "streams")


@pytest.mark.usefixtures("index")
def test_doors_leaves_large_sets_of_files_to_clients_that_stay(tmp_path: Path) -> None:
    text = 'driver = "doors"\npurpose = "mine"\nsystems = ["cp"]\nsets = ["1k_1", "1k_9", "1k_101"]\njobs = [4]\nkeys = 9\nslow-clients = 3\n'

    record = run(text, tmp_path)

    assert not record.failures()
    assert {(one.scenario, one.count, one.factors["concurrency"]) for one in record.samples} == {
        (scenario, count, 1) for scenario in ("put", "get") for count in (1, 9)
    }


@pytest.mark.parametrize(("option", "most"), [("", 9), ("+tuned", 101)])
def test_doors_moves_large_sets_of_files_by_one_command_of_a_tuned_s5cmd(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, option: str, most: int
) -> None:
    monkeypatch.setenv("GRID_PEERS", str(tmp_path))
    found = {name: {"program": shutil.which("cp"), "version": "of this machine"} for name in ("s5cmd", "versitygw")}
    (tmp_path / "peers.json").write_text(json.dumps({"found": found, "missing": {}}))
    commands = _copy_instead(monkeypatch)
    text = f'driver = "doors"\npurpose = "mine"\nsystems = ["s5cmd@versitygw{option}"]\nsets = ["1k_9", "1k_101"]\njobs = [4]\n'

    record = run(text, tmp_path)

    assert not record.failures()
    assert max(one.count for one in record.samples) == most
    assert {one.scenario for one in record.samples if one.count == most} == {"put", "get"}
    if option:
        assert [one.factors["concurrency"] for one in record.samples if one.count == 101] == [TUNED_WORKERS] * 2
    assert len(commands) == 2 * 9 + (2 if option else 0)


def _copy_instead(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Make s5cmd copy below its root, without a server. Returns the sources of its commands, a list that grows."""
    commands: list[str] = []

    def copy(peer: S5cmd, source: str, target: str) -> Cost:
        commands.append(source)
        here, there = (Path(name.replace(f"s3://{BUCKET}", f"{peer.root}/remote")) for name in (source, target))
        if here.name == "*" or here.is_dir():
            shutil.copytree(here.parent if here.name == "*" else here, there)
        else:
            shutil.copyfile(here, there)
        return Cost(seconds=0.1)

    monkeypatch.setattr(S5cmd, "bring_up", lambda peer, server: None)
    monkeypatch.setattr(S5cmd, "run", lambda peer, *words: copy(peer, str(words[-2]), str(words[-1])))
    return commands


@pytest.mark.usefixtures("index")
def test_a_workload_that_was_interrupted_goes_on_with_what_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = GOOD.replace(', "restic"', "")
    monkeypatch.setattr(Copy, "put", _interrupted_at(10))
    with pytest.raises(KeyboardInterrupt):
        run(text, tmp_path)
    monkeypatch.undo()
    monkeypatch.setenv("GRID_PEERS", str(tmp_path))
    begun = read_record(tmp_path / "record.jsonl")
    assert 0 < len(begun.samples) < 10

    whole = run(text, tmp_path, begun)

    assert len(whole.samples) == 10
    assert not whole.failures()
    assert len({(one.run, one.order) for one in whole.samples}) == 10
    again = run(text, tmp_path, whole)
    assert again.samples == whole.samples


def test_keys_of_a_campaign_are_not_those_of_a_workload() -> None:
    header = Header(campaign="mine", seed=1, environment={}, systems=("cp",), plan={"driver": "streams"})

    assert Record(header, (), ended=frozenset({"a"})).done_keys() == {"a"}
    assert Record(evolve(header, plan={}), (), ended=frozenset({"a"})).done_keys() == set()


def _interrupted_at(number: int) -> Callable[[Copy, Path, str], Cost]:
    """A put of cp that is interrupted at its n-th call."""
    original, calls = Copy.put, 0

    def put(self: Copy, source: Path, name: str) -> Cost:
        nonlocal calls
        calls += 1
        if calls == number:
            raise KeyboardInterrupt
        return original(self, source, name)

    return put
