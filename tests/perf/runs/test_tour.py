"""Tours: many campaigns, one after the other, continued where they were interrupted, and one page of all."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from attrs import evolve

from perf.__main__ import main
from perf.campaigns.files import load, names
from perf.campaigns.toml_file import CampaignError
from perf.campaigns.workload import Workload
from perf.records.record import WHOLE, RecordWriter, read_record
from perf.runs.tour import read_tour
from tests.perf.samples import HEADER, sample

COPIES = """
[[campaign]]
name = "size-count"
systems = ["cp"]
sets = ["1k_3"]
runs = {runs}

[[campaign]]
name = "tiny-files"
systems = ["cp"]
sets = ["1k_2", "2k_2"]
runs = 1
"""


def written(folder: Path, text: str) -> str:
    """A tour file with this text."""
    path = folder / "own.toml"
    path.write_text(text)
    return str(path)


def test_published_tour_names_campaigns_and_values_that_there_are() -> None:
    stops = read_tour("published")
    assert {stop.campaign for stop in stops} <= set(names())
    assert [stop.campaign for stop in stops][:4] == ["put-get", "small-files", "mutable", "directories"]


def test_changes_reach_campaigns_and_workloads() -> None:
    campaign = load("put-get", changes={"runs": 7, "systems": ["grid@http"]})
    assert (campaign.runs, campaign.systems) == (7, ("grid@http",))
    workload = load("size-count", changes={"sets": ["1k_3"]})
    assert isinstance(workload, Workload)
    assert workload.sets == ("1k_3",)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "no \\[\\[campaign\\]\\]"),
        ("campaign = 1", "no \\[\\[campaign\\]\\]"),
        ("[[campaign]]\nruns = 1", "has no name"),
        ('[[campaign]]\nname = "no-such"', "no campaign 'no-such'"),
        ('[[campaign]]\nname = "put-get"\nruns = 0', "put-get: .*runs cannot be 0"),
        ('[[campaign]]\nname = "put-get"\nrunz = 1', "put-get: .*there is no key runz"),
        ('[[campaign]]\nname = "put-get"\n[[campaign]]\nname = "put-get"', "comes twice"),
        ("[[campaign]", "own.toml: "),
    ],
)
def test_invalid_tour_is_refused_before_anything_starts(tmp_path: Path, text: str, problem: str) -> None:
    with pytest.raises(CampaignError, match=problem):
        read_tour(written(tmp_path, text))


def test_value_that_is_not_toml_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "put-get", "--set", "runs=many"]) == 1
    assert "'runs=many' is not KEY=VALUE as in TOML" in capsys.readouterr().err


def test_record_that_exists_is_not_overwritten(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record = tmp_path / "record.jsonl"
    record.write_text("measured before\n")
    assert main(["run", "put-get", "--output", str(record)]) == 1
    assert f"{record} exists already: name another file, or continue it with `perf resume`" in capsys.readouterr().err
    assert record.read_text() == "measured before\n"


def test_tour_measures_each_campaign_once_and_writes_one_page(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tour, folder = written(tmp_path, COPIES.format(runs=2)), tmp_path / "found"
    assert main(["tour", tour, "--output", str(folder)]) == 0
    first = read_record(folder / "size-count.jsonl")
    assert {sample.system for sample in first.samples} == {"cp"}
    assert {sample.run for sample in first.samples} == {0, 1}
    text = (folder / "index.html").read_text()
    assert "size-count" in text
    assert "tiny-files" in text
    assert (folder / "samples.csv").stat().st_size > 0
    capsys.readouterr()
    assert main(["tour", tour, "--output", str(folder)]) == 0
    assert capsys.readouterr().err.count("measured before") == 2
    assert len(read_record(folder / "size-count.jsonl").samples) == len(first.samples)


def test_tour_without_time_says_what_it_did_not_begin(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tour, folder = written(tmp_path, COPIES.format(runs=1)), tmp_path / "found"
    assert main(["tour", tour, "--minutes", "0", "--output", str(folder)]) == 1
    told = capsys.readouterr().err
    assert "not begun; the same command continues: size-count, tiny-files" in told
    assert "nothing was measured" in told


@pytest.mark.parametrize("ended", [False, True])
def test_campaign_is_done_when_its_record_says_that_it_ended_not_when_something_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ended: bool
) -> None:
    class Child:
        def __init__(self, command: Sequence[str], **_: object) -> None:
            with RecordWriter(Path(command[command.index("--output") + 1]), HEADER) as writer:
                writer.write(evolve(sample(), seconds=None, error="x"))
                if ended:
                    writer.write_end(WHOLE)

        def wait(self) -> int:
            return 1

    monkeypatch.setattr("perf.runs.tour.subprocess.Popen", Child)
    tour, folder = written(tmp_path, '[[campaign]]\nname = "put-get"'), tmp_path / "found"
    assert main(["tour", tour, "--output", str(folder)]) == 1
    assert (folder / "put-get.jsonl").exists()
    assert (folder / "put-get.done").exists() == ended


HEEDFUL = """
import runpy, signal
signal.signal(signal.SIGINT, signal.default_int_handler)
runpy.run_module("perf", run_name="__main__", alter_sys=True)
"""
"""perf, which Ctrl-C ends even if these tests run in the background of a shell, where it is ignored."""


def test_interrupted_tour_keeps_what_it_measured_and_continues(tmp_path: Path) -> None:
    tour, folder = written(tmp_path, COPIES.format(runs=1000)), tmp_path / "found"
    command = [sys.executable, "-c", HEEDFUL, "tour", tour, "--output", str(folder)]
    began = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True)
    record = folder / "size-count.jsonl"
    while began.poll() is None and not (record.exists() and len(record.read_bytes().splitlines()) > 4):
        time.sleep(0.05)
    os.killpg(began.pid, signal.SIGINT)
    _, told = began.communicate(timeout=60)
    assert began.returncode == 128 + signal.SIGINT, told
    assert "the same command continues" in told
    assert "Traceback" not in told
    before = read_record(record).samples
    assert before
    assert not (folder / "size-count.done").exists()
    later = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True)
    while later.poll() is None and len(record.read_bytes().splitlines()) <= len(before) + 5:
        time.sleep(0.05)
    os.killpg(later.pid, signal.SIGINT)
    later.communicate(timeout=60)
    kept = [evolve(one, superseded=False) for one in read_record(record).samples[: len(before)]]
    assert kept == list(before)
