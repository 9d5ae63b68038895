"""A node's web gateway: where it listens, what it writes, and how it stops."""

from __future__ import annotations

import json
import re
import signal
import socket
import stat
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from attrs import evolve

from grid.gateway.shared.services import LOOPBACK_HOSTS, GatewaySettings
from grid.gateway.shared.spool import SpoolFolder
from grid.node.gateway import introduction
from perf.processes.node_process import free_ports
from tests.cli.command import grid
from tests.support.warm_programs import warm_program


def without_warning(err: str) -> str:
    """What a node without an introducer prints but for the warning that it has none."""
    lines = err.splitlines(keepends=True)
    assert sum(line.startswith("grid: warning: no introducer is configured") for line in lines) <= 1
    return "".join(line for line in lines if not line.startswith("grid: warning: no introducer is configured"))


def _client_directory(tmp_path: Path, more: str = "", storage: str = "[storage]\nenabled = false\n") -> Path:
    directory = tmp_path / "client"
    (directory / "private").mkdir(parents=True)
    (directory / "client.tac").write_text("")
    (directory / "grid.cfg").write_text(f"[node]\nnickname = g\n{more}[client]\nshares.happy = 1\n{storage}")
    (directory / "private" / "introducers.yaml").write_text("introducers: {}\n")
    return directory


def _run(directory: Path, *arguments: str) -> subprocess.Popen[str]:
    command = [warm_program("grid.cli"), "-d", str(directory), *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def _url(directory: Path) -> str:
    for _ in range(2400):
        if (directory / "node.url").exists():
            return (directory / "node.url").read_text().strip()
        time.sleep(0.05)
    raise AssertionError("the gateway did not come up")


def test_read_only_gateway_says_if_grid_web_cannot_open_it(tmp_path: Path) -> None:
    settings = GatewaySettings(
        spools=SpoolFolder(tmp_path), static_directory=tmp_path, api_token=b"", hosts=LOOPBACK_HOSTS, is_read_only=True
    )
    elsewhere = list(introduction("https://192.0.2.1:443/", "ssl:443:interface=192.0.2.1", settings))
    assert elsewhere[0] == "web gateway at https://192.0.2.1:443/" and "`grid web` needs" in elsewhere[1]
    for url in ("https://127.0.0.1:443/", None):
        assert len(list(introduction(url, "unix:/run/grid", settings))) == 1
    everybody = evolve(settings, is_read_only=False)
    assert len(list(introduction("https://192.0.2.1:443/", "ssl:443", everybody))) == 1


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
        with urllib.request.urlopen(f"{url}healthz", timeout=120) as answer:
            assert json.load(answer) == {"status": "ok"}
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(f"{url}readyz", timeout=120)
        assert refused.value.code == 503
        refused.value.close()
        token = directory / "private" / "api_auth_token"
        assert stat.S_IMODE(token.stat().st_mode) == 0o600
        assert len(token.read_text()) == 44
    finally:
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=120)
    assert (process.returncode, without_warning(err)) == (0, "")
    assert "client running" in out


@pytest.mark.parametrize(
    "place", ["nonsense:1", "tcp:notanumber", "tcp:99999999", "ssl:0:privateKey=/none:certKey=/none"]
)
def test_gateway_when_it_cannot_listen_says_why_and_ends(tmp_path: Path, place: str) -> None:
    process = _run(_client_directory(tmp_path), "gateway", "--listen", place)
    _, err = process.communicate(timeout=120)
    assert process.returncode == 1
    assert "the address to listen on (--listen, or web.port under [node] in " in err
    assert "Traceback" not in err


@pytest.mark.parametrize(
    ("section", "problem"),
    [
        ("[s3]\nport = 1.2.3:nonsense\n", "section [s3], key port"),
        (
            "[sftpd]\nenabled = true\nhost_pubkey_file = a.pub\nhost_privkey_file = a\naccounts.file = b\n",
            "ssh-keygen",
        ),
    ],
    ids=["s3", "sftp"],
)
def test_gateway_when_another_interface_cannot_listen_says_nowhere_that_it_runs(
    tmp_path: Path, section: str, problem: str
) -> None:
    directory = _client_directory(tmp_path, storage=f"[storage]\nenabled = false\n{section}")
    process = _run(directory, "gateway", "--listen", "0")
    _, err = process.communicate(timeout=120)
    assert process.returncode == 1 and problem in err
    assert not (directory / "node.url").exists()


