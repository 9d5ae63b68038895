"""Messages of nodes that start, or fail to start: real processes."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from grid.cli.main import main
from perf.processes.node_process import free_ports
from tests.cli.command import environment, grid
from tests.support.warm_programs import warm_program

FURL = "pb://l2rdxsw4e5nqqud4h4cj7uuaz2s6is2e@tcp:127.0.0.1:9/ln3ddyjdlt3cxe5uujeubs3ho2cl4jht"


@pytest.fixture
def client(tmp_path: Path) -> Path:
    assert main(["create", "client", "--introducer", FURL, str(tmp_path / "client")]) == 0
    return tmp_path / "client"


def test_gateway_when_its_port_is_in_use_says_so_in_one_line_and_logs_nothing(client: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        busy = grid("gateway", client, "--listen", str(port))
        assert (busy.code, busy.out) == (1, b"")
        assert busy.err == f"grid: Port {port} is already in use; choose another with --listen.\n"
        config = client / "grid.cfg"
        config.write_text(config.read_text().replace("[node]", f"[node]\nweb.port = {port}"))
        ran = grid("run", client)
        assert ran.code == 1
        named = client / "tahoe.cfg"  # As documents call it; grid.cfg is a link to it.
        assert ran.err == f"grid: Port {port} is already in use; choose another web.port under [node] in {named}\n"
    wrong = grid("gateway", client, "--listen", "foo")
    assert (wrong.code, wrong.out) == (1, b"") and "not a server endpoint" in wrong.err


def test_storage_node_when_created_is_named_by_its_host_and_says_if_its_disk_is_too_small(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["create", "storage", "--introducer", FURL, "--hostname", "cellar"]
    assert main([*command, "--reserved-space", "1", str(tmp_path / "roomy")]) == 0
    assert capsys.readouterr().err == ""
    assert "nickname = cellar\n" in (tmp_path / "roomy" / "tahoe.cfg").read_text()
    assert main([*command, "--nickname", "attic", "--reserved-space", "900P", str(tmp_path / "full")]) == 0
    assert "900P are kept free: the node will accept no shares" in capsys.readouterr().err
    assert "nickname = attic\n" in (tmp_path / "full" / "tahoe.cfg").read_text()


def test_storage_node_when_it_runs_says_its_name_and_where_it_is_reached(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    place = ["--port", f"tcp:{port}:interface=127.0.0.1", "--location", f"tcp:127.0.0.1:{port}"]
    node = tmp_path / "node"
    assert main(["create", "storage", "--introducer", FURL, "--nickname", "attic", *place, str(node)]) == 0
    again = tmp_path / "again"
    assert main(["create", "storage", "--introducer", FURL, *place, str(again)]) == 0
    command = [sys.executable, "-m", "grid.cli", "run", str(node)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment(), text=True)
    assert process.stdout is not None
    try:
        lines: list[str] = []
        while "introducer default not connected" not in "".join(lines[-1:]):
            lines.append(process.stdout.readline())
            assert lines[-1], lines
        assert any(f'storage node "attic" running, reachable at tcp:127.0.0.1:{port}' in line for line in lines)
        assert any("`grid status` shows it as v0-" in line for line in lines)
        assert any(line.rstrip().endswith(" client running") for line in lines), "programs wait for these words"
        busy = grid("run", again)
        assert busy.code == 1 and f"port {port} is already in use" in busy.err
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate()


def test_node_without_an_introducer_warns_and_one_that_was_killed_is_noted_at_the_next_start(tmp_path: Path) -> None:
    node = tmp_path / "node"
    (port,) = free_ports(1)
    place = ["--port", f"tcp:{port}:interface=127.0.0.1", "--location", f"tcp:127.0.0.1:{port}"]
    assert main(["create", "storage", "--introducer", FURL, *place, str(node)]) == 0
    (node / "private" / "introducers.yaml").unlink()
    command = [warm_program("grid.cli"), "run", str(node)]

    def run_until_ready() -> tuple[subprocess.Popen[str], str]:
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment(), text=True
        )
        assert process.stdout is not None
        lines = [process.stdout.readline()]
        while lines[-1] and not lines[-1].rstrip().endswith(" client running"):
            lines.append(process.stdout.readline())
        return process, "".join(lines)

    first, log = run_until_ready()
    with first:
        first.kill()
        _, err = first.communicate()
    cure = f"`grid -d {node} config set client.introducer.furl FURL`"
    assert "warning: no introducer is configured, so no client learns of this server" in log and cure in log
    assert err.startswith("grid: warning: no introducer") and cure in err and "did not end cleanly" not in log
    gone = grid("stop", node)
    assert gone.code == 0 and gone.line.startswith("no node was running: its process (pid ")
    assert grid("-d", node, "config", "set", "client.introducer.furl", FURL).code == 0
    second, log = run_until_ready()
    with second:
        assert "the last run (pid " in log and "did not end cleanly" in log and "no introducer" not in log
        assert grid("stop", node).code == 0
        second.communicate()
    assert grid("stop", node).line == "no node was running"
