"""A workload that was killed in the middle of a subject: what is left is done once, and as a run of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from attrs import evolve

from perf.peers.contract import Cost
from perf.records.record import Record, read_record
from perf.reports.report import speedups
from perf.reports.samples_table import rows, write_files_csv
from perf.workloads import growing, subjects
from tests.perf.workloads.folder_grid import FolderGrid
from tests.perf.workloads.test_workloads import run

SYSTEMS = ("grid@http/cli", "grid@foolscap/cli", "grid@http/cp")
TEXT = f'driver = "size-count"\npurpose = "mine"\nsystems = {[*SYSTEMS]}\nsets = ["1k_3"]\nruns = 2\nwarmups = 1\n'
JOBS = f'driver = "streams"\npurpose = "mine"\nsystems = {[*SYSTEMS[:2]]}\nsets = ["1k_2"]\njobs = [1, 2]\n'

KILLED = """
import sys
from pathlib import Path
from tests.perf.workloads import test_resume
test_resume.killed_at(int(sys.argv[1]), Path(sys.argv[2]))
"""


class Named(FolderGrid):
    """A grid with the label that a workload asked for, whose n-th get of a folder, counted over all, is the last thing that happens."""

    gets = 0
    last = 0
    end: Callable[[], None] = staticmethod(lambda: None)

    def get_folder(self, name: str, target: Path, *words: str) -> Cost:
        Named.gets += 1
        if Named.gets == Named.last:
            Named.end()
        return super().get_folder(name, target, *words)


def named(label: str, *_: object) -> FolderGrid:
    peer = Named()
    peer.label = label
    return peer


@pytest.fixture(autouse=True)
def grids() -> Iterator[None]:
    """Grids of folders in place of every system, none of which ends anything."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (subjects, growing):
            patch.setattr(module, "make_subject", named)
        patch.setattr(Named, "gets", 0)
        patch.setattr(Named, "last", 0)
        yield


def killed_at(number: int, folder: Path) -> None:
    """Run the workload in this process until its n-th get, which kills it."""
    for module in (subjects, growing):
        module.make_subject = named  # type: ignore[attr-defined]
    Named.last, Named.end = number, staticmethod(lambda: os.kill(os.getpid(), signal.SIGKILL))
    run(TEXT, folder)


def killed(folder: Path, number: int) -> Record:
    """The record of a workload that was killed at its n-th get. Gets of files, which warm-ups do, do not count."""
    done = subprocess.run([sys.executable, "-c", KILLED, str(number), str(folder)], check=False)
    assert done.returncode == -signal.SIGKILL
    (folder / "work").rename(folder / f"left-{number}")
    return read_record(folder / "record.jsonl")


def counted(record: Record) -> Counter[tuple[str, str, int]]:
    return Counter((one.system, one.scenario, one.run) for one in record.measured())


def test_half_of_an_operation_before_a_kill_does_not_count_once_it_was_done_anew(tmp_path: Path) -> None:
    begun = killed(tmp_path, 2)
    first, second, third = dict.fromkeys(one.system for one in run(TEXT, _beside(tmp_path)).samples)
    assert counted(begun) == Counter([(first, "put", 0), (first, "get", 0), (second, "put", 0)])

    whole = run(TEXT, tmp_path, begun)

    # What was left of the first run is a third one, of today alone.
    assert counted(whole) == Counter(
        [
            *((first, scenario, 0) for scenario in ("put", "get")),
            *((system, scenario, 2) for system in (second, third) for scenario in ("put", "get")),
            *((system, scenario, 1) for system in SYSTEMS for scenario in ("put", "get")),
        ]
    )
    (half,) = [one for one in whole.samples if one.superseded]
    assert (half.system, half.scenario, half.run) == (second, "put", 0)
    assert [(one.run, one.site, one.found) for one in whole.sites] == [(2, "loopback", {"continues run": 1})]
    assert len({(one.run, one.order) for one in whole.samples}) == len(whole.samples)
    (row,) = [row for row in rows([whole]) if row["superseded"]]
    assert row["system"] == second
    assert run(TEXT, tmp_path, whole).samples == whole.samples


def _beside(folder: Path) -> Path:
    made = folder / "beside"
    made.mkdir()
    return made


