"""`grid up`, `grid down` and `grid run`: real processes, started and stopped."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from grid.cli.main import main
from grid.node.local_grid import LocalGrid
from grid.node.running import find_running
from perf.processes.node_process import free_ports
from perf.processes.open_doors import make_key
from tests.cli.command import environment, grid

DATA = bytes(range(256)) * 100


def _wait(condition: Callable[[], bool]) -> None:
    while not condition():
        time.sleep(0.05)


@contextmanager
def _started(*arguments: str | Path) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "grid.cli", *map(str, arguments)]
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment()
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def _wait_for_line(process: subprocess.Popen[str], text: str) -> None:
    assert process.stdout is not None
    for line in process.stdout:
        if text in line:
            return
    raise AssertionError(f"{text!r} never came: {process.stderr.read() if process.stderr else ''}")


def _pids(local: LocalGrid) -> list[int]:
    running = [find_running(path) for path in (local.introducer, *local.storages)]
    return [process.pid for process in running if process is not None]


def test_grid_with_a_gateway_stops_as_a_whole_and_its_storage_node_saves_where_its_walks_are(tmp_path: Path) -> None:
    local = LocalGrid(tmp_path / "g")
    try:
        up = json.loads(grid("up", "--nodes", "1", "--dir", local.path, "--detach", "--gateway", "--json").line)
        assert f"nickname = {local.path.name}\n" in (local.client / "tahoe.cfg").read_text(), (
            "the name on the first page"
        )
        assert up["gateway"].startswith("http://127.0.0.1:") and not up["was_running"]
        assert up["s3"] is None and up["sftp"] is None
        assert grid("-d", local.client, "web", "--print").line == up["gateway"]
        assert grid("-d", local.client, "--gateway", "node", "mkdir").line.startswith("URI:DIR2:")
    finally:
        assert json.loads(grid("down", "--dir", local.path, "--json").line)["stopped"] == 3
    assert find_running(local.client) is None
    (node,) = local.storages
    saved = {path.name for path in (node / "storage").glob("*.state.json")}
    assert saved == {"bucket_counter.state.json", "lease_checker.state.json"}
    assert "Traceback" not in (node / "logs" / "node.log").read_text()


def test_grid_with_a_gateway_is_up_once_its_s3_and_sftp_interfaces_listen(tmp_path: Path) -> None:
    local = LocalGrid(tmp_path / "g")
    s3, sftp = free_ports(2)
    try:
        assert grid("up", "--nodes", "1", "--dir", local.path, "--detach").code == 0
        private = local.client / "private"
        account = make_key(tmp_path / "alice")
        (private / "accounts").write_text(f"alice {account} {grid('-d', local.client, 'mkdir').line}\n")
        (private / "accounts").chmod(0o600)
        with (local.client / "tahoe.cfg").open("a") as file:
            file.write(
                f"[s3]\nport = {s3}\n[sftpd]\nenabled = true\nport = {sftp}\nhost_pubkey_file = private/key.pub\n"
                "host_privkey_file = private/key\naccounts.file = private/accounts\n"
            )
        refused = grid("up", "--dir", local.path, "--detach", "--gateway")
        assert refused.code == 1 and "ssh-keygen" in refused.err, "there is no host key yet"
        assert find_running(local.client) is None
        make_key(private / "key")
        up = grid("up", "--dir", local.path, "--detach", "--gateway")
        assert up.code == 0
        addresses = f"http://127.0.0.1:{s3}", f"sftp://127.0.0.1:{sftp}"
        assert f"Over S3: {addresses[0]}\nOver SFTP: {addresses[1]}" in up.line
        again = json.loads(grid("--json", "up", "--dir", local.path, "--detach", "--gateway").line)
        assert (again["s3"], again["sftp"], again["was_running"]) == (*addresses, True)
        for port in (s3, sftp):
            socket.create_connection(("127.0.0.1", port)).close()
    finally:
        grid("down", "--dir", local.path)


def test_grid_in_the_foreground_ends_with_ctrl_c_and_keeps_its_data(tmp_path: Path) -> None:
    local = LocalGrid(tmp_path / "g")
    with _started("up", "--nodes", "2", "--dir", local.path) as up:
        _wait_for_line(up, "Ctrl-C")
        pids = _pids(local)
        assert len(pids) == 3
        put = grid("-d", local.client, "put", "-", stdin=DATA)
        assert put.code == 0, put.err
        up.send_signal(signal.SIGINT)
        assert up.wait() == 0
    assert not any(psutil.pid_exists(pid) for pid in pids)
    assert not list(local.path.glob("*/running.process"))
    with _started("up", "--dir", local.path) as up:
        _wait_for_line(up, "Ctrl-C")
        assert len(_pids(local)) == 3
        assert grid("-d", local.client, "get", put.line).out == DATA
        pids = _pids(local)
        up.kill()
        up.wait()
        # Nodes in the foreground end with the process that started them, however that ends.
        _wait(lambda: not any(psutil.pid_exists(pid) for pid in pids))


def test_killed_nodes_are_started_again_beside_those_that_run(local_grid: LocalGrid) -> None:
    before = _pids(local_grid)
    os.kill(before[1], signal.SIGKILL)
    os.kill(before[2], signal.SIGKILL)
    _wait(lambda: len(_pids(local_grid)) == 4)
    again = grid("up", "--dir", local_grid.path, "--detach")
    assert again.code == 0, again.err
    after = _pids(local_grid)
    assert len(after) == 6
    assert len(set(before) & set(after)) == 4


@pytest.mark.parametrize("options", [[], ["--detach"], ["--nodes", "5"]])
def test_grid_that_runs_already_is_reported_and_keeps_running(local_grid: LocalGrid, options: list[str]) -> None:
    before = _pids(local_grid)
    again = grid("up", "--dir", local_grid.path, *options)
    assert again.code == 0, again.err
    assert "This grid was already running, with 5 storage nodes: `grid down --dir" in again.line
    assert _pids(local_grid) == before


@pytest.mark.parametrize(
    ("nodes", "words"), [("3", "leave --nodes out"), ("7", "is running already, with 5 storage nodes")]
)
def test_grid_that_runs_already_with_another_number_of_nodes_is_an_error(
    local_grid: LocalGrid, nodes: str, words: str
) -> None:
    before = _pids(local_grid)
    again = grid("up", "--dir", local_grid.path, "--nodes", nodes)
    assert again.code == 1 and words in again.err and again.err.count("\n") == 1
    assert _pids(local_grid) == before


def test_node_that_runs_already_is_not_run_twice(local_grid: LocalGrid) -> None:
    second = grid("run", local_grid.storage(0))
    assert second.code == 1
    assert "already running" in second.err
    assert find_running(local_grid.storage(0)) is not None


def test_node_whose_port_is_taken_says_so(local_grid: LocalGrid, tmp_path: Path) -> None:
    config = (local_grid.storage(0) / "grid.cfg").read_text()
    (tmp_path / "grid.cfg").write_text(config)
    taken = grid("run", tmp_path)
    warning, error = taken.err.splitlines()
    assert taken.code == 1 and warning.startswith("grid: warning: no introducer is configured")
    assert "cannot listen" in error
    assert not (tmp_path / "running.process").exists()


def test_grid_whose_node_cannot_start_is_stopped_again(tmp_path: Path) -> None:
    local = LocalGrid(tmp_path / "g")
    assert grid("up", "--nodes", "1", "--dir", local.path, "--detach").code == 0
    assert grid("down", "--dir", local.path).code == 0
    with (local.storage(0) / "grid.cfg").open("a") as file:
        file.write("[storage]\nreserved_space = plenty\n")
    outcome = grid("up", "--dir", local.path, "--detach")
    assert outcome.code == 1
    assert "reserved_space" in outcome.err
    assert _pids(local) == []


def test_down_of_a_stopped_grid_succeeds_but_of_no_grid_fails(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["down", "--dir", str(tmp_path)]) == 1
    LocalGrid(tmp_path).introducer.mkdir()
    assert main(["down", "--dir", str(tmp_path)]) == 0
    assert "no node was running" in capsys.readouterr().out


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_node_stops_cleanly_when_asked_to(tmp_path: Path, number: signal.Signals, code: int) -> None:
    directory = tmp_path / "introducer"
    port = ["--port", "tcp:0:interface=127.0.0.1", "--location", "tcp:127.0.0.1:1"]
    assert main(["create", "introducer", *port, str(directory)]) == 2
    from grid.node.addresses import free_port

    chosen = free_port("127.0.0.1")
    port = ["--port", f"tcp:{chosen}:interface=127.0.0.1", "--location", f"tcp:127.0.0.1:{chosen}"]
    assert main(["create", "introducer", *port, str(directory)]) == 0
    with _started("run", directory) as node:
        _wait_for_line(node, "introducer running")
        running = find_running(directory)
        assert running is not None
        assert running.pid == node.pid
        furl = (directory / "private" / "introducer.furl").read_text()
        node.send_signal(number)
        assert node.wait() == code
    assert not (directory / "running.process").exists()
    with _started("run", directory) as node:
        _wait_for_line(node, "introducer running")
        assert (directory / "private" / "introducer.furl").read_text() == furl


def test_storage_node_comes_back_as_itself(tmp_path: Path) -> None:
    local = LocalGrid(tmp_path / "g")
    assert grid("up", "--nodes", "1", "--dir", local.path, "--detach").code == 0
    node = local.storage(0)
    names = ["my_nodeid", "node.pubkey", "permutation-seed", "private/storage.furl", "private/node.pem"]
    try:
        before = {name: (node / name).read_bytes() for name in names}
        put = grid("-d", local.client, "put", "-", stdin=DATA)
        assert grid("down", "--dir", local.path).code == 0
        assert grid("up", "--dir", local.path, "--detach").code == 0
        assert {name: (node / name).read_bytes() for name in names} == before
        assert int((node / "announcement-seqnum").read_text()) == 2
        assert grid("-d", local.client, "get", put.line).out == DATA
    finally:
        grid("down", "--dir", local.path)