def test_gateway_when_it_listens_on_a_socket_in_the_file_system_answers_there(tmp_path: Path) -> None:
    directory = _client_directory(tmp_path)
    process = _run(directory, "gateway", "--listen", f"unix:{tmp_path}/s")
    try:
        with socket.socket(socket.AF_UNIX) as connection:
            for _ in range(2400):
                if connection.connect_ex(f"{tmp_path}/s") == 0:  # It is there before it listens.
                    break
                time.sleep(0.05)
            connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            assert connection.recv(12) == b"HTTP/1.1 200"
        assert not (directory / "node.url").exists()
    finally:
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=120)
    assert (process.returncode, without_warning(err)) == (0, "")


HALF = b"x" * 20
"""Of a file that is all in its capability: it takes no server."""


@contextmanager
def _uploading(directory: Path, *arguments: str) -> Iterator[tuple[subprocess.Popen[str], socket.socket]]:
    """A gateway that was sent the first half of a file."""
    process = _run(directory, "gateway", "--listen", "0", *arguments)
    try:
        where = urllib.parse.urlsplit(_url(directory))
        with socket.create_connection((where.hostname, where.port), timeout=120) as connection:
            head = f"PUT /uri HTTP/1.1\r\nHost: {where.netloc}\r\nContent-Length: {2 * len(HALF)}\r\n\r\n"
            connection.sendall(head.encode() + HALF)
            # An answer on another connection: the head was read by then.
            urllib.request.urlopen(f"{where.geturl()}healthz", timeout=120).close()
            yield process, connection
    finally:
        process.kill()
        process.communicate()


def _wait_until_closed(url: str) -> None:
    """Return when nothing listens there any more."""
    where = urllib.parse.urlsplit(url)
    while True:
        try:
            socket.create_connection((where.hostname, where.port), timeout=5).close()
        except ConnectionRefusedError:
            return
        except ConnectionResetError:
            pass  # It waited in the queue of a listener that closed just then.
        time.sleep(0.05)


def test_gateway_when_told_to_end_lets_a_transfer_finish(tmp_path: Path) -> None:
    directory = _client_directory(tmp_path)
    with _uploading(directory) as (process, connection):
        process.send_signal(signal.SIGTERM)
        _wait_until_closed(_url(directory))
        process.send_signal(signal.SIGTERM)  # From somebody who does not know that it was signaled already.
        connection.sendall(HALF)
        answer = connection.makefile("rb").read()
        assert answer.startswith(b"HTTP/1.1 200") and b"URI:LIT:" in answer
        out, err = process.communicate(timeout=120)
    assert (process.returncode, without_warning(err)) == (0, "")
    assert "waiting up to 60 s for 1 request in progress" in out


def test_gateway_when_a_transfer_takes_longer_than_it_may_cuts_it(tmp_path: Path) -> None:
    directory = _client_directory(tmp_path, "web.drain_timeout = 1\n")
    with _uploading(directory) as (process, connection):
        process.send_signal(signal.SIGTERM)
        try:
            assert connection.recv(100) == b""
        except ConnectionResetError:
            pass
        out, err = process.communicate(timeout=120)
    assert (process.returncode, without_warning(err)) == (0, "")
    assert "waiting up to 1 s for 1 request in progress" in out


def test_stop_when_a_transfer_runs_waits_for_it_and_says_so(tmp_path: Path) -> None:
    directory = _client_directory(tmp_path, "web.drain_timeout = 300\n")
    with _uploading(directory) as (process, connection):
        with subprocess.Popen(
            [warm_program("grid.cli"), "stop", str(directory)], stderr=subprocess.PIPE, stdout=subprocess.PIPE
        ) as stopping:
            assert stopping.stderr is not None and stopping.stdout is not None
            assert b"is finishing its requests; waiting up to 325 s" in stopping.stderr.readline()
            assert stopping.poll() is None and process.poll() is None
            connection.sendall(HALF)
            assert b"URI:LIT:" in connection.makefile("rb").read()
            assert stopping.stdout.read() == b"the node has stopped\n"
        assert stopping.returncode == 0
        assert process.wait(timeout=120) == 0


def test_stop_when_told_not_to_wait_cuts_the_transfer(tmp_path: Path) -> None:
    directory = _client_directory(tmp_path)
    with _uploading(directory) as (process, _):
        done = grid("stop", directory, "--now")
        assert (done.code, done.line, done.err) == (0, "the node has stopped", "")
        assert process.wait(timeout=120) == 130
    assert grid("stop", directory).line == "no node was running"


