"""Connects a command to the grid: as a client of its own, or through the gateway of --gateway or GRID_GATEWAY.

It opens the client directory or its substitute, connects, runs one operation on the reactor, and closes everything.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import click

from grid.cli.terminal.failures import tell_warning
from grid.cli.terminal.invocation import invocation, prints_json
from grid.errors import ConfigError
from grid.node.redaction import one_line
from grid.ports import Event, Observer, Runtime, Sink, StorageServer, ignore_events
from grid.values import field, frozen

if TYPE_CHECKING:
    from grid.caps import ImmutableFileCap
    from grid.cli.surveys import Survey
    from grid.cli.webapi.home import GatewayHome
    from grid.directory.file_store import FileStore
    from grid.directory.store import Store
    from grid.node.client import Client
    from grid.node.directory import NodeDirectory

    Home = NodeDirectory | GatewayHome


T = TypeVar("T")


class Warnings:
    """Prints each warning of a command once, as JSON if that is what the command prints."""

    def __init__(self) -> None:
        self._told: set[str] = set()

    def tell(self, text: str) -> None:
        """Print a warning unless it was printed before."""
        line = one_line(text)
        if line and line not in self._told:
            self._told.add(line)
            tell_warning(line, as_json=prints_json())

    def heard_by(self, observer: Observer) -> Observer:
        """An observer that prints warning events and forwards every event."""

        def observe(event: Event) -> None:
            if event.what == "warning":
                self.tell(event.detail)
            observer(event)

        return observe


class Connection(Protocol):
    """How a command reaches the grid: directly or through a gateway."""

    @property
    def runtime(self) -> Runtime: ...

    async def open_store(self, observer: Observer = ignore_events) -> Store:
        """The store, once servers are known; NoServersError."""

    def store_without_servers(self) -> Store:
        """A store for literal (LIT) files, which need no servers."""

    async def read_immutable(
        self, cap: ImmutableFileCap, sink: Sink, offset: int, length: int | None, observer: Observer
    ) -> int:
        """Read an immutable file and return the number of bytes. Uses servers known already, if they suffice."""

    def survey(self, store: Store) -> Survey:
        """A survey of trees in a store of this connection."""


@frozen
class DirectConnection:
    """A connection as a client of the storage servers."""

    client: Client
    warnings: Warnings = field(factory=Warnings)

    @property
    def runtime(self) -> Runtime:
        """The client's runtime."""
        return self.client.runtime

    async def open_store(self, observer: Observer = ignore_events) -> FileStore:
        """The client's store; NoServersError."""
        return self._make_store(await self.client.servers(), observer)

    def store_without_servers(self) -> FileStore:
        """A store for literal (LIT) files, which need no servers."""
        return self._make_store((), ignore_events)

    async def read_immutable(
        self, cap: ImmutableFileCap, sink: Sink, offset: int, length: int | None, observer: Observer
    ) -> int:
        """Read the bytes and return their number.

        Uses servers known already, if possible, which avoids the introducer.
        """
        from grid.node.reading import read_file

        return (await read_file(self.client, cap, sink, offset, length, observer)).size

    def survey(self, store: Store) -> Survey:
        """A survey that walks the store."""
        from grid.cli.surveys import DirectSurvey

        return DirectSurvey(store)

    def _make_store(self, servers: Sequence[StorageServer], observer: Observer) -> FileStore:
        # Imported late: reading an immutable file does not need the many modules that come with it.
        from grid.directory.file_store import FileStore

        client = self.client
        return FileStore(
            grid=client.grid(servers, self.warnings.heard_by(observer)),
            mutable_format="mdmf" if client.directory.settings.client.mutable_format == "MDMF" else "sdmf",
        )


def open_home(context: click.Context) -> Home:
    """The client directory of -d or GRID_NODE_DIR, or its substitute with a gateway; ConfigError."""
    run = invocation(context)
    if run.gateway is None:
        return open_client_directory(context)
    from grid.cli.webapi.home import open_gateway_home

    return open_gateway_home(context, client_path(context), run.gateway, run.gateway_ca)


def open_client_directory(context: click.Context) -> NodeDirectory:
    """The directory of -d or GRID_NODE_DIR; ConfigError, which explains how to create one."""
    from grid.node.directory import NodeKind, open_directory

    path = client_path(context)
    if not path.exists():
        raise ConfigError(
            f"client directory {path} does not exist: name another with -d or GRID_NODE_DIR, or try Grid with `grid up`"
        )
    directory = open_directory(path)
    if directory.kind is not NodeKind.CLIENT:
        raise ConfigError(f"{path} belongs to an introducer: name a client directory with -d or GRID_NODE_DIR")
    return directory


def run_with_client(directory: NodeDirectory, operation: Callable[[Client], Awaitable[T]]) -> T:
    """Open the client, run the operation, close the client in any event, and return the result."""
    from grid.cli.terminal.runner import run_task
    from grid.node.client import Client
    from grid.runtime import make_runtime

    async def task(reactor: Any) -> T:  # noqa: ANN401
        client = Client(directory, make_runtime(reactor), reactor)
        try:
            client.probe_once()
            return await operation(client)
        finally:
            await client.close()

    return run_task(task)


def run_connected(home: Home, operation: Callable[[Connection], Awaitable[T]]) -> T:
    """Like `run_with_client`, but directly or through the gateway."""
    from grid.allocator import use_huge_pages
    from grid.node.directory import NodeDirectory

    if isinstance(home, NodeDirectory):
        use_huge_pages()
        return run_with_client(home, lambda client: operation(DirectConnection(client)))
    return run_with_gateway(home, operation)


def run_with_gateway(home: GatewayHome, operation: Callable[[Connection], Awaitable[T]]) -> T:
    """Run the operation and return its result; always closes the connections to the gateway."""
    from grid.cli.terminal.runner import run_task
    from grid.cli.webapi.connection import GatewayConnection
    from grid.cli.webapi.http import GatewayClient
    from grid.runtime import make_runtime

    async def task(reactor: Any) -> T:  # noqa: ANN401
        client = GatewayClient(home.address, make_runtime(reactor), reactor, Warnings().tell)
        try:
            return await operation(GatewayConnection(client))
        finally:
            await client.close()

    return run_task(task)


def client_path(context: click.Context) -> Path:
    """The directory of -d or GRID_NODE_DIR, whether or not it exists."""
    from grid.node.files import expand_home

    return expand_home(invocation(context).node_directory)
