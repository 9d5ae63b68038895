"""How a workload goes through the levels of its factors: in which order, from which cache, and with which options."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

import pytest

from perf.peers.contract import Cost
from perf.peers.copy import Copy
from perf.peers.grids import GridClientName, GridPeer
from perf.records.record import Record
from perf.workloads import folders
from perf.workloads.files import cached_pages, evict
from tests.perf.workloads.folder_grid import FolderGrid, stand_in
from tests.perf.workloads.test_failing_peers import head
from tests.perf.workloads.test_workloads import index, run

__all__ = ["index"]

JOBS = [1, 2, 3, 4]


def order(record: Record, factor: str) -> list[list[object]]:
    """The levels of a factor in each run, as they came."""
    return [
        list(dict.fromkeys(one.factors[factor] for one in record.samples if one.run == number)) for number in (0, 1)
    ]


@pytest.mark.parametrize(
    ("driver", "keys", "factor"),
    [
        ("streams", f'sets = ["1b_4"]\njobs = {JOBS}', "concurrency"),
        ("reverify", f'sets = ["1b_2"]\njobs = {JOBS}', "concurrency"),
        ("repair", f'sets = ["1b_1"]\nlost = {JOBS}', "lost"),
        ("transfer-modes", f'sets = ["1b_1"]\nchunks = {JOBS}\njobs = [1]', "chunk"),
        ("copy-modes", 'sets = ["1b_2"]\nmodes = ["serial", "parallel", "saturation", "limited"]', "mode"),
        ("tiny-files", 'sets = ["1b_2"]', "way"),
        ("scale", f'sets = ["1b_1"]\nclients = {JOBS}\nnodes = [1]', "clients"),
    ],
)
def test_levels_of_a_factor_come_in_a_seeded_order_of_their_own_in_each_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, driver: str, keys: str, factor: str
) -> None:
    stand_in(monkeypatch, FolderGrid)
    monkeypatch.setattr(FolderGrid, "put_folder", lambda peer, source, name: peer.copy_into([*source.iterdir()], name))
    text = f"{head(driver, 'grid@http/transfer')}runs = 2\n{keys}\n"
    records = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        records.append(run(text, tmp_path / name))
    first, second = (
        [[one for one in levels if one != 0] for levels in order(_with(record, factor), factor)] for record in records
    )

    assert first == second
    assert first[0] != first[1]
    assert len(first[0]) == len(first[1]) >= 4
    assert sorted(map(str, first[0])) == sorted(map(str, first[1]))


def _with(record: Record, factor: str) -> Record:
    return Record(record.header, tuple(one for one in record.samples if factor in one.factors))


def test_scale_starts_every_client_before_it_measures_the_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    stand_in(monkeypatch, lambda: FolderGrid(asked=asked))

    run(f'{head("scale")}sets = ["1b_1"]\nclients = [1, 2, 4]\nnodes = [1]\n', tmp_path)

    assert asked[0] == "4 clients"
    assert sorted(asked[1:]) == ["1 clients", "2 clients", "4 clients"]


@pytest.mark.usefixtures("index")
def test_dirty_pages_are_written_before_each_operation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    events: list[str] = []
    copy = Copy.put_folder, Copy.get_folder
    monkeypatch.setattr(os, "sync", lambda: events.append("sync"))
    monkeypatch.setattr(Copy, "put_folder", lambda *words: _noted(events, "put", copy[0](*words)))
    monkeypatch.setattr(Copy, "get_folder", lambda *words: _noted(events, "get", copy[1](*words)))

    run(f'{head("size-count", "cp")}sets = ["1k_1", "1k_2"]\n', tmp_path)

    assert events == ["sync", "put", "sync", "get"] * 2


def _noted(events: list[str], name: str, cost: Cost) -> Cost:
    events.append(name)
    return cost


def test_evicted_files_have_no_page_left_in_the_cache(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "file"
    path.parent.mkdir()
    path.write_bytes(os.urandom(100_000))
    with path.open("rb") as file:
        size, before = cached_pages(file.fileno())
        cold = evict([tmp_path])
        left = cached_pages(file.fileno())[1]

    assert (size, before) == (25, 25)
    assert cold == (left == 0)
    assert not evict([tmp_path / "nothing"])


@pytest.mark.usefixtures("index")
@pytest.mark.parametrize("reached", [True, False])
def test_get_is_called_cold_only_if_what_the_server_holds_was_evicted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reached: bool
) -> None:
    held: list[list[str]] = []

    def note(places: Iterable[Path]) -> bool:
        held.append(sorted(path.name for place in places for path in place.rglob("*") if path.is_file()))
        return reached or len(held) == 1

    monkeypatch.setattr(folders, "evict", note)

    record = run(f'{head("size-count", "cp")}sets = ["1k_2"]\n', tmp_path)

    assert held == [["file00000", "file00001"]] * 2
    assert [one.factors["cache"] for one in record.samples] == ["cold", "cold" if reached else "warm"]


def test_transfer_is_measured_in_every_mode_that_it_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    stand_in(monkeypatch, lambda: FolderGrid("transfer", asked))

    record = run(f'{head("transfer-modes", "grid@http/transfer")}sets = ["1k_2"]\nchunks = [5]\njobs = [1]\n', tmp_path)

    assert not record.failures()
    assert {one.factors["mode"] for one in record.samples} == {"whole", "chunked", "chunked-stream"}
    assert sorted(words.split()[5] for words in asked) == ["chunked", "chunked-stream", "stream"]


@pytest.mark.parametrize("client", ["gateway", "library"])
def test_clients_that_stay_are_measured_without_a_warm_up_if_the_campaign_asks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, client: GridClientName
) -> None:
    asked: list[str] = []
    stand_in(monkeypatch, lambda: FolderGrid(client, asked))
    text = f'{head("copy-modes", f"grid@http/{client}")}sets = ["1k_2"]\nmodes = ["serial"]\n'
    for name in ("one", "two"):
        (tmp_path / name).mkdir()

    usual = run(text, tmp_path / "one")
    assert {one.factors["warm"] for one in usual.samples} == {"never"}
    assert asked == []

    record = run(f'{text}warm-up = ["gateway", "library"]\n', tmp_path / "two")
    assert not record.failures()
    assert {one.factors["warm"] for one in record.samples} == {"no", "yes"}
    assert sorted(asked) == ["restart", "restart", "warm up"]


def test_tahoe_is_asked_for_its_version_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "tahoe"
    program.write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/asked\necho tahoe-lafs/1.20.7\n')
    program.chmod(0o700)
    monkeypatch.setenv("GRID_TAHOE", str(program))

    for _ in range(2):
        assert GridPeer("tahoe@foolscap").versions() == {"tahoe": "1.20.7"}
    assert (tmp_path / "asked").read_text() == "--version\n"
