"""What the commands of a client directory share: opening it, and running one operation on the reactor.

A command goes to the storage servers itself, or through a gateway where --gateway or GRID_GATEWAY names one.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from grid.cli.terminal.invocation import invocation
from grid.errors import ConfigError

if TYPE_CHECKING:
    from grid.cli.connection import Connection
    from grid.cli.webapi.home import GatewayHome
    from grid.node.client import Client
    from grid.node.directory import NodeDirectory

    Home = NodeDirectory | GatewayHome

T = TypeVar("T")

DIRECT = "none"
"""What --gateway takes for no gateway, where GRID_GATEWAY names one."""


def choose_gateway(context: click.Context, gateway: str | None, ca_file: str | None) -> None:
    """Note what the options of the group say, for `open_home`."""
    run = invocation(context)
    run.gateway, run.gateway_ca = None if gateway in (None, DIRECT) else gateway, ca_file


def open_home(context: click.Context) -> Home:
    """The client directory that -d or GRID_NODE_DIR names, or what stands for it with a gateway; ConfigError."""
    run = invocation(context)
    if run.gateway is None:
        return open_client_directory(context)
    from grid.cli.webapi.home import open_gateway_home

    return open_gateway_home(context, _named_path(context), run.gateway, run.gateway_ca)


def open_client_directory(context: click.Context) -> NodeDirectory:
    """The directory that -d or GRID_NODE_DIR names; ConfigError saying how to get one."""
    from grid.node.directory import NodeKind, open_directory

    path = _named_path(context)
    if not path.exists():
        raise ConfigError(
            f"there is no client directory {path}: name one with -d or GRID_NODE_DIR; `grid up` makes a grid to try"
        )
    directory = open_directory(path)
    if directory.kind is not NodeKind.CLIENT:
        raise ConfigError(f"{path} is an introducer's directory: name a client's with -d or GRID_NODE_DIR")
    return directory


def run_with_client(directory: NodeDirectory, operation: Callable[[Client], Awaitable[T]]) -> T:
    """The operation's result; the client is opened before and closed after it, whatever happens."""
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
    """The operation's result, as `run_with_client`, directly or through the gateway."""
    from grid.node.directory import NodeDirectory

    if isinstance(home, NodeDirectory):
        from grid.cli.connection import DirectConnection

        return run_with_client(home, lambda client: operation(DirectConnection(client)))
    return run_with_gateway(home, operation)


def run_with_gateway(home: GatewayHome, operation: Callable[[Connection], Awaitable[T]]) -> T:
    """The operation's result; connections to the gateway are closed after it, whatever happens."""
    from grid.cli.terminal.runner import run_task
    from grid.cli.terminal.warnings import Warnings
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


def _named_path(context: click.Context) -> Path:
    from grid.node.files import expand_home

    return expand_home(invocation(context).node_directory)
