"""The `grid` command in this process, on an in-memory grid and in virtual time.

Only the servers are not real: commands, their engines and the client directory's files are. A command that would make
connections is given a client whose servers are those of a TreeGrid.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import pytest
from attrs import define, evolve, frozen

from grid.cli import connection
from grid.cli.main import main
from grid.engine.grid import Encoding, Grid
from grid.node.create import NewClient, create_client
from grid.node.directory import NodeDirectory
from grid.ports import Observer, StorageServer, ignore_events
from tests.support.tree_grid import CONVERGENCE, TreeGrid
from tests.support.virtual_time import VirtualRuntime

T = TypeVar("T")


@frozen
class Ended:
    """How a command ended, and its output."""

    code: int
    out: str
    err: str


class _Directory:
    """What a client reads of its directory."""

    def __init__(self, directory: NodeDirectory) -> None:
        self.settings = directory.settings
        self.path = directory.path

    def convergence_secret(self) -> bytes:
        return CONVERGENCE


@define(eq=False)
class MemoryClient:
    """What a command uses of a client: the servers of a grid in memory, all of them known."""

    _tree: TreeGrid
    directory: _Directory

    @property
    def runtime(self) -> VirtualRuntime:
        return self._tree.runtime

    @property
    def encoding(self) -> Encoding:
        return self._tree.encoding

    def grid(self, servers: Sequence[StorageServer], observer: Observer = ignore_events) -> Grid:
        return evolve(self._tree.store.grid, servers=servers, observer=observer)

    grid_to_read = grid

    @property
    def introducers(self) -> list[Any]:
        return []

    @property
    def server_set(self) -> MemoryClient:
        return self

    @property
    def entries(self) -> list[Any]:
        """Of a ServerSet: nothing is known of connections where there are none."""
        return []

    async def servers(self) -> list[StorageServer]:
        return list(self._tree.servers)

    def remembered_servers(self) -> list[StorageServer]:
        return list(self._tree.servers)


class MemoryCommand:
    """Runs commands of one client directory; `work:` is an alias for a directory of its own.

    on_terminal: whether the standard streams say that they are one.
    """

    def __init__(self, path: Path, monkeypatch: pytest.MonkeyPatch, capture: pytest.CaptureFixture[str]) -> None:
        self.grid = TreeGrid()
        self.path = path
        self.on_terminal = False
        self._capture = capture
        furl = "pb://l2rdxsw4e5nqqud4h4cj7uuaz2s6is2e@tcp:127.0.0.1:9/ln3ddyjdlt3cxe5uujeubs3ho2cl4jht"
        create_client(path, NewClient(introducer_furl=furl))
        monkeypatch.setattr(connection, "run_with_client", self._run)
        self.root = self.grid.make().cap
        (path / "private" / "aliases").write_text(f"work: {self.root.to_string()}\n")

    def _run(self, directory: NodeDirectory, operation: Callable[[Any], Awaitable[T]]) -> T:
        async def body() -> T:
            return await operation(MemoryClient(self.grid, _Directory(directory)))

        return self.grid.run(body())

    def run(self, *arguments: str | Path) -> Ended:
        """Run a command to its end."""
        self._capture.readouterr()
        # A command may leave signals ignored when it ends, as its process is about to. Later tests' processes would inherit that.
        handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
        with pytest.MonkeyPatch.context() as patch:
            for stream in (sys.stdin, sys.stdout, sys.stderr):
                patch.setattr(stream, "isatty", lambda: self.on_terminal, raising=False)
            try:
                code = main(["-d", str(self.path), *map(str, arguments)])
            finally:
                for number, handler in handlers.items():
                    signal.signal(number, handler)
        return Ended(code, *self._capture.readouterr())

    def wait(self, seconds: float) -> None:
        """Let time pass on the grid."""
        self.grid.run(self.grid.runtime.clock.sleep(seconds))

    def succeed(self, *arguments: str | Path) -> str:
        """What a command prints that ends with 0."""
        ended = self.run(*arguments)
        assert ended.code == 0, ended
        return ended.out.strip()

    def fail(self, code: int, *arguments: str | Path) -> str:
        """The one line of a command that ends with this status, which has no capability in it."""
        ended = self.run(*arguments)
        assert ended.code == code, ended
        assert "URI:" not in ended.err.replace("URI:…", "") and "Traceback" not in ended.err
        *usage, line = ended.err.splitlines()
        assert all(text.startswith("Usage: ") for text in usage), ended.err
        return line.removeprefix("grid: ")

    def names(self, path: str = "work:") -> list[str]:
        """What `ls` shows."""
        return self.succeed("ls", path).splitlines()
