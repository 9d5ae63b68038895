"""What the commands of a client directory share: opening it, and running one operation on the reactor."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from grid.errors import ConfigError

if TYPE_CHECKING:
    from grid.node.client import Client
    from grid.node.directory import NodeDirectory

T = TypeVar("T")


def open_client_directory(context: click.Context) -> NodeDirectory:
    """The directory that -d or GRID_NODE_DIR names; ConfigError saying how to get one."""
    from grid.node.directory import NodeKind, open_directory

    path = Path(context.find_root().obj).expanduser()
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
    from grid.cli.runner import run_task
    from grid.node.client import Client
    from grid.runtime import make_runtime

    async def task(reactor: Any) -> T:  # noqa: ANN401
        client = Client(directory, make_runtime(reactor), reactor)
        try:
            return await operation(client)
        finally:
            await client.close()

    return run_task(task)
