"""A run of real processes that is interrupted or killed: no node or network remains, and `resume` continues it."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from perf.network.doctor import LINE_NEEDS
from perf.network.namespaces import NAMED, PREFIX, owner_lives
from perf.processes.installation import ROOT
from perf.records.record import read_record
from tests.perf.network.conftest import expect

# Starts the harness with SIGINT as a terminal has it, whatever this process was started with.
HARNESS = """import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
from perf.__main__ import main
sys.exit(main(sys.argv[1:]))
"""

CAMPAIGNS = {
    "clients": """purpose = "mine"
systems = ["grid@http"]
encoding = "1-of-2 happy 1"
servers = 2
runs = 1
warmups = 0
repetitions = 1000

[[work]]
operation = "put-get"
size = 1000
""",
    "workload": """driver = "streams"
purpose = "mine"
systems = ["grid@http/gateway"]
servers = 2
runs = 1
sets = ["1k_100"]
jobs = [1, 2, 3, 4, 5, 6, 7, 8]
""",
}


ON_A_LINE = """purpose = "mine"
systems = ["grid@http"]
encoding = "1-of-2 happy 1"
topology = "wan1"
servers = 2
runs = 1
warmups = 0
repetitions = 4

[[work]]
operation = "put-get"
size = 1000
"""


@pytest.mark.parametrize(
    ("kind", "signal_number"),
    [
        ("clients", signal.SIGINT),
        pytest.param("workload", signal.SIGINT, marks=pytest.mark.deep),
        ("workload", signal.SIGKILL),
    ],
)
def test_all_nodes_end_with_a_run_that_is_stopped(tmp_path: Path, kind: str, signal_number: int) -> None:
    path, output = tmp_path / "mine.toml", tmp_path / "record.jsonl"
    path.write_text(CAMPAIGNS[kind])
    words = ["run", str(path), "--smoke", "--output", str(output), "--directory", str(tmp_path)]
    run = subprocess.Popen([sys.executable, "-c", HARNESS, *words], stderr=subprocess.PIPE, text=True, cwd=ROOT)
    assert run.stderr is not None
    try:
        said = next((line for line in run.stderr if "run 1 " in line), "")
        nodes = psutil.Process(run.pid).children(recursive=True)
        run.send_signal(signal_number)
        last = run.stderr.read()
    finally:
        run.kill()
        run.wait()
        run.stderr.close()

    assert said
    assert len(nodes) >= 3
    _, alive = psutil.wait_procs(nodes, timeout=60)
    assert alive == []
    assert read_record(output).samples
    if signal_number == signal.SIGINT:
        assert run.returncode == 130
        assert f"go on with: python -m perf resume {output}" in last


@pytest.mark.parametrize("signal_number", [pytest.param(signal.SIGINT, marks=pytest.mark.deep), signal.SIGKILL])
def test_run_in_namespaces_that_is_stopped_leaves_nothing_and_resume_does_the_rest(
    tmp_path: Path, signal_number: int
) -> None:
    expect(*LINE_NEEDS)
    path, output = tmp_path / "mine.toml", tmp_path / "record.jsonl"
    path.write_text(ON_A_LINE)
    words = ["run", str(path), "--smoke", "--repetitions", "4", "--output", str(output), "--directory", str(tmp_path)]
    run = subprocess.Popen([sys.executable, "-c", HARNESS, *words], stderr=subprocess.PIPE, text=True, cwd=ROOT)
    assert run.stderr is not None
    try:
        said = next((line for line in run.stderr if "run 1 " in line), "")
        children = psutil.Process(run.pid).children(recursive=True)
        names = _namespaces(run.pid)
        run.send_signal(signal_number)
        run.stderr.read()
    finally:
        run.kill()
        run.wait()
        run.stderr.close()

    assert said
    # The client's host, the introducer's and two servers', and the line between them with its own process.
    assert len(names) >= 4
    assert len(children) >= 5
    _, alive = psutil.wait_procs(children, timeout=60)
    assert alive == []
    if (
        signal_number == signal.SIGINT
    ):  # What a killed run leaves is removed by the next one, also by that of another test.
        assert _namespaces(run.pid) == []
    begun = len(read_record(output).samples)
    assert 1 <= begun < 8

    words = ["resume", str(output), "--directory", str(tmp_path)]
    again = subprocess.run(
        [sys.executable, "-c", HARNESS, *words], capture_output=True, text=True, cwd=ROOT, check=False
    )
    assert again.returncode == 0, again.stderr
    record = read_record(output)
    assert not record.failures()
    assert len({(one.key, one.scenario) for one in record.measured()}) == 8
    assert len({(one.run, one.order) for one in record.samples}) == len(record.samples)
    assert _namespaces(run.pid) == []
    assert not [name for name in _namespaces() if name not in names and not owner_lives(name)]


def _namespaces(pid: int | None = None) -> list[str]:
    """Those of campaigns, or of that one process."""
    return [path.name for path in NAMED.glob(f"{PREFIX}-{'*' if pid is None else pid}-*")]
