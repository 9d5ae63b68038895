"""Clients of a process grid, used as a user would: through command lines and web gateways."""

from __future__ import annotations

import http.client
import json
import subprocess
import urllib.parse
import urllib.request
from collections.abc import Collection, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, BinaryIO, Protocol

from attrs import frozen

from perf.processes.node_directory import grid_executable, tahoe_executable
from perf.processes.node_process import NodeProcess, child_environment

COMMAND_S = 300.0
"""The timeout, longer than any command takes."""

CHECK_STATUSES = (0, 1, 4)
"""Statuses of `grid check` that come with a result: healthy, not healthy, not recoverable."""

COPY_BYTES = 1 << 20

STATUS = 64 << 10
"""Characters kept of a status page."""


@frozen
class Done:
    """How a command ended."""

    status: int
    out: str
    err: str


class CommandError(Exception):
    """A command line ended with an unexpected status."""

    def __init__(self, command: list[str], status: int, stderr: str) -> None:
        super().__init__(f"{' '.join(command)}: status {status}: {stderr[-2000:]}")
        self.status = status
        self.stderr = stderr


def run_command(command: list[str], data: bytes | None = None, expected: Collection[int] = (0,)) -> bytes:
    """The command's stdout; CommandError if its exit code is not expected."""
    done = subprocess.run(
        command, input=data, capture_output=True, timeout=COMMAND_S, env=child_environment(), check=False
    )
    if done.returncode not in expected:
        raise CommandError(command, done.returncode, done.stderr.decode(errors="replace"))
    return done.stdout


class Client(Protocol):
    """The interface of either program's client."""

    @property
    def directory(self) -> Path:
        """Its node directory."""

    def connected_count(self) -> int:
        """The number of storage servers it reaches now."""

    def put(self, path: Path) -> str:
        """Upload an immutable file; return its capability."""

    def get(self, cap: str, path: Path) -> None:
        """Download to a file."""

    def check(self, cap: str, *, verify: bool = True) -> dict[str, Any]:
        """The RESULTS object of [spec webapi 6.2]."""

    def repair(self, cap: str) -> None:
        """Repair, and raise unless the file is healthy afterwards."""


@contextmanager
def http_request(
    url: str, method: str, path: str, body: BinaryIO | None = None, size: int = 0
) -> Iterator[http.client.HTTPResponse]:
    """The answer to a request on a connection of its own; RuntimeError if it is refused. path: without its first slash."""
    base = urllib.parse.urlsplit(url)
    assert base.hostname is not None
    connection = http.client.HTTPConnection(base.hostname, base.port, timeout=COMMAND_S, blocksize=COPY_BYTES)
    try:
        connection.request(method, "/" + path, body=body, headers={"Content-Length": str(size)} if body else {})
        answer = connection.getresponse()
        if answer.status not in (200, 201, 204):
            raise RuntimeError(f"{method} answered {answer.status}: {answer.read()[:2000]!r}")
        yield answer
    finally:
        connection.close()


def http_download(url: str, path: str, target: Path) -> None:
    """Get to a file; RuntimeError."""
    with http_request(url, "GET", path) as answer, target.open("wb") as file:
        expected = int(answer.headers["Content-Length"])
        while piece := answer.read(COPY_BYTES):
            file.write(piece)
            expected -= len(piece)
    if expected:
        raise RuntimeError(f"the answer is {expected} bytes short")