def test_systems_of_two_sessions_are_not_paired(tmp_path: Path) -> None:
    whole = run(TEXT, tmp_path, killed(tmp_path, 2))
    order = list(dict.fromkeys(one.system for one in whole.samples))
    pairs = [(order[0], order[1], 1), (order[0], order[2], 1), (order[1], order[2], 2)]
    for one, other, runs in pairs:
        ratios = speedups(whole, one, other)
        assert len(ratios) == 2
        assert {ratio.count for ratio in ratios.values()} == {runs}


def test_workload_that_is_killed_twice_counts_everything_once(tmp_path: Path) -> None:
    begun = killed(tmp_path, 2)
    Named.last, Named.end = 1, staticmethod(_interrupt)
    with pytest.raises(KeyboardInterrupt):
        run(TEXT, tmp_path, begun)
    again = read_record(tmp_path / "record.jsonl")
    assert sum(one.superseded for one in again.samples) == 1

    whole = run(TEXT, tmp_path, again)

    assert Counter((one.system, one.scenario) for one in whole.measured()) == Counter(
        {(system, scenario): 2 for system in SYSTEMS for scenario in ("put", "get")}
    )
    assert sum(one.superseded for one in whole.samples) == 2
    assert [(one.run, one.found) for one in whole.sites] == [(2, {"continues run": 1}), (3, {"continues run": 1})]


def test_run_that_was_killed_within_its_first_operation_is_another_one_later(tmp_path: Path) -> None:
    begun = killed(tmp_path, 4)  # The first of the second run.
    assert {run for _, _, run in counted(begun)} == {0, 1}
    whole = run(TEXT, tmp_path, begun)
    assert {run for _, _, run in counted(whole)} == {0, 2}
    assert [one.found for one in whole.sites] == [{"continues run": 2}]


def test_level_that_was_done_before_a_kill_is_not_repeated_for_its_subject(tmp_path: Path) -> None:
    text = TEXT.replace('["1k_3"]', '["1k_3", "1k_4"]').replace("warmups = 1\n", "")
    Named.last, Named.end = 2, staticmethod(_interrupt)
    with pytest.raises(KeyboardInterrupt):
        run(text, tmp_path)
    begun = read_record(tmp_path / "record.jsonl")
    (done,) = [one for one in begun.samples if one.scenario == "get"]

    whole = run(text, tmp_path, begun)

    kinds = Counter((one.system, one.scenario, one.count) for one in whole.measured())
    assert len(kinds) == 3 * 2 * 2
    assert set(kinds.values()) == {2}
    mine = [one for one in whole.measured() if (one.system, one.scenario) == (done.system, "get")]
    assert sorted((one.run, one.count == done.count) for one in mine) == [(0, True), (1, False), (1, True), (2, False)]


def test_site_of_which_nothing_is_left_is_not_recorded_again(tmp_path: Path) -> None:
    text = TEXT.replace("runs = 2\n", "aes = [false, true]\n")
    Named.last, Named.end = 4, staticmethod(_interrupt)
    with pytest.raises(KeyboardInterrupt):
        run(text, tmp_path)
    begun = read_record(tmp_path / "record.jsonl")
    site = "loopback, without AES instructions"
    assert [(one.run, one.site) for one in begun.sites] == [(0, site)]

    whole = run(text, tmp_path, begun)

    assert [(one.run, one.site) for one in whole.sites] == [(0, site), (1, "loopback")]
    assert whole.sites[1].found == {"continues run": 1}
    places = Counter((one.system, one.scenario, str(one.factors.get("site", ""))) for one in whole.measured())
    assert len(places) == 3 * 2 * 2
    assert set(places.values()) == {1}


def test_files_of_superseded_samples_are_not_in_the_table_of_files(tmp_path: Path) -> None:
    record = run(JOBS, tmp_path)
    lines = sum(len(one.files) for one in record.samples)
    first, *others = record.samples
    assert write_files_csv([evolve(record, samples=(evolve(first, superseded=True), *others))], tmp_path / "a.csv")
    assert len((tmp_path / "a.csv").read_text().splitlines()) == 1 + lines - len(first.files)


def _interrupt() -> None:
    raise KeyboardInterrupt
