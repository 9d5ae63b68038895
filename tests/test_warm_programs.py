"""A warm program sees the same as one started cold, and ends the same way."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import psutil
import pytest
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from foolscap import crypto

from grid.node.local_grid import LocalGrid
from grid.node.running import find_running
from perf.processes.node_directory import NodeSettings, make_node
from perf.processes.node_process import child_environment, free_ports, wait_until
from tests.cli.command import grid
from tests.support.warm_nodes import warm_nodes
from tests.support.warm_programs import ROOT, warm_program
from tests.support.warm_server import find_one_key

PROBE = "tests.support.warm_probe"
FRESH = [sys.executable, "-m", PROBE]


def warm() -> list[str]:
    return [warm_program(PROBE)]


def run(command: Sequence[str], folder: Path) -> tuple[int, str, str]:
    """Its exit code and output, except for line numbers in tracebacks."""
    done = subprocess.run(
        command,
        input="given \u00fc".encode(),
        capture_output=True,
        cwd=folder,
        env={**child_environment(), "PROBE": "variable \u00fc", "PYTHONPATH": str(ROOT)},
        check=False,
    )
    error = done.stderr.decode()
    return done.returncode, done.stdout.decode(), error.splitlines()[-1] if "Traceback" in error else error


@pytest.mark.parametrize(
    "arguments",
    [["tell", "", "a b", "\u00fc\n"], ["exit", "0"], ["exit", "7"], ["exit", "what went wrong"], ["raise"]],
    ids=" ".join,
)
def test_warm_program_when_run_does_what_a_fresh_one_does(tmp_path: Path, arguments: list[str]) -> None:
    fresh = run([*FRESH, *arguments], tmp_path)
    assert run([*warm(), *arguments], tmp_path) == fresh
    assert fresh[1] or arguments == ["raise"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_warm_program_when_signaled_ends_with_what_it_runs(number: signal.Signals) -> None:
    with subprocess.Popen([*warm(), "wait"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as program:
        assert program.stdout is not None
        assert program.stdout.readline() == b"waiting\n"
        program.send_signal(number)
        assert program.stdout.read() == b"", "what it ran has its output open"
        ended = program.wait()
    assert ended == (1 if number == signal.SIGINT else -number)


def test_command_when_run_warm_prints_what_it_prints_when_run_afresh() -> None:
    for arguments in (["--version"], ["get", "URI:LIT:krugkidfnzsa", "--gateway"], ["ls", "--help"]):
        warm, fresh = (
            subprocess.run([*command, *arguments], capture_output=True, check=False)
            for command in ([warm_program("grid.cli")], [sys.executable, "-m", "grid.cli"])
        )
        assert (warm.returncode, warm.stdout, warm.stderr) == (fresh.returncode, fresh.stdout, fresh.stderr)


def test_warm_node_is_a_child_of_its_own_with_an_end_of_its_own(tmp_path: Path) -> None:
    node = make_node(tmp_path / "node", NodeSettings(kind="grid", role="introducer", port=free_ports(1)[0]))
    with warm_nodes():
        node.start()
        node.wait_for(lambda: "running" in node.log, "start")
        found = psutil.Process(node.pid)
        assert found.ppid() == os.getpid()
        node.freeze()
        wait_until(lambda: found.status() == psutil.STATUS_STOPPED, "the node to stand still")
        node.thaw()
        assert node.stop() == 0 and not node.running
        node.start()
        assert node.pid != found.pid
        node.kill()
        assert node.wait() == -signal.SIGKILL
        (tmp_path / "node" / "tahoe.cfg").write_text("[nothing]")
        node.start()
        assert node.wait() not in (0, -signal.SIGKILL)
    assert node.log.count("running") == 1


def test_nodes_that_a_warm_program_starts_are_warm_and_end_as_they_are_told(tmp_path: Path) -> None:
    local = LocalGrid(tmp_path / "grid")
    up = grid("up", "--nodes", "1", "--dir", local.path, "--detach")
    try:
        assert up.code == 0, up.err
        nodes = [
            psutil.Process(found.pid) for path in (local.introducer, *local.storages) if (found := find_running(path))
        ]
        assert len(nodes) == 2
        server = {node.ppid() for node in nodes}
        assert len(server) == 1 and "tests.support.warm_server" in psutil.Process(server.pop()).cmdline()
        nodes[0].kill()
        _, left = psutil.wait_procs(nodes[:1], timeout=60)
        assert left == []
    finally:
        down = grid("down", "--dir", local.path)
    assert down.code == 0, down.err
    assert psutil.wait_procs(nodes, timeout=60)[1] == []


def test_warm_node_when_its_parent_is_killed_ends(tmp_path: Path) -> None:
    node = make_node(tmp_path / "node", NodeSettings(kind="grid", role="introducer", port=free_ports(1)[0]))
    program = "import sys, time\nfrom pathlib import Path\nfrom perf.processes.node_process import NodeProcess\n"
    program += "from tests.support.warm_nodes import warm_nodes\n"
    program += f"node = NodeProcess(Path({str(node.directory)!r}), {node._command!r})\n"
    program += "with warm_nodes():\n    node.start()\nprint(node.pid, flush=True)\ntime.sleep(600)"
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, cwd=ROOT) as parent:
        assert parent.stdout is not None
        running = psutil.Process(int(parent.stdout.readline()))
        parent.kill()
    running.wait(60)


@pytest.mark.filterwarnings("ignore:.* is deprecated:DeprecationWarning")  # What Foolscap calls.
def test_certificates_when_a_warm_node_makes_several_differ_but_for_their_rsa_key(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    original = crypto.createCertificate
    monkeypatch.setattr(crypto, "createCertificate", original)
    find_one_key()
    made = [crypto.createCertificate() for _ in range(3)]
    assert len({certificate.digest("sha1") for certificate in made}) == 3
    one, *others = (certificate.original.to_cryptography() for certificate in made)
    assert isinstance(one.public_key(), RSAPublicKey) and one.public_key().key_size == 2048
    for other in others:
        assert other.public_key() == one.public_key() and other.subject == one.subject
        other.verify_directly_issued_by(one)
    assert all(certificate.options().getContext() for certificate in made), "a private key is not the certificate's"
