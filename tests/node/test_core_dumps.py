"""Nodes leave no core files."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from perf.processes.node_directory import NodeSettings, grid_executable, make_node
from perf.processes.node_process import NodeProcess, free_ports

_PROGRAM = """
import ctypes, resource
from grid.node.core_dumps import forbid_core_dumps
PR_GET_DUMPABLE = 3
prctl = ctypes.CDLL(None).prctl
before = prctl(PR_GET_DUMPABLE, 0, 0, 0, 0)
forbid_core_dumps()
print(before, prctl(PR_GET_DUMPABLE, 0, 0, 0, 0), *resource.getrlimit(resource.RLIMIT_CORE))
"""


def test_process_when_told_so_cannot_be_dumped() -> None:
    done = subprocess.run([sys.executable, "-c", _PROGRAM], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["1", "0", "0", "0"]


@pytest.mark.parametrize("command", ["introducer", "run", "gateway"])
def test_node_when_it_runs_has_no_room_for_a_core_file(tmp_path: Path, command: str) -> None:
    role = "introducer" if command == "introducer" else "client"
    port = free_ports(1)[0] if role == "introducer" else 0
    settings = NodeSettings(kind="grid", role="introducer" if role == "introducer" else "client", port=port)
    node = make_node(tmp_path / role, settings)
    if command == "gateway":
        node = NodeProcess(node.directory, [grid_executable(), "gateway", "--listen", "0", str(node.directory)])
    try:
        node.start()
        node.wait_for(lambda: "running" in node.log, "start")
        lines = Path(f"/proc/{node.pid}/limits").read_text().splitlines()
        (core,) = (line.split() for line in lines if line.startswith("Max core file size"))
        assert core[4:6] == ["0", "0"]
    finally:
        node.stop()
