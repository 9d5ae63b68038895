"""`grid put`: stores a file, prints its capability, and optionally links it at a path. [spec cli 2.4]"""

from __future__ import annotations

import json
import sys
import time
from typing import TYPE_CHECKING

import click

from grid.cli.arguments.completion import complete_local_or_remote
from grid.cli.arguments.replacing import ReplacePolicy, open_undo, replace_options
from grid.cli.terminal.invocation import examples, invocation, progress_options

if TYPE_CHECKING:
    from grid.cli.commands.put_file import Stored

_COUNTS = ("needed", "happy", "total")


@click.command(
    epilog=examples(
        "grid put photo.jpg                          # print its capability",
        "grid put photo.jpg work:pictures/photo.jpg  # link it at a path",
        "tar c docs | grid put - work:docs.tar       # from a pipe",
    )
)
@click.argument("arguments", metavar="[FILE|-] [PATH]", nargs=-1, shell_complete=complete_local_or_remote)
@click.option("-m", "--mutable", is_flag=True,
              help="Make a mutable file: one whose contents can be changed; in the format mutable.format, by default SDMF.")  # fmt: skip
@click.option("--format", "format_name", type=click.Choice(["SDMF", "MDMF", "CHK"], case_sensitive=False),
              help="CHK (immutable, the default), SDMF (small, mutable) or MDMF (large, mutable).")  # fmt: skip
@click.option("--private-key-path", "key_file", metavar="PEM", type=click.Path(dir_okay=False),
              help="Use this RSA key for a new mutable file. Never use a key twice.")  # fmt: skip
@click.option("--needed", metavar="K", type=click.IntRange(1, 256), help="How many shares are needed to read the file.")
@click.option(
    "--happy",
    metavar="H",
    type=click.IntRange(1, 256),
    help="How many servers must hold shares for the put to succeed.",
)
@click.option("--total", metavar="N", type=click.IntRange(1, 256), help="How many shares to make.")
@click.option("--unique", "--no-convergence", "unique", is_flag=True,
              help="Use a random key: the file is read only once, and the same contents put again get a different "
              "capability.")  # fmt: skip
@click.option("--force", is_flag=True,
              help="Overwrite a mutable file even if too few shares are left to read any version of it.")  # fmt: skip
@replace_options()
@progress_options
@click.option(
    "--json", "as_json", is_flag=True, help="Print progress as JSON lines on stderr, and the result as one on stdout."
)
@click.pass_context
def put(
    ctx: click.Context,
    /,
    *,
    arguments: tuple[str, ...],
    mutable: bool,
    format_name: str | None,
    key_file: str | None,
    unique: bool,
    force: bool,
    policy: ReplacePolicy,
    as_json: bool,
    **counts: int | None,
) -> int:
    """Store FILE on the grid and print its capability. Without FILE, or with -, read stdin.

    Anyone who has the capability can read the file, and nobody else can. Do not lose it, and keep it secret. By
    default, files with equal contents, put from the same client directory, get the same capability and are stored
    once.

    PATH is where to link the file, or the write capability of a mutable file. Missing directories are
    created. An existing file is replaced; an existing mutable file gets the new contents. -n, -i and -u need a PATH,
    and -i and -u a FILE.

    K, H and N default to shares.needed, shares.happy and shares.total of the client directory, which `grid status`
    shows.
    """
    from grid.cli.arguments.aliases import read_aliases
    from grid.cli.arguments.remote import require_local_source
    from grid.cli.arguments.sources import open_source
    from grid.cli.commands.put_file import PutOptions, store_file, usual_format
    from grid.cli.connection import open_home
    from grid.cli.terminal.progress import ProgressDisplay

    if len(arguments) > 2:
        raise click.UsageError("too many arguments: give FILE and, optionally, PATH")
    file, remote = (*arguments, *("-", "")[len(arguments) :])
    _require_sense(mutable, format_name, key_file, unique)
    if force and not remote:
        raise click.UsageError("--force overwrites an existing mutable file: give PATH too")
    if policy.is_given and not remote:
        raise click.UsageError("-n, -i and -u need a path for the file: give PATH too")
    if file == "-" and (policy.newer or policy.ask):
        raise click.UsageError("-u and -i do not work with stdin: name a file")
    home = open_home(ctx)
    if file != "-":
        require_local_source(file, read_aliases(home))
    chosen = format_name.lower() if format_name is not None else usual_format(home) if mutable else "chk"
    options = PutOptions(
        format=chosen,
        is_format_given=format_name is not None,
        encoding={
            key: value for key, value in zip(("k", "happy", "n"), map(counts.get, _COUNTS), strict=True) if value
        },
        random_key=unique,
        replace=policy,
        key_file=key_file,
        force=force,
        undo=open_undo(ctx),
    )
    with (
        open_source(file, home.temporary_path) as opened,
        ProgressDisplay(as_json=as_json, hidden=invocation(ctx).hides_progress) as display,
    ):
        policy.quiet = display.paused
        began_at = time.monotonic()
        stored = store_file(home, opened, remote, options, display)
        elapsed_s = time.monotonic() - began_at
    _report(stored, remote, elapsed_s, as_json=as_json, quiet=invocation(ctx).is_quiet)
    return 0


def _require_sense(mutable: bool, format_name: str | None, key_file: str | None, unique: bool) -> None:
    """Raise UsageError if the options contradict each other."""
    is_mutable = mutable or format_name in ("SDMF", "MDMF")
    if mutable and format_name == "CHK":
        raise click.UsageError("--mutable and --format CHK contradict each other: a CHK file never changes")
    if key_file is not None and not is_mutable:
        raise click.UsageError("--private-key-path is for mutable files: give --mutable or --format too")
    if unique and is_mutable:
        raise click.UsageError("--unique is for immutable files: every mutable file has a key of its own")


def _report(stored: Stored | None, remote: str, elapsed_s: float, *, as_json: bool, quiet: bool) -> None:
    """Report what was stored. None: nothing was, since the existing file must not be replaced."""
    if as_json:
        told = {"skipped": True} if stored is None else {"skipped": False, **stored.to_json()}
        click.echo(json.dumps({"event": "put", **told, "seconds": round(elapsed_s, 3)}))
    elif stored is None:
        click.echo(f"{_shown(remote)} already exists; not replaced", err=True)
    else:
        if remote and not quiet:
            click.echo(_words(stored.created, remote), err=True)
        click.echo(stored.cap)
        if not quiet:
            stored.undo.tell()


def _words(created: bool, remote: str) -> str:
    """1.20's words for scripts; a sentence for a terminal."""
    if sys.stderr.isatty():
        return f"Stored as {_shown(remote)}"
    return "201 Created" if created else "200 OK"


def _shown(remote: str) -> str:
    """The path as typed, without any capability."""
    from grid.node.redaction import one_line

    return one_line(remote.strip())