@pytest.mark.parametrize(
    ("place", "url", "asked"),
    [
        ("tcp:0:interface=0.0.0.0", r"http://127\.0\.0\.1:[0-9]+/", "10.1.2.3"),
        ("tcp:0:interface=127.0.0.2", r"http://127\.0\.0\.2:[0-9]+/", "127.0.0.2"),
        ("tcp6:0", r"http://\[::1\]:[0-9]+/", "[::1]"),
        (r"tcp6:0:interface=\:\:", r"http://\[::1\]:[0-9]+/", "[fe80::1]"),
    ],
    ids=["everywhere", "second", "loopback6", "everywhere6"],
)
def test_gateway_when_it_listens_elsewhere_says_where_and_knows_its_names(
    tmp_path: Path, place: str, url: str, asked: str
) -> None:
    directory = _client_directory(tmp_path, "web.allowed_hosts = files.example\n")
    process = _run(directory, "gateway", "--listen", place)
    try:
        found = _url(directory)
        assert re.fullmatch(url, found)
        public, port = directory / "node.public_url", found.rstrip("/").rpartition(":")[2]
        is_for_others = place.endswith(("0.0.0.0", r"\:\:"))
        assert (public.read_text() if public.exists() else "") == (
            f"http://files.example:{port}/\n" if is_for_others else ""
        )
        assert (directory / "node.visitors").read_text() == "read-write\n"
        for host, status in ((asked, 200), ("files.example:99", 200), ("attacker.example", 421)):
            request = urllib.request.Request(f"{found}healthz", headers={"Host": host})
            try:
                with urllib.request.urlopen(request, timeout=120) as answer:
                    assert answer.status == status
            except urllib.error.HTTPError as refused:
                with refused:
                    assert refused.status == status
                    assert b"node.web.allowed_hosts attacker.example" in refused.read()
    finally:
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=120)
    assert (process.returncode, without_warning(err)) == (0, "")


def test_gateway_of_a_storing_node_shows_its_own_storage_server(tmp_path: Path) -> None:
    [port] = free_ports(1)
    listening = f"tub.port = tcp:{port}:interface=127.0.0.1\ntub.location = tcp:127.0.0.1:{port}\n"
    directory = _client_directory(
        tmp_path,
        f"web.port = tcp:0:interface=127.0.0.1\n{listening}",
        "[storage]\nenabled = true\nreserved_space = 1M\n",
    )
    process = _run(directory, "run")
    try:
        url = _url(directory)
        with urllib.request.urlopen(f"{url}storage?t=json", timeout=120) as answer:
            assert answer.headers["content-type"].startswith("text/plain")
            found = json.load(answer)
        assert found.keys() == {"stats", "bucket-counter", "lease-checker", "lease-checker-progress"}
        stats = found["stats"]
        assert stats["storage_server.reserved_space"] == 10**6
        assert stats["storage_server.disk_total"] > stats["storage_server.disk_used"] > 0
        with urllib.request.urlopen(f"{url}storage", timeout=120) as answer:
            assert "Accepting new shares" in answer.read().decode()
        with urllib.request.urlopen(f"{url}statistics?t=json", timeout=120) as answer:
            assert json.load(answer)["stats"].keys() >= stats.keys()
    finally:
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=120)
    assert (process.returncode, without_warning(err)) == (0, "")
    assert "client running" in out


def test_log_in_json_when_a_gateway_is_used_has_its_requests_and_no_capability(tmp_path: Path) -> None:
    directory = _client_directory(tmp_path, "web.port = tcp:0:interface=127.0.0.1\nlog_format = json\n")
    process = _run(directory, "run")
    try:
        url = _url(directory)
        with urllib.request.urlopen(f"{url}uri/URI:LIT:nbswy3dp?filename=secretname", timeout=120) as answer:
            assert answer.read() == b"hello"
    finally:
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=120)
    assert (process.returncode, without_warning(err)) == (0, "")
    events = [json.loads(line) for line in out.splitlines()]
    assert "client running" in [event["event"] for event in events]
    [request] = [event["fields"] for event in events if event["fields"].get("method") == "GET"]
    assert (request["path"], request["code"], request["size"]) == ("/uri/...", 200, 5)
    assert "nbswy3dp" not in out
    assert "secretname" not in out
