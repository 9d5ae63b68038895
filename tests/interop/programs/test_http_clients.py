"""curl, wget, aria2c and ab against the web gateway: whole files, resumed ones, many connections, many requests."""

from __future__ import annotations

import json
import random
import re
import subprocess
import urllib.parse
from pathlib import Path

import pytest

from perf.processes.clients import COMMAND_S, GridGateway
from perf.processes.node_process import child_environment
from perf.processes.process_grid import ClientSettings, ProcessGrid
from tests.interop.programs.conftest import program

pytestmark = pytest.mark.interop

CONTENTS = random.Random(1).randbytes(9_000_001)


@pytest.fixture(scope="module")
def gateway(grid: ProcessGrid) -> GridGateway:
    """A gateway, 2-of-3."""
    client = grid.add_client(ClientSettings(kind="grid", needed=2, happy=2, total=3, gateway=True))
    assert isinstance(client, GridGateway)
    return client


@pytest.fixture(scope="module")
def address(gateway: GridGateway, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Where CONTENTS is, as programs write it: node.url, which ends in a slash, and a path that begins with one."""
    path = tmp_path_factory.mktemp("file") / "contents"
    path.write_bytes(CONTENTS)
    cap = run("curl", "-sS", "--fail", "-T", str(path), f"{gateway.url}/uri").decode()
    return f"{gateway.url}/file/{urllib.parse.quote(cap, safe='')}/contents.bin"


def run(name: str, *arguments: str, folder: Path | None = None) -> bytes:
    """What the program prints; it has to succeed."""
    done = subprocess.run(
        [program(name), *arguments],
        cwd=folder,
        capture_output=True,
        timeout=COMMAND_S,
        env=child_environment(),
        check=False,
    )
    assert done.returncode == 0, (name, arguments, done.returncode, done.stderr[-2000:])
    return done.stdout


def test_curl_when_it_resumes_a_part_or_a_whole_file_has_the_file(address: str, tmp_path: Path) -> None:
    part = tmp_path / "part"
    part.write_bytes(CONTENTS[:4_000_000])
    for _ in range(2):
        run("curl", "-sS", "-C", "-", "-o", str(part), address)
        assert part.read_bytes() == CONTENTS


def test_curl_when_it_posts_json_under_its_usual_label_makes_directories(gateway: GridGateway) -> None:
    children = {"gone": ["filenode", {"ro_uri": None}], "small": ["filenode", {"ro_uri": "URI:LIT:m5xw4zik"}]}
    for t in ("mkdir-immutable", "mkdir-with-children"):
        cap = run("curl", "-sS", "--fail", "-d", json.dumps(children), f"{gateway.url}/uri?t={t}").decode()
        listed = run("curl", "-sS", "--fail", f"{gateway.url}/uri/{cap}?t=json")
        assert {name: kind for name, (kind, _) in json.loads(listed)[1]["children"].items()} == {
            "gone": "unknown",
            "small": "filenode",
        }


def test_curl_when_it_sends_forms_old_http_and_expectations_is_understood(gateway: GridGateway, tmp_path: Path) -> None:
    path = tmp_path / "a name"
    path.write_bytes(CONTENTS[:2_000_000])
    folder = run("curl", "-sS", "--fail", "-X", "POST", f"{gateway.url}uri?t=mkdir").decode()
    run("curl", "-sS", "--fail", "-F", "t=upload", "-F", f"file=@{path}", f"{gateway.url}uri/{folder}")
    for more in (["--http1.0"], ["-H", "Expect: 100-continue"], ["--http1.0", "-H", "Host:"]):
        assert run("curl", "-sS", "--fail", *more, f"{gateway.url}uri/{folder}/a%20name") == path.read_bytes()
    sent = run(
        "curl", "-sS", "--fail", "-H", "Transfer-Encoding: chunked", "-T", str(path), f"{gateway.url}uri/{folder}/b"
    )
    assert sent.startswith(b"URI:CHK:")
    assert run("curl", "-sSI", "--fail", f"{gateway.url}uri/{folder}?t=json").startswith(b"HTTP/1.1 200")


def test_wget_when_it_resumes_a_part_or_a_whole_file_has_the_file(address: str, tmp_path: Path) -> None:
    part = tmp_path / "contents.bin"
    part.write_bytes(CONTENTS[:1_000_000])
    for _ in range(2):
        run("wget", "-q", "-c", address, folder=tmp_path)
        assert part.read_bytes() == CONTENTS


def test_aria2c_when_it_uses_many_connections_has_the_file(address: str, tmp_path: Path) -> None:
    options = ["--quiet", "-x", "8", "-s", "8", "-k", "1M", "--auto-file-renaming=false", "-d", str(tmp_path)]
    run("aria2c", *options, "-o", "many", address)
    assert (tmp_path / "many").read_bytes() == CONTENTS


def test_ab_when_it_keeps_connections_open_has_every_answer(gateway: GridGateway, tmp_path: Path) -> None:
    small = tmp_path / "small"
    small.write_bytes(CONTENTS[:10_000])
    cap = run("curl", "-sS", "--fail", "-T", str(small), f"{gateway.url}uri").decode()
    told = run(
        "ab", "-q", "-k", "-c", "16", "-n", "300", f"{gateway.url}uri/{urllib.parse.quote(cap, safe='')}"
    ).decode()
    counts = dict(re.findall(r"^(Complete requests|Failed requests|Document Length):\s+(\d+)", told, re.MULTILINE))
    assert counts == {"Complete requests": "300", "Failed requests": "0", "Document Length": "10000"}
    assert "Non-2xx" not in told
