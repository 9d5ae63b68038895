"""Real process grids on loopback or on a topology's hosts, with any mix of Tahoe-LAFS 1.20's and Grid's nodes.

    with ProcessGrid(root, introducer="tahoe", storage=["tahoe"] * 5 + ["grid"] * 5) as grid:
        client = grid.add_client(ClientSettings(kind="tahoe"))

The environment variable GRID_TAHOE names the `tahoe` to use.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

from attrs import evolve, field, frozen

from perf.network.contract import Host, Placement
from perf.processes.clients import Client, GridClient, GridGateway, TahoeClient
from perf.processes.node_directory import Kind, NodeSettings, Transport, make_node, wait_listening
from perf.processes.node_process import NodeProcess, free_ports, stop_all, wait_until


@frozen(kw_only=True)
class ClientSettings:
    """A client's encoding; segment_size in bytes, None for the default of 1 MiB.

    gateway: run Grid's web gateway; 1.20's clients always do.
    """

    kind: Kind
    needed: int = 3
    happy: int = 7
    total: int = 10
    segment_size: int | None = None
    gateway: bool = False

    @classmethod
    def usual(cls, servers: int, kind: Kind = "grid") -> ClientSettings:
        """3-of-10; on fewer than ten servers one share each, of which two are needed."""
        few = servers < 10
        return cls(kind=kind, needed=2 if few else 3, happy=min(7, servers), total=servers if few else 10)


@frozen(kw_only=True)
class ClientSecrets:
    """Secrets that clients must share to get equal capabilities and leases: 32 bytes each."""

    convergence: bytes = field(repr=False)
    lease_master: bytes = field(repr=False)


class ProcessGrid:
    """A grid that runs inside a context; at the end every node is stopped and every file removed."""

    def __init__(
        self,
        root: Path,
        *,
        introducer: Kind,
        storage: Sequence[Kind],
        force_foolscap: bool = True,
        transport: Transport = "auto",
        plaintext_reads: bool = False,
        durability: Literal["full", "none"] = "full",
        secrets: ClientSecrets | None = None,
        program: str = "",
        placement: Placement | None = None,
    ) -> None:
        """root: a directory to create. transport, plaintext_reads, durability: of Grid's nodes.

        secrets: shared by all clients; by default each draws its own. program: the `grid` of its nodes and commands;
        the installed one by default. placement: the host of each node; loopback by default. A host's own directory must
        be empty, and is left empty.
        """
        self.root = root
        self.introducer_furl = ""
        self.elsewhere = 0
        self.storage: list[NodeProcess] = []
        self.clients: list[Client] = []
        self._storage_kinds = list(storage)
        self._server_settings = NodeSettings(
            kind=introducer,
            role="introducer",
            force_foolscap=force_foolscap,
            plaintext_reads=plaintext_reads,
            durability=durability,
            program=program,
        )
        self._client_settings = evolve(
            self._server_settings,
            role="client",
            transport=transport,
            convergence=secrets.convergence if secrets else None,
            lease_master=secrets.lease_master if secrets else None,
        )
        self.placement = placement or Placement()
        self._prepare: Callable[[NodeProcess], None] = lambda _: None
        self._introducer: NodeProcess | None = None
        self._gateways: list[NodeProcess] = []
        self._outside: list[Path] = []

    def __enter__(self) -> Self:
        try:
            self._start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop()
        if error is None:
            for directory in [self.root, *self._outside]:
                shutil.rmtree(directory)

    @property
    def nodes(self) -> list[NodeProcess]:
        """Every process of the grid, including clients' gateways."""
        return [*self._gateways, *self.storage, *([self._introducer] if self._introducer else [])]

    @property
    def command(self) -> str:
        """The `grid` of its clients' command lines."""
        return self._client_settings.program

    @property
    def tahoe_command(self) -> str:
        """The `tahoe` of its clients' command lines; empty for the one that GRID_TAHOE names."""
        return ""

    def join(self, introducer_furl: str, servers: int) -> None:
        """Use only clients, of a grid that runs elsewhere with this many servers.

        Call it before entering the context.
        """
        self.introducer_furl = introducer_furl
        self.elsewhere = servers
        self._storage_kinds = []

    def prepare_storage(self, prepare: Callable[[NodeProcess], None]) -> None:
        """Call this function with each storage node before it starts. Call it before entering the context."""
        self._prepare = prepare

    @property
    def server_count(self) -> int:
        """The number of storage nodes, wherever they run."""
        return self.elsewhere + len(self.storage)

    def stop(self) -> None:
        """End every process, but keep the files."""
        stop_all(self.nodes)

    def add_client(self, settings: ClientSettings) -> Client:
        """Start a client, and wait until it reaches every storage node."""
        client = self.start_client(settings)
        self.wait_connected(client)
        return client

    def start_client(self, settings: ClientSettings) -> Client:
        """The same without waiting, which lets several start in parallel."""
        directory = self.root / f"client{len(self.clients)}"
        node = make_node(
            directory,
            evolve(
                self._client_settings,
                kind=settings.kind,
                introducer_furl=self.introducer_furl,
                needed=settings.needed,
                happy=settings.happy,
                total=settings.total,
                segment_size=settings.segment_size,
                gateway=settings.gateway or settings.kind == "tahoe",
            ),
            self.placement.client,
        )
        client: Client
        if settings.kind == "tahoe" or settings.gateway:
            node.start()
            self._gateways.append(node)
            client = TahoeClient(node, self.tahoe_command) if settings.kind == "tahoe" else GridGateway(node)
        else:
            client = GridClient(directory, self.command)
        self.clients.append(client)
        return client

    def wait_connected(self, client: Client) -> None:
        """Wait until the client reaches every node that was not stopped; RuntimeError if one ended by itself."""
        wanted = [node for node in self.nodes if node.wanted]
        servers = [node for node in self.storage if node.wanted]
        count = self.elsewhere + len(servers)
        if self.placement == Placement():
            # Asking a client may start a process; do not add that to the wait for the nodes.
            for node in servers:
                wait_listening(node)

        def connected() -> bool:
            for node in wanted:
                node.expect_running()
            return client.connected_count() >= count

        wait_until(connected, f"{client.directory.name} to reach {count} servers")

    def shares(self, storage_index: str) -> dict[int, list[Path]]:
        """A file's shares by share number, over all storage nodes; the storage index is in base32."""
        found: dict[int, list[Path]] = {}
        for node in self.storage:
            bucket = node.directory / "storage" / "shares" / storage_index[:2] / storage_index
            for path in bucket.glob("*"):
                found.setdefault(int(path.name), []).append(path)
        return found

    def incoming(self) -> list[Path]:
        """Every share file still being uploaded, on all storage nodes."""
        roots = [node.directory / "storage" / "shares" / "incoming" for node in self.storage]
        return [path for root in roots for path in root.rglob("*") if path.is_file()]

    def _start(self) -> None:
        self.root.mkdir(parents=True)
        if self.introducer_furl:
            return
        ports = free_ports(1 + len(self._storage_kinds))
        host = self.placement.introducer
        self._introducer = make_node(
            self.root / "introducer", evolve(self._server_settings, port=ports[0], address=host.address), host
        )
        self._introducer.start()
        furl = self._introducer.directory / "private" / "introducer.furl"
        self._introducer.wait_for(lambda: furl.exists() and bool(furl.read_text().strip()), "its FURL")
        self.introducer_furl = furl.read_text().strip()
        for index, (kind, port) in enumerate(zip(self._storage_kinds, ports[1:], strict=True)):
            host = self.placement.server(index)
            settings = evolve(
                self._server_settings,
                kind=kind,
                role="storage",
                port=port,
                address=host.address,
                introducer_furl=self.introducer_furl,
            )
            node = make_node(self._directory_of(f"storage{index}", host), settings, host)
            self._prepare(node)
            node.start()
            self.storage.append(node)

    def _directory_of(self, name: str, host: Host) -> Path:
        """A storage node's directory: below the grid's root, or on the host's own medium."""
        if host.directory is None:
            return self.root / name
        # Several grids may share a medium.
        self._outside.append(host.directory / f"{self.root.name}-{name}")
        return self._outside[-1]
