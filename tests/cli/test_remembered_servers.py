"""Reads that start with remembered servers."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from grid.node.local_grid import LocalGrid
from tests.cli.command import environment, grid

DATA = random.Random(2).randbytes(100_000)
CACHE = Path("private") / "introducer_default_cache.yaml"


GET = "from grid.cli.main import main; assert main(['-d', sys.argv[1], 'get', *sys.argv[2:]]) == 0"
READERS = "import grid.cli.commands.get, grid.cli.connection, grid.node.reading, grid.wire.http.client.server"


def loaded_by(code: str, *arguments: str | Path) -> set[str]:
    """The names of all modules and packages that a new process has loaded after it ran the code."""
    code = f"import sys; {code}; print(*sys.modules)"
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return set(subprocess.run(command, stdout=subprocess.PIPE, text=True, env=environment(), check=True).stdout.split())


@pytest.fixture
def cap(local_grid: LocalGrid) -> str:
    """A file on the grid; the put has made the client remember the servers."""
    outcome = grid("-d", local_grid.client, "put", "-", stdin=DATA)
    assert outcome.code == 0, outcome.err
    return outcome.line


@pytest.fixture
def client(local_grid: LocalGrid, cap: str, tmp_path: Path) -> Path:
    """A copy of the client's directory, to be changed."""
    return Path(shutil.copytree(local_grid.client, tmp_path / "client"))


def forget_the_introducer(client: Path) -> None:
    """Name one that nobody runs."""
    file = client / "private" / "introducers.yaml"
    file.write_text(f"introducers:\n  default:\n    furl: pb://{'a' * 32}@tcp:127.0.0.1:1/nobody\n")


def move_servers(client: Path, port: int) -> None:
    """Remember all servers at another port of this machine."""
    content = json.loads((client / CACHE).read_text())
    for entry in content:
        for key in ("anonymous-storage-FURL", "anonymous-storage-NURLs"):
            text = json.dumps(entry["ann"][key])
            host, _, rest = text.rpartition("127.0.0.1:")
            entry["ann"][key] = json.loads(f"{host}127.0.0.1:{port}/{rest.partition('/')[2]}")
    (client / CACHE).write_text(json.dumps(content))


@contextmanager
def silent_port() -> Iterator[int]:
    """A port where connections are taken and nothing is ever said."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen(100)
        yield listening.getsockname()[1]


def test_cache_is_private_to_its_owner(client: Path) -> None:
    assert (client / CACHE).stat().st_mode & 0o777 == 0o600


def test_read_needs_no_introducer_when_the_servers_are_remembered(client: Path, cap: str) -> None:
    forget_the_introducer(client)
    got = grid("-d", client, "get", cap)
    assert (got.code, got.out, got.err) == (0, DATA, "")


def test_read_asks_the_introducer_when_the_memory_is_old(client: Path, cap: str) -> None:
    long_ago = time.time() - 86400
    move_servers(client, 1)
    os.utime(client / CACHE, (long_ago, long_ago))
    assert grid("-d", client, "get", cap).out == DATA
    assert (client / CACHE).stat().st_mtime > long_ago + 3600


def test_read_goes_on_with_the_live_servers_when_nobody_is_at_the_remembered_addresses(client: Path, cap: str) -> None:
    move_servers(client, 1)
    got = grid("-d", client, "get", cap, "--range", "5-99990")
    assert (got.code, got.out) == (0, DATA[5:99991])
    forget_the_introducer(client)
    assert grid("-d", client, "get", cap).out == DATA


def test_read_goes_on_with_the_live_servers_when_the_remembered_ones_are_silent(client: Path, cap: str) -> None:
    with silent_port() as port:
        move_servers(client, port)
        assert grid("-d", client, "get", cap).out == DATA


def test_read_when_no_server_can_be_reached_says_so(client: Path, cap: str) -> None:
    move_servers(client, 1)
    forget_the_introducer(client)
    got = grid("-d", client, "get", cap)
    assert (got.code, got.out) == (5, b"")
    assert got.err.count("\n") == 1


def test_read_of_an_immutable_file_loads_no_engine_but_its_own(client: Path, cap: str, tmp_path: Path) -> None:
    loaded = loaded_by(GET, client, cap, tmp_path / "file")
    assert (tmp_path / "file").read_bytes() == DATA
    assert {"grid.immutable.get", "grid.wire.http.client.server"} <= loaded
    engines = ("grid.mutable", "grid.directory.file_store", "grid.directory.node", "grid.storage", "grid.gateway")
    assert [name for name in loaded if name.startswith((*engines, "grid.immutable.put"))] == []


def test_read_from_remembered_servers_needs_no_foolscap_to_begin() -> None:
    assert loaded_by(READERS) & {"twisted", "foolscap", "yaml", "rich"} == {"twisted"}


def test_client_from_a_recovery_file_reads_and_stores_without_the_introducer(
    local_grid: LocalGrid, cap: str, tmp_path: Path
) -> None:
    (tmp_path / "secret").write_text("correct horse battery staple")
    old, new, file = tmp_path / "old", tmp_path / "new", tmp_path / "file.age"
    shutil.copytree(local_grid.client, old)
    with_secret = ("--passphrase-file", tmp_path / "secret", file)
    for arguments in (("create-alias", "recovered"), ("alias", "export", *with_secret)):
        outcome = grid("-d", old, *arguments)
        assert outcome.code == 0, outcome.err
    outcome = grid("-d", new, "alias", "import", *with_secret)
    assert outcome.code == 0, outcome.err
    introducers = new / "private" / "introducers.yaml"
    introducers.write_text(re.sub(r"127\.0\.0\.1:[0-9]+", "127.0.0.1:1", introducers.read_text()))
    assert grid("-d", new, "get", cap, "-").out == DATA
    outcome = grid("-d", new, "put", "-", "recovered:new", stdin=DATA)
    assert outcome.code == 0, outcome.err
