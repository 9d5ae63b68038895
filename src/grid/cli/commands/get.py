"""`grid get`: reads a file or a part of it. [spec cli 2.5]"""

from __future__ import annotations

import json
import os
import re
import sys
import time
from typing import TYPE_CHECKING

import click

from grid.cli.arguments.cap_argument import cap_file_option
from grid.cli.arguments.completion import complete_local_or_remote
from grid.cli.arguments.replacing import ReplacePolicy, replace_options
from grid.cli.terminal.invocation import examples, invocation, progress_options

if TYPE_CHECKING:
    from grid.caps import KnownCap
    from grid.cli.arguments.remote import RemotePath
    from grid.cli.connection import Connection
    from grid.cli.terminal.progress import ProgressDisplay
    from grid.errors import GridError
    from grid.ports import Sink

_RANGE = re.compile(r"([0-9]{1,19})?-([0-9]{1,19})?", re.ASCII)


@click.command(
    epilog=examples(
        "grid get work:pictures/photo.jpg photo.jpg",
        "grid get work:docs.tar | tar x",
        "grid get --cap-file secret.cap --range 0-999",
    )
)
@click.argument(
    "arguments", metavar="PATH|-|--cap-file FILE [FILE|-]", nargs=-1, shell_complete=complete_local_or_remote
)
@cap_file_option
@click.option(
    "--range",
    "span",
    metavar="A-B",
    help="Read only bytes A to B, counted from 0; A- reads to the end, -N the last N bytes.",
)
@replace_options()
@progress_options
@click.option("--json", "as_json", is_flag=True, help="Print progress and the result as JSON lines on stderr.")
@click.pass_context
def get(
    ctx: click.Context,
    *,
    arguments: tuple[str, ...],
    cap_file: str | None,
    span: str | None,
    policy: ReplacePolicy,
    as_json: bool,
) -> int:
    """Read PATH, a path or a capability, into FILE; without FILE, or with - as FILE, write to stdout.

    FILE appears once everything has been read and verified; if the get fails, an old FILE stays as it was. Binary data
    goes to a terminal only if you name - as FILE. -n, -i and -u need a FILE, and -u a path: a bare capability has no
    time.

    Other users of this machine can see a capability on your command line. Pass it with --cap-file, or name - as PATH to
    read it from stdin.
    """
    from grid.caps import has_cap_prefix
    from grid.cli.arguments.cap_argument import take_text
    from grid.cli.arguments.remote import parse_remote, require_local_target
    from grid.cli.arguments.targets import require_target
    from grid.cli.arguments.tree import open_tree_directory
    from grid.cli.connection import run_connected
    from grid.cli.terminal.progress import ProgressDisplay

    text, rest = take_text(arguments, cap_file)
    if len(rest) > 1:
        raise click.UsageError("too many arguments: give one FILE at most, or - for stdout")
    file = None if not rest or rest[0] == "-" else rest[0]
    shows_text = not rest and sys.stdout.isatty()
    remote = _plain_cap(text, span) if has_cap_prefix(text) else None
    directory, aliases = open_tree_directory(ctx)
    remote = remote or parse_remote(text, aliases)
    _require_times(policy, remote, file)
    if file is not None:
        require_local_target(file, aliases)
        require_target(file)
    began_at = time.monotonic()
    with ProgressDisplay(as_json=as_json, hidden=invocation(ctx).hides_progress) as display:
        policy.quiet = display.paused

        async def operation(connection: Connection) -> int | None:
            return await _get(connection, remote, file, span, policy, display, shows_text=shows_text)

        size = run_connected(directory, operation)
    if as_json:
        told = {"skipped": True} if size is None else {"size": size}
        print(json.dumps({"event": "get", **told, "seconds": round(time.monotonic() - began_at, 3)}), file=sys.stderr)
    elif size is None:
        click.echo(f"{file} already exists; not replaced", err=True)
    elif file is not None and remote.names and not invocation(ctx).is_quiet:
        click.echo(f"{remote.shown} retrieved and written to {os.path.abspath(file)}", err=True)
    return 0


