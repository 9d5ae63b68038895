"""A campaign that is killed: its nodes die with it, and the next run removes what it left."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from perf.network.line import Access
from perf.network.namespaces import NAMED, remove_left_behind
from perf.network.spokes import Lined, Spokes
from perf.processes.node_process import wait_until

_RUN = """
import subprocess, sys, time
from perf.network.spokes import Lined, Spokes
with Lined("killed", Spokes(servers=1), rate_s=0, urgent=False) as made:
    node = subprocess.Popen(made.placement.servers[0].command(["sleep", "600"]))
    while not open(f"/proc/{node.pid}/cmdline").read().startswith("sleep"):
        time.sleep(0.01)
    print(node.pid, made.line.pid, flush=True)
    time.sleep(600)
"""


def _alive(pid: int) -> bool:
    """Whether it runs still; a process that ended and was not waited for does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_run_that_is_killed_takes_its_nodes_along_and_the_next_removes_its_namespaces(line_possible: None) -> None:
    run = subprocess.Popen([sys.executable, "-c", _RUN], stdout=subprocess.PIPE, text=True)
    assert run.stdout is not None
    pids = [int(pid) for pid in run.stdout.readline().split()]
    assert len(pids) == 2
    assert all(_alive(pid) for pid in pids)
    # A run beside it leaves it alone.
    remove_left_behind()
    assert list(NAMED.glob(f"gridperf-{run.pid}-*"))
    run.kill()
    run.wait()
    run.stdout.close()
    wait_until(lambda: not any(map(_alive, pids)), "the nodes of a killed run to die")
    assert list(NAMED.glob(f"gridperf-{run.pid}-*"))
    with Lined("next", Spokes(servers=1, client=Access(), server=Access()), rate_s=0, urgent=False):
        assert not list(NAMED.glob(f"gridperf-{run.pid}-*"))
