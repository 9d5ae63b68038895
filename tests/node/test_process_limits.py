"""The number of descriptors of a node, and that it leaves no core files."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from grid.limits import MAX_STORAGE_CONNECTIONS
from grid.node.process_limits import WANTED, descriptors_in_use, plan_descriptors
from grid.wire.connections.connection_limit import ConnectionLimit
from perf.processes.node_directory import NodeSettings, grid_executable, make_node
from perf.processes.node_process import NodeProcess, free_ports


def raised_from(soft: int, hard: int) -> str:
    program = (
        "import resource, sys\n"
        "from grid.node.process_limits import raise_descriptor_limit\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (int(sys.argv[1]), int(sys.argv[2])))\n"
        "print(raise_descriptor_limit(), *resource.getrlimit(resource.RLIMIT_NOFILE))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(soft), str(hard)], capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def test_small_soft_limit_is_raised_to_the_hard_one() -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    allowed = 512 if hard == resource.RLIM_INFINITY else min(512, hard)
    assert raised_from(allowed // 2, allowed) == f"{allowed} {allowed} {allowed}"


def test_large_soft_limit_is_left_alone() -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    allowed = WANTED if hard == resource.RLIM_INFINITY else min(WANTED, hard)
    assert raised_from(allowed, allowed) == f"{allowed} {allowed} {allowed}"


@pytest.mark.parametrize("limit", [40, 64, 100, 256, 1024, 4096, WANTED])
def test_descriptors_however_few_are_enough_for_connections_and_files_together(limit: int) -> None:
    in_use = 10
    plan = plan_descriptors(limit, in_use)
    connection_limit = ConnectionLimit(plan.connections)
    assert in_use + connection_limit.most + plan.files <= limit
    assert plan.files >= min(8, plan.connections)
    assert plan.connections >= 4


def test_descriptors_when_few_still_leave_room_for_several_clients() -> None:
    plan = plan_descriptors(64, 10)
    assert plan.connections >= 16
    assert plan.files >= 16


def test_descriptors_in_use_are_counted() -> None:
    before = descriptors_in_use()
    with open(os.devnull), open(os.devnull):
        assert descriptors_in_use() == before + 2


_PROGRAM = """
import ctypes, resource
from grid.runtime import forbid_core_dumps
PR_GET_DUMPABLE = 3
prctl = ctypes.CDLL(None).prctl
before = prctl(PR_GET_DUMPABLE, 0, 0, 0, 0)
forbid_core_dumps()
print(before, prctl(PR_GET_DUMPABLE, 0, 0, 0, 0), *resource.getrlimit(resource.RLIMIT_CORE))
"""


def test_process_when_dumping_is_off_cannot_be_dumped() -> None:
    done = subprocess.run([sys.executable, "-c", _PROGRAM], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["1", "0", "0", "0"]


_COMMAND = """
import ctypes
from grid.cli.terminal.runner import run_task
async def task(reactor):
    return ctypes.CDLL(None).prctl(3, 0, 0, 0, 0)
print(run_task(task))
"""


def test_command_of_any_kind_when_it_runs_cannot_be_dumped() -> None:
    done = subprocess.run([sys.executable, "-c", _COMMAND], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["0"]


@pytest.mark.parametrize("command", ["introducer", "run", "gateway"])
def test_node_when_it_runs_can_write_no_core_file(tmp_path: Path, command: str) -> None:
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


def test_descriptors_however_many_allow_no_more_connections_than_the_node_may_have() -> None:
    assert plan_descriptors(WANTED, 10, MAX_STORAGE_CONNECTIONS).connections == MAX_STORAGE_CONNECTIONS
