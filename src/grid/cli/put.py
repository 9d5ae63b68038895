"""`grid put`: store a file, and print its capability."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from grid.cli.progress import ProgressDisplay
    from grid.cli.sources import FileSource
    from grid.immutable.put import PutResult
    from grid.node.client import Client


@click.command(short_help="Store a file and print its capability.")
@click.argument("file", metavar="FILE|-", type=click.Path(dir_okay=False, allow_dash=True))
@click.option("--needed", metavar="K", type=click.IntRange(1, 256), help="Shares that suffice to read the file.")
@click.option("--happy", metavar="H", type=click.IntRange(1, 256), help="Servers that must hold shares for success.")
@click.option("--total", metavar="N", type=click.IntRange(1, 256), help="Shares made.")
@click.option("--no-convergence", is_flag=True, help="Draw a random key: an equal file gets another capability.")
@click.option("--json", "as_json", is_flag=True, help="Progress as JSON lines on stderr, the result as one on stdout.")
@click.pass_context
def put(
    ctx: click.Context,
    *,
    file: str,
    needed: int | None,
    happy: int | None,
    total: int | None,
    no_convergence: bool,
    as_json: bool,
) -> int:
    """Store FILE on the grid (- is stdin) and print its capability.

    Whoever has the capability can read the file, and nothing else can: keep it, and keep it secret. By default equal
    files put from this client directory get equal capabilities and are stored once.
    """
    from grid.cli.client_command import open_client_directory, run_with_client
    from grid.cli.progress import ProgressDisplay
    from grid.cli.sources import FileSource, open_source

    directory = open_client_directory(ctx)
    chosen = {name: value for name, value in (("k", needed), ("happy", happy), ("n", total)) if value is not None}
    with open_source(file, directory.temporary_path) as opened, ProgressDisplay(as_json=as_json) as display:
        began_at = time.monotonic()

        async def operation(client: Client) -> PutResult:
            return await _put(client, FileSource(opened, client.runtime.cpu), chosen, no_convergence, display)

        result = run_with_client(directory, operation)
        elapsed_s = time.monotonic() - began_at
        size = result.cap.size
    if as_json:
        line = {
            "event": "put",
            "cap": result.cap.to_string(),
            "size": size,
            "shares_pushed": result.pushed,
            "shares_found": result.found,
            "happiness": result.happiness,
            "seconds": round(elapsed_s, 3),
        }
        click.echo(json.dumps(line))
    else:
        click.echo(result.cap.to_string())
    return 0


async def _put(
    client: Client, source: FileSource, chosen: dict[str, int], random_key: bool, display: ProgressDisplay
) -> PutResult:
    from attrs import evolve

    from grid.errors import FormatError, NoServersError, NoSpaceError, NotHappyError
    from grid.immutable.put import LIT_SIZE
    from grid.immutable.put import put as put_file

    try:
        encoding = evolve(client.encoding, **chosen)
    except FormatError as problem:
        raise click.UsageError(str(problem)) from None
    servers = [] if source.size <= LIT_SIZE else await client.servers()
    try:
        return await put_file(
            source,
            encoding=encoding,
            convergence=None if random_key else client.directory.convergence_secret(),
            servers=servers,
            leases=client.leases,
            runtime=client.runtime,
            observer=display,
            preferred=client.preferred,
        )
    except NotHappyError as problem:
        if problem.causes:
            raise
        if len(servers) < encoding.happy:
            raise NoServersError(f"{problem} Only {len(servers)} servers are known.") from None
        # All of them answered, and too few would take a share: they have no room, or are read-only.
        raise NoSpaceError(str(problem)) from None
