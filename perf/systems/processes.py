"""What all systems have in common: ten server processes, a warm client, a command line, and how they are measured.

Both kinds of client read their source from a file and write what they get to a file, in either system:

- `warm`: a client process that runs already and has its connections. Timed from the moment the harness asks it until
  the harness has the cap, or the whole file is written.
- `cli`: a command line, timed from before the process is made until it has ended. What a gateway behind it spends is
  added to the client's processor seconds and memory.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol, TypeVar

from attrs import evolve, frozen

from perf.usage import Usage, cpu_seconds, peak_resident, reset_peaks, resident, run_measured
from tests.support.grid_process import child_environment
from tests.support.node_directory import Kind
from tests.support.tahoe_grid import ProcessGrid

T = TypeVar("T")


@frozen(kw_only=True)
class Encoding:
    """How files are encoded, and on how many servers."""

    needed: int = 3
    happy: int = 7
    total: int = 10
    servers: int = 10


class System(Protocol):
    """A grid and its clients, as the runner drives them."""

    label: str

    def start(self, root: Path, encoding: Encoding) -> None:
        """Bring up a fresh grid with its files below root; ready when this returns."""

    def stop(self) -> None:
        """End every process and remove every file; also after a start that failed."""

    def put(self, client: str, source: Path) -> tuple[str, Usage]:
        """Upload the file with the client of that name; its cap."""

    def get(self, client: str, cap: str, target: Path) -> Usage:
        """Download to the file."""

    def server_cpu_s(self) -> float:
        """Processor seconds of all servers so far."""

    def server_peak_rss(self) -> int:
        """Octets that the largest server has held at its peak."""


class WarmClient(Protocol):
    """A client process that runs already."""

    @property
    def pids(self) -> Sequence[int]:
        """The processes that do the client's work."""

    def put(self, source: Path) -> str:
        """Upload the file; its cap."""

    def get(self, cap: str, target: Path) -> None:
        """Download to the file."""


class CommandLine(Protocol):
    """How to write a system's commands."""

    @property
    def pids(self) -> Sequence[int]:
        """Processes beside the command that do the client's work."""

    def put(self, source: Path) -> list[str]:
        """The command that prints the cap of the file."""

    def get(self, cap: str, target: Path) -> list[str]:
        """The command that downloads to the file."""


class ProcessSystem:
    """A system whose servers are one kind of node; subclasses add the clients."""

    kind: Kind

    def __init__(self, label: str) -> None:
        """label: what records call it."""
        self.label = label
        self._grid: ProcessGrid | None = None
        self._warm: WarmClient | None = None
        self._commands: CommandLine | None = None

    def start_clients(self, grid: ProcessGrid, encoding: Encoding) -> tuple[WarmClient, CommandLine]:
        """Both clients, connected to every server."""
        raise NotImplementedError

    def stop_clients(self) -> None:
        """End what start_clients started and the grid does not stop itself."""

    def start(self, root: Path, encoding: Encoding) -> None:
        """Bring up a fresh grid of this kind of node, Foolscap forced."""
        self._grid = ProcessGrid(root, introducer=self.kind, storage=[self.kind] * encoding.servers)
        self._grid.__enter__()
        self._warm, self._commands = self.start_clients(self._grid, encoding)

    def stop(self) -> None:
        """End every process and remove every file."""
        self.stop_clients()
        grid, self._grid = self._grid, None
        if grid is not None:
            grid.__exit__(None, None, None)

    def put(self, client: str, source: Path) -> tuple[str, Usage]:
        """Upload the file."""
        if client == "warm":
            warm = self._need(self._warm)
            return _measure(warm.pids, lambda: warm.put(source))
        commands = self._need(self._commands)
        answer = source.with_suffix(".cap")
        usage = _run(commands.put(source), answer, commands.pids)
        return answer.read_text().strip(), usage

    def get(self, client: str, cap: str, target: Path) -> Usage:
        """Download to the file."""
        if client == "warm":
            warm = self._need(self._warm)
            return _measure(warm.pids, lambda: warm.get(cap, target))[1]
        commands = self._need(self._commands)
        return _run(commands.get(cap, target), target.with_suffix(".out"), commands.pids)

    def server_cpu_s(self) -> float:
        """Processor seconds of all storage nodes so far."""
        return cpu_seconds(node.pid for node in self._need(self._grid).storage)

    def server_peak_rss(self) -> int:
        """Octets that the largest storage node has held at its peak."""
        return max(peak_resident(node.pid) for node in self._need(self._grid).storage)

    def _need(self, part: T | None) -> T:
        if part is None:
            raise RuntimeError(f"{self.label} is not started")
        return part


def _measure(pids: Sequence[int], operation: Callable[[], T]) -> tuple[T, Usage]:
    idle = resident(pids)
    reset_peaks(pids)
    used = cpu_seconds(pids)
    started = time.perf_counter()
    result = operation()
    seconds = time.perf_counter() - started
    return result, Usage(
        seconds=seconds,
        client_cpu_s=cpu_seconds(pids) - used,
        client_idle_rss=idle,
        client_peak_rss=sum(peak_resident(pid) for pid in pids),
    )


def _run(command: list[str], output: Path, pids: Sequence[int]) -> Usage:
    own, beside = _measure(pids, lambda: run_measured(command, output, child_environment()))
    return evolve(
        own,
        client_cpu_s=own.client_cpu_s + beside.client_cpu_s,
        client_idle_rss=beside.client_idle_rss,
        client_peak_rss=own.client_peak_rss + beside.client_peak_rss,
    )
