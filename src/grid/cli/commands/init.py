"""`grid init`: creates a client directory and a first directory on the grid, asking a few questions."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from grid.cli.arguments.completion import complete_file
from grid.cli.terminal.invocation import examples, invocation, json_option
from grid.plural import counted

if TYPE_CHECKING:
    from grid.caps import DirectoryCap
    from grid.cli.connection import Connection
    from grid.errors import GridError
    from grid.node.directory import NodeDirectory

FIRST_ALIAS = "home"
USUAL_SERVERS = 10


@click.command(
    epilog=examples(
        "grid init",
        "grid init --introducer introducer.furl --servers 5 --alias work",
        "grid -d ~/other init --introducer introducer.furl --no-alias --json",
    )
)
@click.option(
    "--introducer", metavar="FURL", shell_complete=complete_file,
    help="The introducer's address (a FURL), or a file that holds it.",
)  # fmt: skip
@click.option("--nickname", metavar="NAME", default="", help="The name that others see; default: none.")
@click.option(
    "--servers", metavar="N", type=click.IntRange(1, 1000),
    help="How many storage servers the grid has; this decides how files are encoded.",
)  # fmt: skip
@click.option("--alias", metavar="NAME", help=f"The alias of the first directory; default: {FIRST_ALIAS}.")
@click.option("--no-alias", is_flag=True, help="Do not create a directory.")
@json_option()
@click.pass_context
def init(
    ctx: click.Context,
    *,
    introducer: str | None,
    nickname: str,
    servers: int | None,
    alias: str | None,
    no_alias: bool,
    as_json: bool,
) -> int:
    """Create a client directory (at -d, or ~/.grid) and a first directory on the grid.

    On a terminal, init explains and asks for what you do not give as an option; without a terminal, --introducer is
    required. If you have no grid yet, try `grid up` instead.
    """
    from grid.cli.arguments.aliases import check_new_name
    from grid.cli.commands.create import read_furl
    from grid.node.create import NewClient, create_client
    from grid.node.directory import open_directory
    from grid.node.files import expand_home

    if alias is not None and no_alias:
        raise click.UsageError("--alias and --no-alias contradict each other")
    path = expand_home(invocation(ctx).node_directory).absolute()
    _require_new(path)
    asks = sys.stdin.isatty() and sys.stderr.isatty() and not as_json
    furl = read_furl(introducer or _ask_introducer(path, asks))
    needed, happy, total = _encoding(servers, asks)
    if alias is None and not no_alias:
        alias = _ask_alias() if asks else FIRST_ALIAS
    name = check_new_name(alias, {}) if alias else ""
    create_client(path, NewClient(nickname=nickname, introducer_furl=furl, needed=needed, happy=happy, total=total))
    cap, problem = _make_alias(open_directory(path), name) if name else (None, None)
    if as_json:
        encoding = {"needed": needed, "happy": happy, "total": total}
        where = {"directory": str(path), "alias": name if cap else None}
        click.echo(json.dumps({"event": "init", **where, "encoding": encoding}))
    else:
        click.echo("\n".join(_describe(ctx, path, (needed, happy, total), name if cap else "")))
    if problem is not None:
        raise problem
    return 0


def _require_new(path: Path) -> None:
    from grid.errors import ConfigError

    if path.exists() and any(path.iterdir() if path.is_dir() else (path,)):
        raise ConfigError(
            f"{path} already exists: `grid status` shows whether it works; use -d to create the new client elsewhere"
        )


def _ask_introducer(path: Path, asks: bool) -> str:
    if not asks:
        raise click.UsageError("asking questions needs a terminal: give --introducer FURL instead")
    _say(
        f"This creates a client directory in {path}. It holds the client's settings and, once you have directories, the keys"
        " to them."
    )
    _say(
        "An introducer tells the client about the storage servers. The person who runs the grid has its FURL,"
        " a line that begins with pb://. To try Grid by yourself, stop here and run `grid up`."
    )
    _say(f"If you were given an invitation code instead, stop here and run `grid create client {path} --join CODE`.")
    return str(click.prompt("FURL of the introducer, or a file that holds it", err=True))


def _encoding(servers: int | None, asks: bool) -> tuple[int, int, int]:
    from grid.node.local_grid import share_counts

    if servers is None and asks:
        _say(
            "Grid stores each file as several shares on different servers. Some of the shares are enough to read the file; how"
            " many depends on the number of servers."
        )
        servers = click.prompt(
            "Number of storage servers", type=click.IntRange(1, 1000), default=USUAL_SERVERS, err=True
        )
    return share_counts(servers or USUAL_SERVERS)


def _ask_alias() -> str:
    _say("A first directory on the grid gets a name, an alias: with the name home, home:photos is a path in it.")
    return str(click.prompt("Name of the first directory", default=FIRST_ALIAS, err=True))


def _say(text: str) -> None:
    import textwrap

    click.echo(textwrap.fill(text, 78, break_long_words=False, break_on_hyphens=False) + "\n", err=True)


def _make_alias(home: NodeDirectory, name: str) -> tuple[DirectoryCap | None, GridError | None]:
    """Create the directory and its alias, or return the error: the client directory is kept in any case."""
    from grid.cli.arguments.aliases import add_alias
    from grid.cli.connection import run_connected
    from grid.errors import CancelledError, GridError

    async def operation(connection: Connection) -> DirectoryCap:
        return await (await connection.open_store()).create_directory()

    try:
        cap = run_connected(home, operation)
        add_alias(home, name, cap)
    except CancelledError:
        raise
    except GridError as error:
        return None, error
    return cap, None


def _describe(ctx: click.Context, path: Path, encoding: tuple[int, int, int], alias: str) -> list[str]:
    needed, happy, total = encoding
    given = "" if invocation(ctx).uses_default_directory else f" -d {path}"
    shares = f"Each file is stored as {counted(total, 'share')}, any {needed} of which restore it"
    lines = [f"Client created in {path}.", f"{shares}; {counted(happy, 'server')} must take shares.", ""]
    if not alias:
        return [
            *lines,
            f"When servers answer (grid{given} status), create a directory: grid{given} create-alias {FIRST_ALIAS}",
        ]
    return [
        *lines,
        f"Try:   grid{given} put FILE {alias}:FILE",
        f"Keep:  grid{given} alias export aliases.age     # without your aliases, your files are lost",
    ]
