"""One door for all tests of a module, as a process; and the clients that use it."""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar
from urllib.error import HTTPError
from urllib.parse import quote
from urllib.request import Request, urlopen

import psutil
import pytest
from attrs import frozen

from perf.processes.node_process import child_environment

COMMAND_S = 60
T = TypeVar("T")


@frozen
class RunningDoor:
    """Where it listens, and its keys. roots: the capabilities of the accounts' directories."""

    folder: Path
    pid: int
    port: int
    web: int
    roots: Mapping[str, str]

    def openssh(self, program: str, folder: Path, *arguments: str, account: str = "alice", commands: str = "") -> str:
        """Run sftp or scp; returns its output. AssertionError if it fails."""
        done = self.try_openssh(program, folder, *arguments, account=account, commands=commands)
        assert done.returncode == 0, done.stdout
        return done.stdout

    def try_openssh(
        self, program: str, folder: Path, *arguments: str, account: str = "alice", commands: str = ""
    ) -> subprocess.CompletedProcess[str]:
        """The same, even if it fails."""
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed (Debian's openssh-client)")
        options = ["StrictHostKeyChecking=no", "UserKnownHostsFile=/dev/null", "IdentitiesOnly=yes", "BatchMode=yes"]
        given = [word for option in options for word in ("-o", option)]
        identity = ["-i", str(self.folder / account), "-P", str(self.port)]
        batch = ["-b", "-"] if program == "sftp" else []
        return subprocess.run(
            [program, "-F", "none", *given, *identity, *batch, *arguments],
            check=False, cwd=folder, input=commands, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            timeout=COMMAND_S, env=child_environment(),
        )  # fmt: skip

    def connect(self, account: str = "alice", **options: Any) -> Any:
        """asyncssh's connection, as a context."""
        import asyncssh

        settings: dict[str, Any] = {
            "known_hosts": None,
            "username": account,
            "client_keys": [str(self.folder / account)],
            "config": None,
            "agent_path": None,
        }
        return asyncssh.connect(**({"host": "127.0.0.1", "port": self.port} | settings | options))

    def run(self, work: Callable[[Any], Awaitable[T]], account: str = "alice") -> T:
        """What asyncssh's client of SFTP makes of the work."""

        async def run() -> T:
            async with self.connect(account) as connection, connection.start_sftp_client() as client:
                return await asyncio.wait_for(work(client), COMMAND_S)

        return asyncio.run(run())

    def ask(self, method: str, path: str, body: bytes | None = None, account: str = "alice") -> tuple[int, bytes]:
        """What the gateway answers of a path in alice's directory, or another account's."""
        url = f"http://127.0.0.1:{self.web}/uri/{quote(self.roots[account], safe='')}{path}"
        try:
            with urlopen(Request(url, data=body, method=method), timeout=COMMAND_S) as answer:
                return answer.status, answer.read()
        except HTTPError as refusal:
            return refusal.code, refusal.read()

    def contents(self, path: str) -> bytes | None:
        """A file as the gateway has it; None if there is none."""
        status, body = self.ask("GET", path)
        assert status in (200, 404), body
        return body if status == 200 else None

    def put(self, account: str, name: str, body: bytes) -> None:
        """Store a file in an account's directory, through the gateway."""
        status, said = self.ask("PUT", f"/{name}", body, account)
        assert status in (200, 201), said

    def memory(self) -> int:
        """Bytes that the process has in memory."""
        return psutil.Process(self.pid).memory_info().rss

    def metric(self, line: str) -> float:
        """A value of /metrics; 0 if it is not there yet."""
        with urlopen(f"http://127.0.0.1:{self.web}/metrics", timeout=COMMAND_S) as answer:
            lines = answer.read().decode().splitlines()
        return sum(float(found.rpartition(" ")[2]) for found in lines if found.startswith(line))


@pytest.fixture(scope="module")
def door(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningDoor]:
    """A door over servers in memory, with the accounts alice, reader (of alice's directory) and bob."""
    folder = tmp_path_factory.mktemp("door") / "door"
    with (folder.parent / "log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.sftp.process", str(folder)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, cwd=Path(__file__).parents[2],
        )  # fmt: skip
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert line, (folder.parent / "log").read_text()
            yield RunningDoor(folder, **json.loads(line))
        finally:
            process.communicate(timeout=COMMAND_S)
    said = (folder.parent / "log").read_text()
    assert "Traceback" not in said, said
    assert "URI:" not in said, said
