"""How a command reaches the grid: as a client of its own, or through a gateway (grid.cli.webapi.connection)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from attrs import field, frozen

from grid.cli.terminal.warnings import Warnings
from grid.ports import Observer, Runtime, Sink, StorageServer, ignore_events

if TYPE_CHECKING:
    from grid.caps import ChkCap, LitCap
    from grid.cli.surveys import Survey
    from grid.directory.file_store import FileStore
    from grid.directory.store import Store
    from grid.node.client import Client


class Connection(Protocol):
    """How a command reaches the grid."""

    @property
    def runtime(self) -> Runtime: ...

    async def open_store(self, observer: Observer = ignore_events) -> Store:
        """The grid, once servers are known; NoServersError."""

    def store_without_servers(self) -> Store:
        """A store for literal (LIT) files, which need no servers."""

    async def read_immutable(
        self, cap: ChkCap | LitCap, sink: Sink, offset: int, length: int | None, observer: Observer
    ) -> int:
        """Bytes read of an immutable file, with what is known already where that suffices."""

    def survey(self, store: Store) -> Survey:
        """How to look at trees of a store of this connection."""


@frozen
class DirectConnection:
    """As a client of the storage servers."""

    client: Client
    warnings: Warnings = field(factory=Warnings)

    @property
    def runtime(self) -> Runtime:
        """The client's."""
        return self.client.runtime

    async def open_store(self, observer: Observer = ignore_events) -> FileStore:
        """The client's grid; NoServersError."""
        return self._make_store(await self.client.servers(), observer)

    def store_without_servers(self) -> FileStore:
        """A store for literal (LIT) files, which need no servers."""
        return self._make_store((), ignore_events)

    async def read_immutable(
        self, cap: ChkCap | LitCap, sink: Sink, offset: int, length: int | None, observer: Observer
    ) -> int:
        """Bytes read, from the servers known already if they do, which takes no introducer."""
        from grid.node.reading import read_file

        return (await read_file(self.client, cap, sink, offset, length, observer)).size

    def survey(self, store: Store) -> Survey:
        """Walks the store."""
        from grid.cli.surveys import DirectSurvey

        return DirectSurvey(store)

    def _make_store(self, servers: Sequence[StorageServer], observer: Observer) -> FileStore:
        # With it comes much that reading an immutable file does without.
        from grid.directory.file_store import FileStore

        client = self.client
        return FileStore(
            servers=servers,
            runtime=client.runtime,
            leases=client.leases,
            encoding=client.encoding,
            convergence=client.directory.convergence_secret(),
            mutable_format="mdmf" if client.directory.settings.client.mutable_format == "MDMF" else "sdmf",
            preferred=client.preferred,
            observer=self.warnings.heard_by(observer),
        )
