"""Peers that fail or lie: each failure is a sample, and everything else is measured."""

from __future__ import annotations

import shutil
import signal
from collections.abc import Sequence
from pathlib import Path

import pytest

from perf.peers.contract import Cost, Peer, PeerError
from perf.peers.copy import Copy
from perf.records.record import Record, Sample
from perf.workloads.rows import Meter
from tests.perf.workloads.folder_grid import DONE, FolderGrid, stand_in
from tests.perf.workloads.test_workloads import index, run

__all__ = ["index"]


def head(driver: str, system: str = "grid@http/cli") -> str:
    """The beginning of a workload's file."""
    return f'driver = "{driver}"\npurpose = "mine"\nsystems = ["{system}"]\n'


def falsify(path: Path) -> None:
    """Change the last byte of a file."""
    data = path.read_bytes()
    path.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))


class Liar(FolderGrid):
    """Changes a byte of every file that it stores."""

    def put(self, source: Path, name: str, number: int = 0, words: Sequence[str] = ()) -> Cost:
        cost = super().put(source, name, number, words)
        falsify(self.root / "remote" / name)
        return cost

    def put_folder(self, source: Path, name: str) -> Cost:
        return self.copy_into(sorted(source.iterdir()), name)

    def copy_into(self, paths: Sequence[Path], name: str, *words: str) -> Cost:
        cost = super().copy_into(paths, name)
        for path in (self.root / "remote" / name).iterdir():
            falsify(path)
        return cost


def ended(record: Record) -> list[tuple[str, bool]]:
    """The scenarios, and whether each has a time."""
    return [(one.scenario, one.seconds is not None) for one in record.samples]


@pytest.mark.parametrize(
    ("driver", "keys", "scenarios"),
    [
        ("size-count", 'sets = ["1k_3"]', {"put": True, "get": False}),
        ("streams", 'sets = ["1k_3"]\njobs = [2]', {"put": True, "get": False}),
        ("tiny-files", 'sets = ["1k_12"]', {"put": False}),
        ("hashing", 'sets = ["1k_1"]', {"put": False}),
        ("reverify", 'sets = ["1k_2"]\njobs = [1]', {"put": False, "put again": False, "check": True}),
        ("repair", 'sets = ["1k_1"]\nlost = [1]', {"repair": True, "get": False}),
        ("chunking", 'sets = ["1k_1"]', {"put": True, "get": False}),
    ],
)
def test_wrong_bytes_are_a_failure_without_a_speed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, driver: str, keys: str, scenarios: dict[str, bool]
) -> None:
    stand_in(monkeypatch, Liar)
    monkeypatch.setattr("perf.workloads.storing._interrupt", lambda *_: None)

    record = run(f"{head(driver)}{keys}\n", tmp_path)

    assert set(ended(record)) == set(scenarios.items())
    assert all("WrongBytesError" in str(one.error) for one in record.samples if one.seconds is None)


@pytest.mark.parametrize(
    ("driver", "keys"),
    [("tiny-files", ""), ("hashing", ""), ("reverify", "jobs = [1]"), ("repair", "lost = [1, 6]")],
)
def test_grid_that_stores_what_it_is_given_has_no_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, driver: str, keys: str
) -> None:
    stand_in(monkeypatch, FolderGrid)
    record = run(f'{head(driver)}sets = ["1k_12"]\n{keys}\n', tmp_path)
    assert record.samples
    assert not record.failures()


def test_repair_that_did_nothing_is_a_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Idle(FolderGrid):
        def put(self, source: Path, name: str, number: int = 0, words: Sequence[str] = ()) -> Cost:
            cost = super().put(source, name, number, words)
            monkeypatch.setattr(Idle, "repair", lambda *_: DONE, raising=False)
            return cost

    stand_in(monkeypatch, Idle)

    record = run(f'{head("repair")}sets = ["1k_1"]\nlost = [3]\n', tmp_path)

    assert ended(record) == [("repair", False), ("get", True)]
    assert "7 of 10 shares" in str(record.samples[0].error)


@pytest.mark.parametrize(
    ("driver", "keys", "broken"),
    [
        ("repair", 'sets = ["1k_1"]\nlost = [1]', "put"),
        ("chunking", 'sets = ["1k_1"]', "make_folder"),
        ("streams", 'sets = ["1k_1"]\njobs = [1]', "settle"),
        ("copy-modes", 'sets = ["1k_1"]\nmodes = ["serial"]\nwarm-up = ["gateway"]', "restart"),
        ("scale", 'sets = ["1k_1"]\nclients = [1]\nnodes = [1]', "use_clients"),
        ("size-count", 'sets = ["1k_1"]', "stop"),
    ],
)
def test_error_beside_an_operation_is_a_failed_sample_and_the_next_run_is_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, driver: str, keys: str, broken: str
) -> None:
    made: list[FolderGrid] = []

    def fail(*_: object) -> Cost:
        raise PeerError("broken")

    def make() -> FolderGrid:
        made.append(FolderGrid("gateway" if driver == "copy-modes" else "cli"))
        if len(made) == 1:
            monkeypatch.setattr(made[0], broken, fail)
        return made[-1]

    stand_in(monkeypatch, make)
    text = f"{head(driver)}runs = 2\n{keys}\n"

    record = run(text, tmp_path)

    failed = [one for one in record.samples if one.run == 0 and "broken" in str(one.error)]
    assert failed
    assert not [one for one in record.failures() if one.run == 1]
    assert [one for one in record.samples if one.run == 1]
    assert run(text, tmp_path, record).samples == record.samples


def test_copy_that_goes_on_after_its_interruption_is_killed_and_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("perf.workloads.storing.ENDING_S", 0.02)
    monkeypatch.setattr(FolderGrid, "copy_command", lambda *_: ["sleep", "60"])
    stand_in(monkeypatch, FolderGrid)
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # Its children ignore it too.
    try:
        record = run(f'{head("chunking")}sets = ["1k_1"]\n', tmp_path)
    finally:
        signal.signal(signal.SIGINT, before)

    assert ended(record) == [("put", True), ("get", True), ("prepare", False)]
    assert "did not end" in str(record.samples[2].error)


def test_server_that_died_is_the_failure_of_each_sample(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(_: Meter, sample: Sample, costs: Sequence[Cost]) -> Sample:
        raise ProcessLookupError("process 7 has ended")

    monkeypatch.setattr(Meter, "fill", gone)
    stand_in(monkeypatch, FolderGrid)

    record = run(f'{head("streams")}sets = ["1k_2"]\njobs = [1]\n', tmp_path)

    assert ended(record) == [("put", False), ("get", False)]
    assert all(len(one.files) == 2 for one in record.samples)
    assert all("process 7" in str(one.error) for one in record.samples)


@pytest.mark.usefixtures("index")
def test_program_without_a_server_that_returns_wrong_bytes_has_no_speed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def get_folder(peer: Peer, name: str, target: Path) -> Cost:
        shutil.copytree(peer.root / "remote" / name, target)
        falsify(next(target.iterdir()))
        return DONE

    monkeypatch.setattr(Copy, "get_folder", get_folder)

    record = run(f'{head("size-count", "cp")}sets = ["1k_3"]\n', tmp_path)

    assert ended(record) == [("put", True), ("get", False)]
    assert "1 of 3 files" in str(record.samples[1].error)
