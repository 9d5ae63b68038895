"""A run of real processes that is interrupted or killed: no node is left."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from perf.processes.installation import ROOT
from perf.records.record import read_record

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


@pytest.mark.parametrize(
    ("kind", "signal_number"),
    [("clients", signal.SIGINT), ("workload", signal.SIGINT), ("workload", signal.SIGKILL)],
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
