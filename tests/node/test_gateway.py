"""A node's web gateway: where it listens, what it writes, and how it ends."""

from __future__ import annotations

import json
import signal
import socket
import stat
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from grid.gateway.guards import LOOPBACK_HOSTS
from grid.node.gateway import place_to_listen


@pytest.mark.parametrize(
    ("text", "place", "is_local"),
    [
        ("3456", "tcp:3456:interface=127.0.0.1", True),
        ("tcp:0", "tcp:0:interface=127.0.0.1", True),
        ("tcp:1:interface=0.0.0.0", "tcp:1:interface=0.0.0.0", False),
        ("tcp:1:interface=\\:\\:1", "tcp:1:interface=\\:\\:1", True),
        ("ssl:1:privateKey=k:certKey=c", "ssl:1:privateKey=k:certKey=c:interface=127.0.0.1", True),
        ("unix:/tmp/s", "unix:/tmp/s", False),
    ],
)
def test_place_is_this_machine_alone_unless_an_interface_is_named(text: str, place: str, is_local: bool) -> None:
    assert place_to_listen(text) == (place, LOOPBACK_HOSTS if is_local else None)


def _client_directory(tmp_path: Path, more: str = "", storage: str = "[storage]\nenabled = false\n") -> Path:
    directory = tmp_path / "client"
    (directory / "private").mkdir(parents=True)
    (directory / "client.tac").write_text("")
    (directory / "grid.cfg").write_text(f"[node]\nnickname = g\n{more}[client]\nshares.happy = 1\n{storage}")
    (directory / "private" / "introducers.yaml").write_text("introducers: {}\n")
    return directory


def _run(directory: Path, *arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "grid.cli", "-d", str(directory), *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def _url(directory: Path) -> str:
    for _ in range(400):
        if (directory / "node.url").exists():
            return (directory / "node.url").read_text().strip()
        time.sleep(0.05)
    raise AssertionError("the gateway did not come up")


@pytest.mark.parametrize(
    ("more", "arguments"),
    [("", ("gateway", "--listen", "0")), ("web.port = tcp:0\n", ("run",))],
    ids=["gateway", "run"],
)
def test_gateway_when_run_answers_and_ends_with_the_signal(
    tmp_path: Path, more: str, arguments: tuple[str, ...]
) -> None:
    directory = _client_directory(tmp_path, more)
    process = _run(directory, *arguments)
    try:
        url = _url(directory)
        with urllib.request.urlopen(f"{url}healthz", timeout=20) as answer:
            assert json.load(answer) == {"status": "ok"}
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(f"{url}readyz", timeout=20)
        assert refused.value.code == 503
        refused.value.close()
        token = directory / "private" / "api_auth_token"
        assert stat.S_IMODE(token.stat().st_mode) == 0o600
        assert len(token.read_text()) == 44
    finally:
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=30)
    assert (process.returncode, err) == (0, "")
    assert "client running" in out


@pytest.mark.parametrize(
    "place", ["nonsense:1", "tcp:notanumber", "tcp:99999999", "ssl:0:privateKey=/none:certKey=/none"]
)
def test_gateway_when_it_cannot_listen_says_why_and_ends(tmp_path: Path, place: str) -> None:
    process = _run(_client_directory(tmp_path), "gateway", "--listen", place)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 1
    assert "web.port" in err
    assert "Traceback" not in err


def test_gateway_when_it_listens_on_a_socket_in_the_file_system_answers_there(tmp_path: Path) -> None:
    directory = _client_directory(tmp_path)
    process = _run(directory, "gateway", "--listen", f"unix:{tmp_path}/s")
    try:
        for _ in range(400):
            if (tmp_path / "s").exists():
                break
            time.sleep(0.05)
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(f"{tmp_path}/s")
            connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            assert connection.recv(12) == b"HTTP/1.1 200"
        assert not (directory / "node.url").exists()
    finally:
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=30)
    assert (process.returncode, err) == (0, "")
