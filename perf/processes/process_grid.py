"""Real grids of processes on loopback, composed of Tahoe-LAFS 1.20's nodes and of Grid's in any mixture.

    with ProcessGrid(root, introducer="tahoe", storage=["tahoe"] * 5 + ["grid"] * 5) as grid:
        client = grid.add_client(ClientSettings(kind="tahoe"))

The `tahoe` is the one that the environment variable GRID_TAHOE names.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

from attrs import evolve, frozen

from perf.processes.clients import Client, GridClient, GridGateway, TahoeClient
from perf.processes.node_directory import Kind, NodeSettings, Transport, make_node
from perf.processes.node_process import NodeProcess, free_ports, stop_all, wait_until


@frozen(kw_only=True)
class ClientSettings:
    """What a client encodes with; segment_size in bytes, None for the usual 1 MiB.

    gateway: run a web gateway of Grid; 1.20's clients always do.
    """

    kind: Kind
    needed: int = 3
    happy: int = 7
    total: int = 10
    segment_size: int | None = None
    gateway: bool = False


class ProcessGrid:
    """A grid that runs inside a `with`; every node is stopped and every file removed at its end."""

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
        convergence: bytes | None = None,
        lease_master: bytes | None = None,
        program: str = "",
    ) -> None:
        """root: a directory to make. transport, plaintext_reads, durability: of Grid's nodes.

        convergence, lease_master: 32 bytes that all clients share, or each its own. program: the `grid` of its nodes
        and commands; the installed one if not given.
        """
        self.root = root
        self.introducer_furl = ""
        self.storage: list[NodeProcess] = []
        self.clients: list[Client] = []
        self._introducer_kind: Kind = introducer
        self._storage_kinds = list(storage)
        self._force_foolscap = force_foolscap
        self._transport: Transport = transport
        self._plaintext_reads = plaintext_reads
        self._durability: Literal["full", "none"] = durability
        self._program = program
        self._convergence = convergence
        self._lease_master = lease_master
        self._introducer: NodeProcess | None = None
        self._gateways: list[NodeProcess] = []

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
            shutil.rmtree(self.root)

    @property
    def nodes(self) -> list[NodeProcess]:
        """Every process of the grid, clients' gateways included."""
        return [*self._gateways, *self.storage, *([self._introducer] if self._introducer else [])]

    def stop(self) -> None:
        """End every process; the files stay."""
        stop_all(self.nodes)

    def add_client(self, settings: ClientSettings) -> Client:
        """A client that reaches every storage node, started and connected."""
        client = self.start_client(settings)
        self.wait_connected(client)
        return client

    def start_client(self, settings: ClientSettings) -> Client:
        """The same without the wait; several start together so."""
        directory = self.root / f"client{len(self.clients)}"
        node = make_node(
            directory,
            NodeSettings(
                kind=settings.kind,
                role="client",
                introducer_furl=self.introducer_furl,
                needed=settings.needed,
                happy=settings.happy,
                total=settings.total,
                segment_size=settings.segment_size,
                gateway=settings.gateway or settings.kind == "tahoe",
                force_foolscap=self._force_foolscap,
                transport=self._transport,
                plaintext_reads=self._plaintext_reads,
                convergence=self._convergence,
                lease_master=self._lease_master,
                program=self._program,
            ),
        )
        client: Client
        if settings.kind == "tahoe" or settings.gateway:
            node.start()
            self._gateways.append(node)
            client = TahoeClient(node) if settings.kind == "tahoe" else GridGateway(node)
        else:
            client = GridClient(directory, self._program)
        self.clients.append(client)
        return client

    def wait_connected(self, client: Client) -> None:
        """Return when the client reaches every storage node that was not stopped; RuntimeError if one ended by itself."""
        wanted = [node for node in self.nodes if node.wanted]
        count = sum(node in self.storage for node in wanted)

        def connected() -> bool:
            for node in wanted:
                node.expect_running()
            return client.connected_count() >= count

        wait_until(connected, f"{client.directory.name} to reach {count} servers")

    def shares(self, storage_index: str) -> dict[int, list[Path]]:
        """The share files of a file (storage index in base32) by share number, over all storage nodes."""
        found: dict[int, list[Path]] = {}
        for node in self.storage:
            bucket = node.directory / "storage" / "shares" / storage_index[:2] / storage_index
            for path in bucket.glob("*"):
                found.setdefault(int(path.name), []).append(path)
        return found

    def incoming(self) -> list[Path]:
        """Every share file still being uploaded, over all storage nodes."""
        roots = [node.directory / "storage" / "shares" / "incoming" for node in self.storage]
        return [path for root in roots for path in root.rglob("*") if path.is_file()]

    def _start(self) -> None:
        self.root.mkdir(parents=True)
        ports = free_ports(1 + len(self._storage_kinds))
        base = NodeSettings(
            kind=self._introducer_kind,
            role="introducer",
            force_foolscap=self._force_foolscap,
            plaintext_reads=self._plaintext_reads,
            durability=self._durability,
            program=self._program,
        )
        self._introducer = make_node(self.root / "introducer", evolve(base, port=ports[0]))
        self._introducer.start()
        furl = self._introducer.directory / "private" / "introducer.furl"
        self._introducer.wait_for(lambda: furl.exists() and bool(furl.read_text().strip()), "its FURL")
        self.introducer_furl = furl.read_text().strip()
        for index, (kind, port) in enumerate(zip(self._storage_kinds, ports[1:], strict=True)):
            settings = evolve(base, kind=kind, role="storage", port=port, introducer_furl=self.introducer_furl)
            node = make_node(self.root / f"storage{index}", settings)
            node.start()
            self.storage.append(node)
