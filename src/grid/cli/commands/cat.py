"""`grid cat`: writes the contents of files to stdout, one after the other."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from grid.cli.arguments.completion import complete_remote
from grid.cli.terminal.invocation import examples, json_option

if TYPE_CHECKING:
    from collections.abc import Sequence

    from grid.caps import KnownCap
    from grid.cli.arguments.remote import RemotePath
    from grid.cli.connection import Connection


@click.command(
    epilog=examples(
        "grid cat work:notes.txt",
        "grid cat work:log/2026-01-30.txt work:log/2026-01-31.txt | grep error",
        "grid cat URI:CHK:...",
    )
)
@click.argument("paths", metavar="PATH...", nargs=-1, required=True, shell_complete=complete_remote)
@json_option("Print the result as one line of JSON on stderr.")
@click.pass_context
def cat(ctx: click.Context, *, paths: tuple[str, ...], as_json: bool) -> int:
    """Write the contents of each PATH to stdout, one after the other.

    All paths are looked up first: if you mistype one, nothing is written. Every byte is verified. To write to a local
    file, read a range, or keep a capability off the command line, use `grid get`.
    """
    from grid.cli.arguments.remote import parse_remote
    from grid.cli.arguments.tree import open_tree_directory
    from grid.cli.connection import run_connected

    home, aliases = open_tree_directory(ctx)
    remotes = [parse_remote(path, aliases) for path in paths]

    async def operation(connection: Connection) -> int:
        return await _write(connection, remotes)

    size = run_connected(home, operation)
    if as_json:
        click.echo(json.dumps({"event": "cat", "files": len(remotes), "size": size}), err=True)
    return 0


async def _write(connection: Connection, remotes: Sequence[RemotePath]) -> int:
    """Write the files and return the number of bytes."""
    from grid.cli.arguments.targets import DescriptorSink
    from grid.cli.arguments.tree import known, open_tree

    tree = await open_tree(connection)
    files = [_file(known(await tree.find(remote), remote.shown), remote) for remote in remotes]
    sink = DescriptorSink(1, connection.runtime.cpu)
    for file in files:
        await tree.store.read(file, sink)
    return sink.written


def _file(cap: KnownCap, remote: RemotePath) -> KnownCap:
    """The capability of a readable file; ChildOfWrongTypeError, AuthorityError."""
    from grid.caps import DirectoryCap
    from grid.errors import AuthorityError, ChildOfWrongTypeError

    if isinstance(cap, DirectoryCap):
        raise ChildOfWrongTypeError(f"{remote.shown} is a directory, not a file; `grid ls` lists it", name=remote.shown)
    if cap.authority == "verify":
        raise AuthorityError("a verify capability lets you check the file, not read it; use its read capability")
    return cap
