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

from perf.campaigns import Encoding
from perf.statistics import median
from perf.usage import Usage, cpu_seconds, peak_resident, reset_peaks, resident, run_measured
from tests.support.grid_process import child_environment
from tests.support.node_directory import Kind, Transport
from tests.support.tahoe_grid import ClientSettings, ProcessGrid

T = TypeVar("T")


@frozen(kw_only=True)
class Fetch:
    """One download. length: octets from offset on; None for the whole file."""

    cap: str
    target: Path
    offset: int = 0
    length: int | None = None


class System(Protocol):
    """A grid and its clients, as the runner drives them. Each encoding has clients of its own."""

    label: str

    def start(self, root: Path, servers: int, encodings: Sequence[Encoding]) -> None:
        """Bring up a fresh grid with its files below root; ready when this returns."""

    def stop(self) -> None:
        """End every process and remove every file; also after a start that failed."""

    def put(
        self, client: str, encoding: Encoding, sources: Sequence[Path], concurrency: int
    ) -> tuple[Sequence[str], Usage]:
        """Upload the files, so many at a time, with the client of that name; their caps in order."""

    def get(self, client: str, encoding: Encoding, fetches: Sequence[Fetch], concurrency: int) -> Usage:
        """Download to the files, so many at a time."""

    def server_cpu_s(self) -> float:
        """Processor seconds of all servers so far."""

    def server_peak_rss(self) -> int:
        """Octets that the largest server has held at its peak."""


class WarmClient(Protocol):
    """A client process that runs already."""

    @property
    def pids(self) -> Sequence[int]:
        """The processes that do the client's work."""

    def put(self, sources: Sequence[Path], concurrency: int) -> list[str]:
        """Upload the files; their caps in order."""

    def get(self, fetches: Sequence[Fetch], concurrency: int) -> list[float]:
        """Download to the files; for each the seconds until its first octet was there."""


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

    def __init__(self, label: str, transport: Transport = "foolscap", *, plaintext_reads: bool = False) -> None:
        """label: what records call it. transport: which one all nodes use. plaintext_reads: reads in the clear."""
        self.label = label
        self._transport: Transport = transport
        self._plaintext_reads = plaintext_reads
        self._grid: ProcessGrid | None = None
        self._clients: dict[Encoding, tuple[WarmClient, CommandLine]] = {}

    def start_clients(self, grid: ProcessGrid, settings: ClientSettings) -> tuple[WarmClient, CommandLine]:
        """Both clients, connected to every server."""
        raise NotImplementedError

    def stop_clients(self) -> None:
        """End what start_clients started and the grid does not stop itself."""

    def start(self, root: Path, servers: int, encodings: Sequence[Encoding]) -> None:
        """Bring up a fresh grid of this kind of node, and clients for each encoding."""
        self._grid = ProcessGrid(
            root,
            introducer=self.kind,
            storage=[self.kind] * servers,
            force_foolscap=self._transport == "foolscap",
            transport=self._transport,
            plaintext_reads=self._plaintext_reads,
        )
        self._grid.__enter__()
        for encoding in encodings:
            settings = ClientSettings(
                kind=self.kind,
                needed=encoding.needed,
                happy=encoding.happy,
                total=encoding.total,
                segment_size=encoding.segment_size,
            )
            self._clients[encoding] = self.start_clients(self._grid, settings)

    def stop(self) -> None:
        """End every process and remove every file."""
        self.stop_clients()
        self._clients.clear()
        grid, self._grid = self._grid, None
        if grid is not None:
            grid.__exit__(None, None, None)

    def put(
        self, client: str, encoding: Encoding, sources: Sequence[Path], concurrency: int
    ) -> tuple[Sequence[str], Usage]:
        """Upload the files; from the command line only one."""
        warm, commands = self._clients[encoding]
        if client == "warm":
            return _measure(warm.pids, lambda: warm.put(sources, concurrency))
        (source,) = sources
        answer = source.with_suffix(".cap")
        usage = _run(commands.put(source), answer, commands.pids)
        return [answer.read_text().strip()], usage

    def get(self, client: str, encoding: Encoding, fetches: Sequence[Fetch], concurrency: int) -> Usage:
        """Download to the files; from the command line only one, and whole."""
        warm, commands = self._clients[encoding]
        if client == "warm":
            firsts, usage = _measure(warm.pids, lambda: warm.get(fetches, concurrency))
            return evolve(usage, first_byte_s=median(firsts))
        (fetch,) = fetches
        if fetch.length is not None:
            raise ValueError("ranges are read by warm clients only")
        return _run(commands.get(fetch.cap, fetch.target), fetch.target.with_suffix(".out"), commands.pids)

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
