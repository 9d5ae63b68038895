"""Common parts of all systems: ten server processes, a warm client, a command line, and how they are measured.

All clients read their source from a file and write their result to a file, in every system:

- `warm`: a client process that is already running and connected. Timed from the harness's request until the harness has
  the capability, or the whole file is written.
- `gateway`: the web gateway of a connected client node, over HTTP; this is 1.20's warm client.
- `cli`: a command line, timed from before its process starts until it has ended. The usage of a gateway behind it is added
  to the client's processor seconds and memory.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from attrs import define, evolve, frozen

from perf.campaigns.campaign import Encoding, Format, Load
from perf.campaigns.labels import Durability
from perf.network.contract import Placement
from perf.processes.node_directory import Kind, NodeSettings, Transport
from perf.processes.node_process import child_environment
from perf.processes.process_grid import ClientSettings, ProcessGrid
from perf.sampling.statistics import median
from perf.sampling.traffic import connections, difference
from perf.sampling.usage import Usage, cpu_parts, cpu_seconds, peak_resident, reset_peaks, resident, run_measured
from perf.systems.contract import Capabilities, CommandLine, Fetch, Member, WarmClient

T = TypeVar("T")


@frozen
class _Warm:
    """A warm client. idle: bytes it held before its first request."""

    client: WarmClient
    idle: int


@define(kw_only=True)
class _Clients:
    """The clients of one encoding. gateway: started on first use."""

    settings: ClientSettings
    warm: _Warm
    commands: CommandLine
    gateway: _Warm | None = None


class ProcessSystem(ABC):
    """A system whose servers are one kind of node; subclasses add the clients."""

    kind: Kind

    def __init__(
        self,
        label: str,
        transport: Transport = "foolscap",
        *,
        plaintext_reads: bool = False,
        durability: Durability = "full",
        program: str = "",
    ) -> None:
        """label: its name in records. transport: of all nodes. plaintext_reads: unencrypted reads.

        program: the `grid` of nodes and commands; the installed one by default.
        """
        self.label = label
        self._transport: Transport = transport
        self._plaintext_reads = plaintext_reads
        self._durability: Durability = durability
        self._program = program
        self._grid: ProcessGrid | None = None
        self._clients: dict[Encoding, _Clients] = {}

    @abstractmethod
    def start_clients(self, grid: ProcessGrid, settings: ClientSettings) -> tuple[WarmClient, CommandLine]:
        """Start both clients, connected to every server."""

    def start_gateway(self, grid: ProcessGrid, settings: ClientSettings, warm: WarmClient) -> WarmClient:
        """A web gateway, connected to every server; the warm client itself, if it is one."""
        return warm

    @abstractmethod
    def stop_clients(self) -> None:
        """End what start_clients started and the grid does not stop itself."""

    @abstractmethod
    def versions(self) -> Mapping[str, str]:
        """The versions of the programs."""

    def capabilities(self, encoding: Encoding) -> Capabilities:
        """Those of both programs, which differ only in durability."""
        return Capabilities(
            expansion=encoding.total / encoding.needed,
            encrypts="server",
            proves="every byte, from the capability",
            syncs=self._durability == "full",
            survives=encoding.total - encoding.needed,
            versions=self.versions(),
        )

    def refuses(self, load: Load, client: str) -> str:
        """Commands support only single files; warm clients and gateways support everything."""
        return "" if client != "cli" or load.suits_commands else "one command puts or gets one immutable file"

    def members(self) -> Sequence[Member]:
        """Nodes, gateways and warm clients."""
        grid = self._need(self._grid)
        servers = [Member(role="server", name=node.name, pid=node.pid, index=i) for i, node in enumerate(grid.storage)]
        nodes = {member.pid for member in servers}
        others = [
            Member(role="other", name=node.name, pid=node.pid)
            for node in grid.nodes
            if node.pid not in nodes and "client" not in node.name
        ]
        clients = {
            pid: Member(role="client", name="client", pid=pid)
            for one in self._clients.values()
            for warm in (one.warm, one.gateway)
            if warm is not None
            for pid in warm.client.pids
        }
        return [*clients.values(), *servers, *others]

    def start(self, root: Path, servers: int, encodings: Sequence[Encoding], placement: Placement) -> None:
        """Start a fresh grid of this kind of node, and clients for each encoding."""
        self._grid = self._make_grid(root, servers, placement)
        self._start_all(encodings)

    def join(self, root: Path, introducer_furl: str, servers: int, encodings: Sequence[Encoding]) -> None:
        """Start only clients, of a grid that runs elsewhere with this many servers."""
        self._grid = self._make_grid(root, 0, Placement())
        self._grid.join(introducer_furl, servers)
        self._start_all(encodings)

    @property
    def node_settings(self) -> NodeSettings:
        """The settings of its storage nodes, without introducer and address, for starting them elsewhere."""
        return NodeSettings(
            kind=self.kind,
            role="storage",
            force_foolscap=self._transport == "foolscap",
            plaintext_reads=self._plaintext_reads,
            durability=self._durability,
            program=self._program,
        )

    def _make_grid(self, root: Path, servers: int, placement: Placement) -> ProcessGrid:
        return ProcessGrid(
            root,
            introducer=self.kind,
            storage=[self.kind] * servers,
            force_foolscap=self._transport == "foolscap",
            transport=self._transport,
            plaintext_reads=self._plaintext_reads,
            durability=self._durability,
            program=self._program,
            placement=placement,
        )

    def _start_all(self, encodings: Sequence[Encoding]) -> None:
        grid = self._need(self._grid)
        grid.__enter__()
        for encoding in encodings:
            settings = ClientSettings(
                kind=self.kind,
                needed=encoding.needed,
                happy=encoding.happy,
                total=encoding.total,
                segment_size=encoding.segment_size,
            )
            warm, commands = self.start_clients(grid, settings)
            self._clients[encoding] = _Clients(
                settings=settings, warm=_Warm(warm, resident(warm.pids)), commands=commands
            )

    def stop(self) -> None:
        """End every process and remove every file."""
        self.stop_clients()
        self._clients.clear()
        grid, self._grid = self._grid, None
        if grid is not None:
            grid.__exit__(None, None, None)

    def put(
        self, client: str, encoding: Encoding, sources: Sequence[Path], concurrency: int, format: Format = "chk"
    ) -> tuple[Sequence[str], Usage]:
        """Upload the files; a command line supports only one immutable file."""
        if client != "cli":
            return self.ask(encoding, lambda warm: warm.put(sources, concurrency, format), client)
        (source,) = sources
        if format != "chk":
            raise ValueError("mutable files are put by warm clients only")
        commands = self._clients[encoding].commands
        answer = source.with_suffix(".cap")
        usage = self._run(commands.put(source), answer, commands.pids)
        return [answer.read_text().strip()], usage

    def get(self, client: str, encoding: Encoding, fetches: Sequence[Fetch], concurrency: int) -> Usage:
        """Download to the files; a command line supports only one whole file."""
        if client != "cli":
            firsts, usage = self.ask(encoding, lambda warm: warm.get(fetches, concurrency), client)
            return evolve(usage, first_byte_s=median(firsts))
        (fetch,) = fetches
        if fetch.length is not None:
            raise ValueError("ranges are read by warm clients only")
        commands = self._clients[encoding].commands
        return self._run(commands.get(fetch.cap, fetch.target), fetch.target.with_suffix(".out"), commands.pids)

    def ask(self, encoding: Encoding, operation: Callable[[WarmClient], T], client: str = "warm") -> tuple[T, Usage]:
        """Measure an operation of a warm client or the gateway."""
        found = self._warm(client, encoding)
        warm = found.client
        result, usage = _measure(warm.pids, lambda: operation(warm), warm.ports)
        return result, evolve(usage, client_idle_rss=found.idle, trace=warm.trace(), status=warm.status)

    def server_cpus_s(self) -> list[float]:
        """Processor seconds of each storage node so far."""
        return [cpu_seconds([node.pid]) for node in self._need(self._grid).storage]

    def server_peaks(self) -> list[int]:
        """The peak memory of each storage node in bytes."""
        return [peak_resident(node.pid) for node in self._need(self._grid).storage]

    def _run(self, command: list[str], output: Path, pids: Sequence[int]) -> Usage:
        host = self._need(self._grid).placement.client
        words, environment = host.command(command), {**child_environment(), **host.environment}
        before = cpu_parts(pids)
        own, beside = _measure(pids, lambda: run_measured(words, output, environment))
        user, system = (new - old for new, old in zip(cpu_parts(pids), before, strict=True))
        return evolve(
            own,
            client_user_s=(own.client_user_s or 0.0) + user,
            client_system_s=(own.client_system_s or 0.0) + system,
            client_cpu_s=own.client_cpu_s + beside.client_cpu_s,
            client_idle_rss=beside.client_idle_rss,
            client_peak_rss=own.client_peak_rss and own.client_peak_rss + beside.client_peak_rss,
        )

    def _warm(self, client: str, encoding: Encoding) -> _Warm:
        clients = self._clients[encoding]
        if client == "warm":
            return clients.warm
        if clients.gateway is None:
            gateway = self.start_gateway(self._need(self._grid), clients.settings, clients.warm.client)
            clients.gateway = _Warm(gateway, resident(gateway.pids))
        return clients.gateway

    def _need(self, part: T | None) -> T:
        if part is None:
            raise RuntimeError(f"{self.label} is not started")
        return part


def _measure(pids: Sequence[int], operation: Callable[[], T], ports: Collection[int] = ()) -> tuple[T, Usage]:
    idle = resident(pids)
    reset_peaks(pids)
    open_before = connections(pids, ports)
    used = cpu_seconds(pids)
    started = time.perf_counter()
    result = operation()
    seconds = time.perf_counter() - started
    return result, Usage(
        seconds=seconds,
        client_cpu_s=cpu_seconds(pids) - used,
        client_idle_rss=idle,
        client_peak_rss=sum(peak_resident(pid) for pid in pids),
        traffic=difference(open_before, connections(pids, ports)),
    )
