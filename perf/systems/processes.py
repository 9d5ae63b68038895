"""What all systems have in common: ten server processes, a warm client, a command line, and how they are measured.

Both kinds of client read their source from a file and write what they get to a file, in either system:

- `warm`: a client process that runs already and has its connections. Timed from the moment the harness asks it until
  the harness has the cap, or the whole file is written.
- `gateway`: the web gateway of a client node that is connected, asked over HTTP; 1.20's warm client is that.
- `cli`: a command line, timed from before the process is made until it has ended. What a gateway behind it spends is
  added to the client's processor seconds and memory.
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
from perf.sampling.usage import Usage, cpu_seconds, peak_resident, reset_peaks, resident, run_measured
from perf.systems.contract import Capabilities, CommandLine, Fetch, Member, WarmClient

T = TypeVar("T")


@frozen
class _Warm:
    """A warm client. idle: bytes that it held when nothing had been asked of it yet."""

    client: WarmClient
    idle: int


@define(kw_only=True)
class _Clients:
    """Those of one encoding. gateway: started when it is first asked for."""

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
        """label: what records call it. transport: which one all nodes use. plaintext_reads: reads in the clear.

        program: the `grid` of nodes and commands; the installed one if not given.
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
        """Both clients, connected to every server."""

    def start_gateway(self, grid: ProcessGrid, settings: ClientSettings, warm: WarmClient) -> WarmClient:
        """A web gateway, connected to every server: the warm client itself, where that is one."""
        return warm

    @abstractmethod
    def stop_clients(self) -> None:
        """End what start_clients started and the grid does not stop itself."""

    @abstractmethod
    def versions(self) -> Mapping[str, str]:
        """Of the programs that run."""

    def capabilities(self, encoding: Encoding) -> Capabilities:
        """Those of either program: only durability differs."""
        return Capabilities(
            expansion=encoding.total / encoding.needed,
            encrypts="server",
            proves="every byte, from the capability",
            syncs=self._durability == "full",
            survives=encoding.total - encoding.needed,
            versions=self.versions(),
        )

    def refuses(self, load: Load, client: str) -> str:
        """Commands do single files only; warm clients and gateways do everything."""
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
        """Bring up a fresh grid of this kind of node, and clients for each encoding."""
        self._grid = self._make_grid(root, servers, placement)
        self._start_all(encodings)

    def join(self, root: Path, introducer_furl: str, servers: int, encodings: Sequence[Encoding]) -> None:
        """Bring up clients alone, of a grid that runs elsewhere and has that many servers."""
        self._grid = self._make_grid(root, 0, Placement())
        self._grid.join(introducer_furl, servers)
        self._start_all(encodings)

    @property
    def node_settings(self) -> NodeSettings:
        """What its storage nodes are, for one that starts them elsewhere: without introducer and address."""
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
        """Upload the files; from the command line only one, and immutable."""
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
        """Download to the files; from the command line only one, and whole."""
        if client != "cli":
            firsts, usage = self.ask(encoding, lambda warm: warm.get(fetches, concurrency), client)
            return evolve(usage, first_byte_s=median(firsts))
        (fetch,) = fetches
        if fetch.length is not None:
            raise ValueError("ranges are read by warm clients only")
        commands = self._clients[encoding].commands
        return self._run(commands.get(fetch.cap, fetch.target), fetch.target.with_suffix(".out"), commands.pids)

    def ask(self, encoding: Encoding, operation: Callable[[WarmClient], T], client: str = "warm") -> tuple[T, Usage]:
        """Measure what is asked of a warm client, or of the gateway."""
        found = self._warm(client, encoding)
        warm = found.client
        result, usage = _measure(warm.pids, lambda: operation(warm), warm.ports)
        return result, evolve(usage, client_idle_rss=found.idle, trace=warm.trace(), status=warm.status)

    def server_cpus_s(self) -> list[float]:
        """Processor seconds of each storage node so far."""
        return [cpu_seconds([node.pid]) for node in self._need(self._grid).storage]

    def server_peaks(self) -> list[int]:
        """Bytes that each storage node has held at its peak."""
        return [peak_resident(node.pid) for node in self._need(self._grid).storage]

    def _run(self, command: list[str], output: Path, pids: Sequence[int]) -> Usage:
        host = self._need(self._grid).placement.client
        words, environment = host.command(command), {**child_environment(), **host.environment}
        own, beside = _measure(pids, lambda: run_measured(words, output, environment))
        return evolve(
            own,
            client_cpu_s=own.client_cpu_s + beside.client_cpu_s,
            client_idle_rss=beside.client_idle_rss,
            client_peak_rss=own.client_peak_rss + beside.client_peak_rss,
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