def _require_times(policy: ReplacePolicy, remote: RemotePath, file: str | None) -> None:
    """Raise UsageError if the replace options have no two files to compare."""
    if policy.is_given and file is None:
        raise click.UsageError("-n, -i and -u need a local file: name FILE")
    if policy.newer and not remote.names:
        raise click.UsageError("-u compares times, which a capability alone does not have: name the file by its path")


def _plain_cap(text: str, span: str | None) -> RemotePath:
    """Parse a capability before anything is opened; raises CapError and others if it cannot be read or the range is
    invalid.
    """
    from grid.caps import DirectoryCap, ImmutableFileCap
    from grid.cli.arguments.remote import parse_remote
    from grid.errors import AuthorityError

    remote = parse_remote(text, {})
    cap = remote.root
    if not remote.names:
        if isinstance(cap, DirectoryCap):
            raise _directory(remote)
        if cap.authority == "verify":
            raise AuthorityError("a verify capability lets you check the file, not read it; use its read capability")
    if isinstance(cap, ImmutableFileCap):
        parse_range(span, cap.size)
    return remote


async def _get(
    connection: Connection,
    remote: RemotePath,
    file: str | None,
    span: str | None,
    policy: ReplacePolicy,
    display: ProgressDisplay,
    *,
    shows_text: bool,
) -> int | None:
    """Return the bytes read, or None if the local file must not be replaced. shows_text: refuse a binary file."""
    from grid.cli.arguments.replacing import time_of
    from grid.cli.arguments.targets import DescriptorSink, TextSink, open_target
    from grid.cli.arguments.tree import known, open_tree
    from grid.directory.pack import Child

    found = await (await open_tree(connection)).find(remote) if remote.names else Child(target=remote.root)
    cap = known(found, remote.shown)
    if file is not None and policy.is_given and os.path.isfile(file):
        changed_at = os.stat(file).st_mtime
        if not await policy.permits(file, new_time=time_of(found.metadata), old_time=changed_at):
            return None
    with open_target(file) as descriptor:
        sink = (TextSink if shows_text else DescriptorSink)(descriptor, connection.runtime.cpu)
        return await _read(connection, cap, remote, sink, span, display)


async def _read(
    connection: Connection, cap: KnownCap, remote: RemotePath, sink: Sink, span: str | None, display: ProgressDisplay
) -> int:
    """Return the bytes read. An immutable file is read from servers known already, which avoids the introducer."""
    from grid.caps import DirectoryCap, ImmutableFileCap
    from grid.cli.arguments.tree import open_tree

    if isinstance(cap, DirectoryCap):
        raise _directory(remote)
    if isinstance(cap, ImmutableFileCap):
        return await connection.read_immutable(cap, sink, *parse_range(span, cap.size), display)
    store = (await open_tree(connection, display)).store
    offset, length = (0, None) if span is None else parse_range(span, await store.size(cap))
    return await store.read(cap, sink, offset, length)


def _directory(remote: RemotePath) -> GridError:
    from grid.errors import ChildOfWrongTypeError

    words = f"{remote.shown} is a directory, not a file; `grid ls` and `grid cp -r` read it"
    return ChildOfWrongTypeError(words, name=remote.shown)


def parse_range(text: str | None, size: int) -> tuple[int, int | None]:
    """The offset and length of an HTTP-style range in a file of this size; click.UsageError if it is outside."""
    if text is None:
        return 0, None
    match = _RANGE.fullmatch(text)
    if match is None or (match[1] is None and match[2] is None):
        raise click.UsageError("--range takes A-B, A- or -N")
    if match[1] is None:
        length = min(int(match[2]), size)
        return size - length, length
    first = int(match[1])
    last = size - 1 if match[2] is None else min(int(match[2]), size - 1)
    if match[2] is not None and int(match[2]) < first:
        raise click.UsageError("--range ends before it begins")
    if first >= size:
        raise click.UsageError(f"--range begins after the file's {size} bytes")
    return first, last - first + 1
