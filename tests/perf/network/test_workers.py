"""Machines of a cluster: embedded, and as real processes in separate namespaces."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path

import pytest

from perf.network.line import Access
from perf.network.spokes import Bridged, Spokes
from perf.network.workers import Cluster, Interval, Machine, connected, merged_rate, own_pid
from perf.processes.node_process import wait_until
from tests.perf.network.cluster import cluster_on
from tests.perf.network.conftest import expect, expect_distributed

SLEEPER = ["sleep", "600"]


def machine(offset_s: float = 0.0) -> Machine:
    return Machine(address="tcp://a:1", role="client", host="a", offset_s=offset_s, round_trip_s=0.0)


def interval(began: float, ended: float, amount: float) -> Interval:
    return Interval(began=began, ended=ended, amount=amount)


def alive(pid: int) -> bool:
    """Whether it runs still; a process that ended and was not waited for does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_rate_of_several_clients_is_that_of_the_time_in_which_all_ran() -> None:
    early = (machine(), [interval(0, 2, 200), interval(2, 4, 200)])
    late = (machine(offset_s=100.0), [interval(102, 104, 20), interval(104, 106, 20)])
    # From 2 to 4: 200 of the first, 20 of the second, whose clock is 100 s ahead.
    assert merged_rate([early, late]) == 110
    # An interval over the edge counts for its part.
    assert merged_rate([(machine(), [interval(0, 4, 400)]), (machine(), [interval(3, 5, 2)])]) == 101
    assert merged_rate([early, (machine(), [interval(9, 10, 1)])]) == 0.0
    assert merged_rate([early, (machine(), [])]) == 0.0
    assert merged_rate([]) == 0.0


def _fails() -> int:
    raise ValueError("nothing to read")


@pytest.mark.nightly(
    "tests/perf/runs/test_machines.py::test_campaign_on_machines_without_a_scheduler_runs_on_a_cluster_of_its_own"
)
def test_cluster_without_a_scheduler_runs_nodes_and_loads_on_this_machine() -> None:
    expect_distributed()
    with connected() as cluster:
        machines = cluster.machines()
        assert [one.role for one in machines] == ["server", "server", "client"]
        assert all(abs(one.offset_s) <= one.round_trip_s for one in machines)
        assert_present_beside_the_timer(cluster, {one.address for one in machines})
        node = cluster.start(machines[0], {"private/said": "hello"}, ["cat", "{directory}/private/said"])
        wait_until(lambda: node.read("run.log").result() == "hello", "the node to say what it found")
        sleeper = cluster.start(machines[1], {}, SLEEPER)
        pid = sleeper.pid().result()
        (done,) = cluster.run(machines[2:], own_pid)
        assert done.result not in (None, os.getpid())
        assert done.failure == ""
        (failed,) = cluster.run(machines[2:], _fails)
        assert (failed.result, failed.failure) == (None, "ValueError: nothing to read")
    assert not alive(pid)


def assert_present_beside_the_timer(cluster: Cluster, addresses: set[str]) -> None:
    """Nobody counts as gone while the client's timer asks the scheduler for less than all, as it does every two seconds."""
    client, over = cluster._client, threading.Event()

    def ask() -> None:
        while not over.is_set():
            client.sync(client._update_scheduler_info)

    timer = threading.Thread(target=ask)
    timer.start()
    try:
        found = [cluster.present() for _ in range(100)]
    finally:
        over.set()
        timer.join()
    assert found == [addresses] * len(found)


def test_worker_that_dies_takes_its_nodes_along_and_leaves_a_row_of_failure() -> None:
    expect_distributed()
    expect("root", "ip", "tc", "nsenter", "setpriv")
    spokes = Spokes(servers=2, client=Access(), server=Access())
    with (
        Bridged("cluster", spokes, rate_s=0) as network,
        cluster_on(network) as (address, workers),
        connected(address) as cluster,
    ):
        first, second, client = cluster.machines()
        assert [first.role, second.role, client.role] == ["server", "server", "client"]
        assert {first.host, second.host} == {host.address for host in network.placement.servers}
        pids = [cluster.start(one, {}, SLEEPER).pid().result() for one in (first, second)]
        networks = {os.stat(f"/proc/{pid}/ns/net").st_ino for pid in pids}
        assert len(networks) == 2
        (victim,) = cluster.run([first], own_pid)
        assert victim.result is not None
        os.kill(victim.result, signal.SIGKILL)
        wait_until(lambda: not alive(pids[0]), "the node of a dead worker to die")
        lost, kept = cluster.run([first, second], time.time)
        assert lost.failure.startswith("the worker at ")
        assert kept.result is not None
        assert alive(pids[1])
        assert [one.address for one in cluster.stop()] == [first.address]
        assert not alive(pids[1])
        assert any(worker.poll() is not None for worker in workers)
