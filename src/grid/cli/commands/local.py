"""`grid up` and `grid down`: a whole grid on this machine, to try things on."""

from __future__ import annotations

import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from grid.cli.terminal.invocation import examples
from grid.errors import GridError
from grid.plural import counted

if TYPE_CHECKING:
    from grid.node.client import Client
    from grid.node.local_grid import LocalGrid, StartedNode

_DIRECTORY = click.option(
    "--dir", "directory", metavar="D", default="demo-grid", show_default=True, type=click.Path(file_okay=False),
    help="Where the grid lives.",
)  # fmt: skip


@click.command(epilog=examples("grid up --detach", "grid up --nodes 4 --dir /tmp/try"))
@click.option("--nodes", metavar="N", type=click.IntRange(1, 250), help="How many storage nodes; a new grid has 10.")
@_DIRECTORY
@click.option("--detach", is_flag=True, help="Return when the grid is ready; stop it with `grid down`.")
def up(*, nodes: int | None, directory: str, detach: bool) -> int:
    """Start a grid of real processes on this machine, and wait until it can store files.

    A grid that was started in D before starts again with its data; one that is already running is left as it is. Without
    --detach, the nodes started here run until Ctrl-C.
    """
    from grid.node.local_grid import LocalGrid, end_children, start_grid

    grid = LocalGrid(Path(directory).absolute())
    started: list[StartedNode] = []
    ready, clean = False, True
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        start_grid(grid, nodes, detach=detach, started=started)
        _wait_until_ready(grid, started)
        ready = True
        click.echo("\n".join(_describe(grid)))
        if not any(node.child for node in started):
            ready_nodes = counted(len(grid.storages), "storage node")
            click.echo(f"\nThis grid was running already, with {ready_nodes}: `grid down --dir {directory}` stops it.")
            return 0
        if detach:
            return 0
        click.echo("\nCtrl-C stops the grid; its data stays.")
        _watch(started)
    except KeyboardInterrupt:
        if not ready:
            raise
    finally:
        if not (ready and detach):
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            clean = end_children(started)
    if not clean:
        raise GridError("some nodes did not stop cleanly; see their logs")
    return 0


@click.command(epilog=examples("grid down", "grid down --dir /tmp/try"))
@_DIRECTORY
def down(*, directory: str) -> int:
    """Stop the grid in D; its data stays, and `grid up` starts it again."""
    from grid.errors import ConfigError
    from grid.node.local_grid import LocalGrid, stop_nodes

    grid = LocalGrid(Path(directory).absolute())
    if not grid.exists:
        raise ConfigError(f"{grid.path} holds no local grid: name one with --dir")
    stopped = stop_nodes([*grid.storages, grid.introducer])
    click.echo(f"{counted(len(stopped), 'node')} stopped" if stopped else "no node was running")
    return 0


def _interrupt(number: int, frame: object) -> None:
    raise KeyboardInterrupt


def _wait_until_ready(grid: LocalGrid, started: list[StartedNode]) -> None:
    """Return when every node that should run has answered over its transport; GridError if one cannot."""
    from grid.cli.connection import run_with_client
    from grid.node.directory import open_directory
    from grid.node.local_grid import START_S
    from grid.node.readiness import wait_for_servers

    storages = [node for node in started if node.directory != grid.introducer]

    async def operation(client: Client) -> None:
        await wait_for_servers(client, len(storages), START_S, _complain_of(started))

    run_with_client(open_directory(grid.client), operation)


def _complain_of(started: list[StartedNode]) -> Any:  # noqa: ANN401
    def complain() -> None:
        for node in started:
            if node.ended:
                raise node.explain()

    return complain


def _describe(grid: LocalGrid) -> list[str]:
    from grid.node.directory import open_directory
    from grid.node.local_grid import running_processes

    lines = [f"{'node':12} {'pid':>8}  {'address':24} directory"]
    for directory, process in running_processes(grid).items():
        location = ",".join(open_directory(directory).settings.tub_location or ())
        pid = str(process.pid) if process else "-"
        lines.append(f"{directory.name:12} {pid:>8}  {location:24} {directory}")
    settings = open_directory(grid.client).settings.client
    encoding = f"{settings.needed}-of-{settings.total}, happy {settings.happy}"
    lines.append(f"{'client':12} {'':>8}  {encoding:24} {grid.client}")
    lines += ["", "Ready. Try:", f"  export GRID_NODE_DIR={grid.client}", "  grid put FILE", "  grid get CAP FILE"]
    return lines


def _watch(started: list[StartedNode]) -> None:
    """Return when all nodes started here have ended; tell of each one that does."""
    signal.signal(signal.SIGINT, _interrupt)
    signal.signal(signal.SIGTERM, _interrupt)
    running = [node for node in started if node.child is not None]
    while running:
        for node in [node for node in running if node.ended]:
            running.remove(node)
            click.echo(f"{node.name} has stopped", err=True)
        time.sleep(0.2)