class WebClient:
    """A running client node of either kind, through its web gateway."""

    def __init__(self, node: NodeProcess) -> None:
        self.node = node

    @property
    def directory(self) -> Path:
        """Its node directory."""
        return self.node.directory

    @property
    def url(self) -> str:
        """The gateway's URL, with a trailing slash."""
        return (self.directory / "node.url").read_text().strip()

    def connected_count(self) -> int:
        """The number of servers the node is connected to; 0 while the gateway does not answer yet."""
        if not (self.directory / "node.url").exists():
            return 0
        try:
            with urllib.request.urlopen(self.url + "?t=json", timeout=10) as answer:
                servers = json.load(answer)["servers"]
        except (OSError, ValueError):
            return 0
        return sum(server["connection_status"].lower().startswith("connected") for server in servers)

    def put(self, path: Path) -> str:
        """Upload an immutable file; return its capability."""
        with path.open("rb") as body, self._request("PUT", "uri", body, path.stat().st_size) as answer:
            return answer.read().decode("ascii").strip()

    def get(self, cap: str, path: Path) -> None:
        """Download to a file."""
        http_download(self.url, f"uri/{urllib.parse.quote(cap, safe='')}", path)

    def make_directory(self) -> str:
        """Create an empty directory; return its write capability."""
        with self._request("POST", "uri?t=mkdir") as answer:
            return answer.read().decode("ascii").strip()

    def put_in(self, directory: str, name: str, path: Path) -> None:
        """Upload an immutable file, and link it to the directory."""
        target = f"uri/{urllib.parse.quote(directory, safe='')}/{urllib.parse.quote(name, safe='')}"
        with path.open("rb") as body, self._request("PUT", target, body, path.stat().st_size) as answer:
            answer.read()

    def get_from(self, directory: str, name: str, path: Path) -> None:
        """Download a file of the directory to a file."""
        where = f"uri/{urllib.parse.quote(directory, safe='')}/{urllib.parse.quote(name, safe='')}"
        http_download(self.url, where, path)

    def check(self, cap: str, *, verify: bool = True) -> dict[str, Any]:
        """The RESULTS object of [spec webapi 6.2]."""
        query = f"uri/{urllib.parse.quote(cap, safe='')}?t=check&output=json&verify={'true' if verify else 'false'}"
        with self._request("POST", query) as answer:
            results: dict[str, Any] = json.load(answer)["results"]
        return results

    def repair(self, cap: str) -> None:
        """Repair, and raise unless the file is healthy afterwards."""
        query = f"uri/{urllib.parse.quote(cap, safe='')}?t=check&output=json&verify=true&repair=true"
        with self._request("POST", query) as answer:
            done = json.load(answer)
        if not done["post-repair-results"]["results"]["healthy"]:
            raise RuntimeError(f"the repair did not succeed: {done['post-repair-results']['results']}")

    def status(self) -> str:
        """The status of recent operations as JSON; the node itself abbreviates storage indexes in it."""
        with self._request("GET", "status/?t=json") as answer:
            text: str = answer.read().decode(errors="replace")
        return text[:STATUS]

    def _request(
        self, method: str, path: str, body: BinaryIO | None = None, size: int = 0
    ) -> AbstractContextManager[http.client.HTTPResponse]:
        return http_request(self.url, method, path, body, size)


class TahoeClient(WebClient):
    """A running Tahoe-LAFS 1.20 client node, through its web gateway, or (`cli_*`, `run`) through its command line."""

    def __init__(self, node: NodeProcess, program: str = "") -> None:
        """program: the `tahoe` of its command lines; the one that GRID_TAHOE names if not given."""
        super().__init__(node)
        self._program = program

    def cli_put(self, path: Path) -> str:
        """`tahoe put`."""
        return self.run("put", str(path)).decode("ascii").strip()

    def cli_get(self, cap: str, path: Path) -> None:
        """`tahoe get`."""
        self.run("get", cap, str(path))

    def cli_check(self, cap: str) -> dict[str, Any]:
        """`tahoe check --verify --raw`; return its RESULTS object."""
        results: dict[str, Any] = json.loads(self.run("check", "--verify", "--raw", cap))["results"]
        return results

    def run(self, *arguments: str, expected: Collection[int] = (0,)) -> bytes:
        """Run `tahoe -d DIRECTORY ARGUMENTS` and return its stdout; CommandError at another status than those expected."""
        return run_command(self.command(*arguments), expected=expected)

    def command(self, *arguments: str) -> list[str]:
        """`tahoe -d DIRECTORY ARGUMENTS`."""
        return [self._program or tahoe_executable(), "-d", str(self.directory), *arguments]


class GridGateway(WebClient):
    """A running client node of Grid with its web gateway."""


class GridClient:
    """A client directory of Grid, through the command line; no process runs between commands."""

    def __init__(self, directory: Path, program: str = "") -> None:
        """program: the `grid` to run; the installed one by default."""
        self.directory = directory
        self._program = program or grid_executable()

    def connected_count(self) -> int:
        """The number of servers that `grid status` reaches; 0 while no introducer answers."""
        try:
            status = json.loads(self.run("status", "--json"))
        except (CommandError, ValueError):
            return 0
        return sum(server["reachable"] for server in status["servers"])

    def put(self, path: Path) -> str:
        """`grid put`; return the capability."""
        return self.run("put", str(path)).decode("ascii").strip()

    def get(self, cap: str, path: Path) -> None:
        """`grid get`."""
        self.run("get", cap, str(path))

    def check(self, cap: str, *, verify: bool = True) -> dict[str, Any]:
        """`grid check`; return its RESULTS object."""
        options = ["--verify"] if verify else []
        answer = self.run("check", *options, "--json", cap, expected=CHECK_STATUSES)
        results: dict[str, Any] = json.loads(answer)["results"]
        return results

    def repair(self, cap: str) -> None:
        """`grid repair`, which fails unless the file is healthy afterwards."""
        self.run("repair", cap)

    def run(self, *arguments: str, data: bytes | None = None, expected: Collection[int] = (0,)) -> bytes:
        """The stdout of `grid -d DIRECTORY ARGUMENTS`; CommandError if its exit code is not expected."""
        return run_command(self.command(*arguments), data, expected)

    def command(self, *arguments: str) -> list[str]:
        """`grid -d DIRECTORY ARGUMENTS`."""
        return [self._program, "-d", str(self.directory), *arguments]
