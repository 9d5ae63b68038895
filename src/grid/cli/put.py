"""`grid put`: store a file, and print its capability; at a path if one is given. [spec cli 2.4]"""

from __future__ import annotations

import json
import time

import click


@click.command(short_help="Store a file and print its capability.")
@click.argument("arguments", metavar="[FILE|-] [REMOTE]", nargs=-1)
@click.option("-m", "--mutable", is_flag=True, help="Make a file that can be changed.")
@click.option("--format", "format_name", type=click.Choice(["SDMF", "MDMF", "CHK"], case_sensitive=False),
              help="CHK (never changes), SDMF (small and mutable) or MDMF (large and mutable).")  # fmt: skip
@click.option("--private-key-path", "key_file", metavar="PEM", type=click.Path(dir_okay=False),
              help="The RSA key of a new mutable file, instead of a new one. Never use one twice.")  # fmt: skip
@click.option("--needed", metavar="K", type=click.IntRange(1, 256), help="Shares that suffice to read the file.")
@click.option("--happy", metavar="H", type=click.IntRange(1, 256), help="Servers that must hold shares for success.")
@click.option("--total", metavar="N", type=click.IntRange(1, 256), help="Shares made.")
@click.option("--no-convergence", is_flag=True, help="Draw a random key: an equal file gets another capability.")
@click.option("--json", "as_json", is_flag=True, help="Progress as JSON lines on stderr, the result as one on stdout.")
@click.pass_context
def put(
    ctx: click.Context,
    *,
    arguments: tuple[str, ...],
    mutable: bool,
    format_name: str | None,
    key_file: str | None,
    needed: int | None,
    happy: int | None,
    total: int | None,
    no_convergence: bool,
    as_json: bool,
) -> int:
    """Store FILE on the grid (- or nothing is stdin) and print its capability.

    Whoever has the capability can read the file, and nothing else can: keep it, and keep it secret. By default equal
    files put from this client directory get equal capabilities and are stored once.

    REMOTE is a path to link the file at (directories that are missing are made; what is there is replaced, a mutable
    file gets new contents), or the write capability of a mutable file.

    K, H and N are shares.needed, shares.happy and shares.total of the client directory where they are not given; `grid
    status` shows them.
    """
    from grid.cli.client_command import open_home
    from grid.cli.progress import ProgressDisplay
    from grid.cli.putting import PutOptions, store_file, usual_format
    from grid.cli.sources import open_source

    if len(arguments) > 2:
        raise click.UsageError("a file, and where to put it: no more arguments than these")
    file, remote = (*arguments, *("-", "")[len(arguments) :])
    home = open_home(ctx)
    default = usual_format(home) if mutable else "chk"
    options = PutOptions(
        format=default if format_name is None else format_name.lower(),
        encoding={key: value for key, value in (("k", needed), ("happy", happy), ("n", total)) if value is not None},
        random_key=no_convergence,
        key_file=key_file,
    )
    if key_file is not None and options.format == "chk":
        raise click.UsageError("--private-key-path is for mutable files: give --mutable or --format too")
    with open_source(file, home.temporary_path) as opened, ProgressDisplay(as_json=as_json) as display:
        began_at = time.monotonic()
        stored = store_file(home, opened, remote, options, display)
        elapsed_s = time.monotonic() - began_at
    if as_json:
        click.echo(json.dumps({"event": "put", **stored.to_json(), "seconds": round(elapsed_s, 3)}))
    else:
        if remote:
            click.echo("201 Created" if stored.created else "200 OK", err=True)
        click.echo(stored.cap)
    return 0
