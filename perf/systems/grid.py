"""Grid: ten storage nodes, an introducer, the library in a warm process, and the command line."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from attrs import frozen

from perf.systems.processes import CommandLine, Encoding, ProcessSystem, WarmClient
from tests.support.clients import GridClient
from tests.support.grid_process import child_environment
from tests.support.node_directory import Kind, grid_executable
from tests.support.tahoe_grid import ClientSettings, ProcessGrid

ROOT = Path(__file__).resolve().parent.parent.parent


class LibraryError(Exception):
    """The warm process could not do what it was asked."""


class LibraryProcess:
    """The warm client: perf.systems.library in a process of its own, asked by lines of JSON over its stdin."""

    def __init__(self, directory: Path, servers: int) -> None:
        """Return when it is connected to that many servers."""
        self._process = subprocess.Popen(
            [sys.executable, "-m", "perf.systems.library", str(directory), str(servers)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=ROOT,
            env=child_environment(),
        )
        self._answer()

    @property
    def pids(self) -> Sequence[int]:
        """The one process."""
        return [self._process.pid]

    def put(self, source: Path) -> str:
        """Upload the file with grid.immutable.put."""
        return self._ask(what="put", path=str(source))

    def get(self, cap: str, target: Path) -> None:
        """Download to the file with grid.immutable.get."""
        self._ask(what="get", cap=cap, path=str(target))

    def stop(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()

    def _ask(self, **question: str) -> str:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(question).encode() + b"\n")
        self._process.stdin.flush()
        return self._answer()

    def _answer(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise LibraryError(f"the warm process ended with status {self._process.wait()}")
        answer = json.loads(line)
        if "error" in answer:
            raise LibraryError(answer["error"])
        return str(answer["result"])


@frozen
class GridCommands:
    """`grid put` and `grid get`; nothing runs between commands."""

    client: GridClient

    @property
    def pids(self) -> Sequence[int]:
        """None: the command does it all."""
        return []

    def put(self, source: Path) -> list[str]:
        """`grid put FILE`."""
        return [grid_executable(), "-d", str(self.client.directory), "put", str(source)]

    def get(self, cap: str, target: Path) -> list[str]:
        """`grid get CAP FILE`."""
        return [grid_executable(), "-d", str(self.client.directory), "get", cap, str(target)]


class GridSystem(ProcessSystem):
    """Ten storage nodes of Grid over Foolscap, durability full."""

    kind: Kind = "grid"

    def __init__(self, label: str) -> None:
        """label: what records call it."""
        super().__init__(label)
        self._library: LibraryProcess | None = None

    def start_clients(self, grid: ProcessGrid, encoding: Encoding) -> tuple[WarmClient, CommandLine]:
        """A library process and a command line over the same client directory."""
        client = grid.add_client(
            ClientSettings(kind="grid", needed=encoding.needed, happy=encoding.happy, total=encoding.total)
        )
        assert isinstance(client, GridClient)
        self._library = LibraryProcess(client.directory, encoding.servers)
        return self._library, GridCommands(client)

    def stop_clients(self) -> None:
        """End the library process."""
        library, self._library = self._library, None
        if library is not None:
            library.stop()
