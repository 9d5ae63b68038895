"""Campaigns on the machines of a cluster: embedded, and with a real scheduler and workers in namespaces."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path

import pytest

from perf.__main__ import main
from perf.campaigns.campaign import Cell, Encoding, Load
from perf.network.spokes import Bridged, Spokes
from perf.network.workers import Machine
from perf.processes.node_process import wait_until
from perf.records.record import Sample, read_record
from perf.runs.machines import Played, merged, with_servers
from perf.runs.sample import blank
from tests.perf.network.conftest import expect, expect_distributed

CELL = Cell(system="grid@http", client="warm", load=Load(size=1000), encoding=Encoding(), place=0.0, warmup=False)

CAMPAIGN = """purpose = "mine"
systems = ["grid@http", "grid@foolscap"]
encoding = "1-of-2 happy 1"
topology = "machines"
servers = 2
runs = 1
warmups = 0
repetitions = {repetitions}

[[work]]
operation = "put-get"
size = "2 MB"

[[work]]
operation = "alacrity"
size = "100 KB"
length = 1
"""


def machine(host: str, offset_s: float = 0.0) -> Machine:
    return Machine(address=f"tcp://{host}:1", role="client", host=host, offset_s=offset_s, round_trip_s=0.0)


def sample(seconds: float | None, error: str | None = None) -> Sample:
    from attrs import evolve

    return evolve(
        blank(CELL, "put"), seconds=seconds, error=error, client_cpu_s=0.5, members={"client": {"user_s": 1.0}}
    )


def test_one_client_has_its_sample_as_it_is() -> None:
    (only,) = merged(CELL, [Played(machine=machine("a"), samples=[(5.0, sample(2.0))])])
    assert (only.seconds, only.size, "clients" in only.factors) == (2.0, 1000, False)


def test_clients_at_once_are_one_sample_of_the_time_in_which_all_ran() -> None:
    early = Played(machine=machine("a"), samples=[(10.0, sample(2.0))])
    late = Played(machine=machine("b", offset_s=100.0), samples=[(111.0, sample(2.0))])
    (one,) = merged(CELL, [early, late])
    # From 11 to 12 each moved half of its 1000 bytes: 1000 a second, 2000 in all.
    assert (one.seconds, one.size, one.count, one.factors["clients"]) == (2.0, 2000, 2, 2)
    assert one.client_cpu_s == 1.0
    assert set(one.members) == {"client of a", "client of b"}
    assert one.files == [[1000, 0.0, 0.0, 2.0, ""], [1000, 1.0, 1.0, 3.0, ""]]


def test_clients_that_never_ran_at_once_or_failed_are_a_failure_that_says_so() -> None:
    early = Played(machine=machine("a"), samples=[(10.0, sample(1.0))])
    late = Played(machine=machine("b"), samples=[(20.0, sample(1.0))])
    (apart,) = merged(CELL, [early, late])
    assert apart.seconds is None
    assert "never ran at the same time" in str(apart.error)
    broken = Played(machine=machine("b"), samples=[(10.0, sample(None, "no room"))])
    (failed,) = merged(CELL, [early, broken])
    assert (failed.seconds, failed.error) == (None, "the client on b: no room")
    (gone,) = merged(CELL, [early, Played(machine=machine("b"), samples=[], failure="the worker is gone")])
    assert (gone.seconds, gone.error) == (None, "the client on b: the worker is gone")
    (nobody,) = merged(CELL, [Played(machine=machine("b"), samples=[], failure="the worker is gone")])
    assert (nobody.seconds, nobody.error) == (None, "the client on b: the worker is gone")


def test_each_step_has_what_the_servers_used_in_it() -> None:
    used = [[(1.0, 10), (1.0, 20)], [(1.5, 10), (1.0, 30)], [(1.5, 10), (3.0, 30)]]
    put, get = with_servers([sample(1.0), sample(1.0)], used)
    assert (put.server_cpus_s, put.server_peak_rss) == ((0.5, 0.0), 30)
    assert (get.server_cpu_s, get.server_cpus_s) == (2.0, (0.0, 2.0))
    (only,) = with_servers([sample(1.0)], used)
    assert only.server_cpus_s == (0.5, 2.0)
    (unknown,) = with_servers([sample(1.0)], [used[0], [], used[2]][:2])
    assert unknown.server_cpu_s is None


def test_campaign_on_machines_without_a_scheduler_runs_on_a_cluster_of_its_own(tmp_path: Path) -> None:
    expect_distributed()
    path, output = tmp_path / "mine.toml", tmp_path / "record.jsonl"
    path.write_text(CAMPAIGN.format(repetitions=1))
    status = main(["run", str(path), "--smoke", "--systems", "grid@http", "--output", str(output)])
    record = read_record(output)
    assert [(one.scenario, one.error) for one in record.samples if one.error] == []
    assert status == 0
    assert sorted(one.scenario for one in record.samples) == ["alacrity", "get", "put"]
    assert all(len(one.server_cpus_s) == 2 and one.server_peak_rss for one in record.samples)
    (site,) = record.sites
    assert [one["role"] for one in site.found["machines"]] == ["server", "server", "client"]


@pytest.mark.nightly(
    "tests/perf/runs/test_machines.py::test_campaign_on_machines_without_a_scheduler_runs_on_a_cluster_of_its_own",
    "tests/perf/runs/test_machines.py::test_clients_that_never_ran_at_once_or_failed_are_a_failure_that_says_so",
)
def test_campaign_on_a_real_cluster_merges_its_clients_and_a_machine_that_dies_is_a_failure(tmp_path: Path) -> None:
    expect_distributed()
    expect("root", "ip", "tc", "nsenter", "setpriv")
    from tests.perf.network.cluster import cluster_on, make_certificate

    path, output = tmp_path / "mine.toml", tmp_path / "record.jsonl"
    path.write_text(CAMPAIGN.format(repetitions=8))
    certificate = make_certificate(tmp_path / "certificate.pem")
    with (
        Bridged("machines", Spokes(servers=2), rate_s=0) as network,
        cluster_on(network, clients=2, certificate=certificate) as (address, workers),
    ):

        def kill_a_server() -> None:
            wait_until(lambda: output.exists() and len(read_record(output).samples) >= 6, "some samples")
            os.kill(workers[-1].pid, signal.SIGKILL)

        killer = threading.Thread(target=kill_a_server)
        killer.start()
        words = [
            "--smoke",
            "--repetitions",
            "8",
            "--systems",
            "grid@http",
            "--scheduler",
            address,
            "--output",
            str(output),
        ]
        status = main(["run", str(path), *words])
        killer.join()
    record = read_record(output)
    assert status == 1
    assert {one["host"] for one in record.sites[0].found["machines"] if one["role"] == "server"} == {
        host.address for host in network.placement.servers
    }
    done = list(record.measured())
    assert len(done) >= 6
    assert {one.factors["clients"] for one in done} == {2}
    assert {one.size for one in done if one.scenario == "put"} == {2_000_000}
    last = record.samples[-1]
    assert last.seconds is None
    assert str(last.error).startswith("machines are gone, and their nodes with them: ")


def test_scheduler_that_is_not_there_is_an_error_that_says_how_to_start_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    expect_distributed()
    path, output = tmp_path / "mine.toml", tmp_path / "record.jsonl"
    path.write_text(CAMPAIGN.format(repetitions=1))
    main(["run", str(path), "--smoke", "--scheduler", "tls://127.0.0.1:9", "--output", str(output)])
    (gap, *_) = read_record(output).gaps
    assert "no scheduler at tls://127.0.0.1:9" in gap.reason
    assert "--tls-ca-file" in gap.reason
