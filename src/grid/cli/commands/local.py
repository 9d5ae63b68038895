"""`grid up` and `grid down`: start and stop a whole grid on this machine, for trying things out."""

from __future__ import annotations

import json
import signal
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from grid.cli.terminal.invocation import examples, json_option
from grid.errors import GridError
from grid.plural import counted

if TYPE_CHECKING:
    from collections.abc import Mapping

    from grid.node.client import Client
    from grid.node.local_grid import LocalGrid, StartedNode

_DIRECTORY = click.option(
    "--dir", "directory", metavar="D", default="demo-grid", show_default=True, type=click.Path(file_okay=False),
    help="The directory that holds the grid.",
)  # fmt: skip


@click.command(epilog=examples("grid up --detach", "grid up --gateway", "grid up --nodes 4 --dir /tmp/try"))
@click.option(
    "--nodes", metavar="N", type=click.IntRange(1, 250), help="How many storage nodes a new grid has; default: 10."
)
@_DIRECTORY
@click.option("--detach", is_flag=True, help="Return when the grid is ready; stop it with `grid down`.")
@click.option("--gateway", "with_gateway", is_flag=True, help="Also start a gateway, with pages for a browser.")
@json_option("Print one line of JSON when the grid is ready.")
def up(*, nodes: int | None, directory: str, detach: bool, with_gateway: bool, as_json: bool) -> int:
    """Start a grid on this machine, an introducer and storage nodes, and wait until it can store files.

    Its client directory is D/client: `export GRID_NODE_DIR=D/client` makes commands use it. If D already holds a grid,
    it is started again with its files; nodes that are already running are left alone. Without --detach, the nodes that
    this command starts run until you press Ctrl-C.
    """
    from grid.node.local_grid import LocalGrid, door_urls, end_children, start_gateway, start_grid

    grid = LocalGrid(Path(directory).absolute())
    started: list[StartedNode] = []
    ready, clean = False, True
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        if sys.stderr.isatty() and not as_json:
            click.echo("Starting the grid. This takes a few seconds.", err=True)
        start_grid(grid, nodes, detach=detach, started=started)
        _wait_until_ready(grid, started)
        url = start_gateway(grid, detach=detach, started=started) if with_gateway else None
        doors = door_urls(grid) if with_gateway else {}
        ready = True
        is_new = any(node.child for node in started)
        if as_json:
            addresses = {"gateway": url, "s3": doors.get("S3"), "sftp": doors.get("SFTP")}
            click.echo(json.dumps({"event": "up", **_to_json(grid), **addresses, "was_running": not is_new}))
        else:
            click.echo("\n".join(_describe(grid, url, doors)))
        if not is_new and not as_json:
            ready_nodes = counted(len(grid.storages), "storage node")
            click.echo(f"\nThis grid was already running, with {ready_nodes}: `grid down --dir {directory}` stops it.")
        if detach or not is_new:
            return 0
        if not as_json:
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


@click.command(epilog=examples("grid down", "grid down --dir /tmp/try", "grid up --detach     # starts it again"))
@_DIRECTORY
@json_option()
def down(*, directory: str, as_json: bool) -> int:
    """Stop the grid in D; its data stays, and `grid up` starts it again."""
    from grid.errors import ConfigError
    from grid.node.local_grid import LocalGrid, stop_nodes

    grid = LocalGrid(Path(directory).absolute())
    if not grid.exists:
        raise ConfigError(f"{grid.path} holds no local grid: name one with --dir")
    stopped = stop_nodes([grid.client, *grid.storages, grid.introducer])
    if as_json:
        click.echo(json.dumps({"event": "down", "directory": str(grid.path), "stopped": len(stopped)}))
    else:
        click.echo(f"{counted(len(stopped), 'node')} stopped" if stopped else "no node was running")
    return 0


def _interrupt(number: int, frame: object) -> None:
    raise KeyboardInterrupt


def _wait_until_ready(grid: LocalGrid, started: list[StartedNode]) -> None:
    """Wait until every started node has answered over its transport; GridError if one cannot."""
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


def _describe(grid: LocalGrid, url: str | None, doors: Mapping[str, str | None]) -> list[str]:
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
    times = f"{settings.total / settings.needed:.1f}".removesuffix(".0")
    shares = f"{counted(settings.total, 'share')}, any {settings.needed} of which restore it"
    lines += ["", f"Encoding: each file is stored as {shares}, and takes {times} times its size."]
    lines += ["", "Ready. Try:", f"  export GRID_NODE_DIR={grid.client}", "  grid put FILE", "  grid get CAP FILE"]
    if url is not None:
        lines += ["  grid web", "", f"In a browser: {url}"]
        lines += [f"Over {name}: {address}" for name, address in doors.items() if address is not None]
    return lines


def _to_json(grid: LocalGrid) -> dict[str, object]:
    from grid.node.directory import open_directory
    from grid.node.local_grid import running_processes

    settings = open_directory(grid.client).settings.client
    return {
        "directory": str(grid.path),
        "client": str(grid.client),
        "encoding": {"needed": settings.needed, "happy": settings.happy, "total": settings.total},
        "nodes": [
            {
                "name": directory.name,
                "directory": str(directory),
                "pid": None if process is None else process.pid,
                "location": list(open_directory(directory).settings.tub_location or ()),
            }
            for directory, process in running_processes(grid).items()
        ],
    }


def _watch(started: list[StartedNode]) -> None:
    """Wait until all started nodes have ended, and report each that does."""
    signal.signal(signal.SIGINT, _interrupt)
    signal.signal(signal.SIGTERM, _interrupt)
    running = [node for node in started if node.child is not None]
    while running:
        for node in [node for node in running if node.ended]:
            running.remove(node)
            click.echo(f"{node.name} has stopped", err=True)
        time.sleep(0.2)
