"""`grid ls`: lists a directory. [spec cli 2.3]"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import click
from attrs import evolve

from grid.caps import ChkCap, DirectoryCap, LitCap, SequenceCap, SliceCap, UnknownChild
from grid.cli.arguments.completion import complete_remote
from grid.cli.terminal.columns import aligned
from grid.cli.terminal.exit_codes import ExitCode
from grid.cli.terminal.invocation import examples
from grid.cli.terminal.quoting import plain
from grid.directory.metadata import Metadata
from grid.directory.pack import Child
from grid.values import frozen

if TYPE_CHECKING:
    from grid.cli.arguments.remote import RemotePath
    from grid.cli.arguments.tree import Tree

HALF_A_YEAR_S = 180 * 24 * 3600


@click.command(epilog=examples("grid ls work:", "grid ls -la work:docs", "grid ls -R --json work: | jq .path"))
@click.argument("path", metavar="[PATH]", required=False, default="", shell_complete=complete_remote)
@click.option("-l", "--long", is_flag=True, help="Also show mode, size and date.")
@click.option(
    "-a", "--all", "everything", is_flag=True, help="Accepted for compatibility: every entry is always listed."
)
@click.option("-F", "--classify", is_flag=True, help="Mark directories with /, writable files with *.")
@click.option("--uri", is_flag=True, help="Also show capabilities: anyone who sees one can use it.")
@click.option("--readonly-uri", is_flag=True, help="Also show read capabilities.")
@click.option("-R", "--recursive", is_flag=True, help="Also list the directories below, each under its path.")
@click.option("--json", "as_json", is_flag=True, help="Print the JSON of the web API; with -R, one line per directory.")
@click.pass_context
def ls(
    ctx: click.Context,
    *,
    path: str,
    long: bool,
    everything: bool,
    classify: bool,
    uri: bool,
    readonly_uri: bool,
    recursive: bool,
    as_json: bool,
) -> int:
    """List the directory or file PATH: an alias, a path below one, or a capability.

    Without PATH: the alias `tahoe`, if you have one.
    """
    from grid.cli.arguments.remote import parse_remote
    from grid.cli.arguments.tree import open_tree_directory, run_in_tree

    directory, aliases = open_tree_directory(ctx)
    remote = parse_remote(path, aliases)
    columns = Columns(long=long, classify=classify, uri=uri, readonly_uri=readonly_uri)

    async def operation(tree: Tree) -> int:
        return await (_list_all(tree, remote, columns, as_json) if recursive else _list(tree, remote, columns, as_json))

    return run_in_tree(directory, operation)


async def _list(tree: Tree, remote: RemotePath, columns: Columns, as_json: bool) -> int:
    from grid.directory.node_json import describe_directory, describe_file

    found = await tree.find(remote)
    target = found.target
    if isinstance(target, DirectoryCap):
        children = await tree.store.directory(target).list()
        if as_json:
            click.echo(json.dumps(describe_directory(target, children), indent=1))
            return 0
        return _show(listing_lines(children, columns, time.time()), children)
    if as_json:
        is_readable = not isinstance(target, UnknownChild) and target.is_mutable and target.authority != "verify"
        size = await tree.store.size(target) if is_readable and not isinstance(target, UnknownChild) else None
        click.echo(json.dumps(describe_file(found, size, by_path=bool(remote.names)), indent=1))
        return 0
    name = remote.names[-1] if remote.names else ""
    lines = listing_lines({name: found}, columns, time.time())
    if not any(lines):  # A bare capability has no name, so show the file's mode and size.
        lines = listing_lines({name: found}, evolve(columns, long=True), time.time())
    return _show(lines, {name: found})


async def _list_all(tree: Tree, remote: RemotePath, columns: Columns, as_json: bool) -> int:
    from grid.directory.node_json import describe_directory
    from grid.directory.walk import walk

    root = await tree.find_directory(remote)
    status, first = 0, True
    async for visited in walk(tree.store, root.cap):
        if visited.children is None or not isinstance(visited.target, DirectoryCap):
            continue
        if as_json:
            line = {"path": list(visited.path), "node": describe_directory(visited.target, visited.children)}
            click.echo(json.dumps(line))
            continue
        if not first:
            click.echo()
        first = False
        click.echo(f"{plain('/'.join(visited.path) or '.')}:")
        status = max(status, _show(listing_lines(visited.children, columns, time.time()), visited.children))
    return status


def _show(lines: list[str], children: Mapping[str, Child]) -> int:
    """Print the lines. Return 1 if the output cannot encode one, which then goes to stderr with escapes."""
    import sys

    from grid.cli.terminal.quoting import encodable, escaped

    status = 0
    for line in lines:
        if encodable(line, sys.stdout.encoding or "utf-8"):
            click.echo(line)
        else:
            click.echo(escaped(line).encode("ascii", "backslashreplace").decode("ascii"), err=True)
            status = int(ExitCode.OTHER)
    if any(isinstance(child.target, UnknownChild) for child in children.values()):
        click.echo(
            "Entries marked '?' are of unknown kinds; a newer version of Grid may support them.",
            err=True,
        )
    return status


@frozen(kw_only=True)
class Columns:
    """The columns shown beside the name."""

    long: bool = False
    classify: bool = False
    uri: bool = False
    readonly_uri: bool = False


def listing_lines(children: Mapping[str, Child], columns: Columns, now: float) -> list[str]:
    """One line per child, sorted by name."""
    rows = [_row(name, child, columns, now) for name, child in sorted(children.items())]
    if not rows:
        return []
    return aligned(rows)


def _row(name: str, child: Child, columns: Columns, now: float) -> Sequence[str]:
    read, write = _cap_texts(child)
    row = [_mode(child, read, write), _size(child), _date(child.metadata, now)] if columns.long else []
    row.append(plain(name) + (_mark(child, write) if columns.classify else ""))
    if columns.uri:
        row.append(plain(write or read or "-"))
    if columns.readonly_uri:
        row.append(plain(read or "-"))
    return row


def _cap_texts(child: Child) -> tuple[str, str]:
    """The read and write capabilities; "" for one that is absent."""
    target = child.target
    if isinstance(target, UnknownChild):
        return (target.read or b"").decode("utf-8", "replace"), (target.write or b"").decode("utf-8", "replace")
    read = "" if target.authority == "verify" else target.read_cap().to_string()
    return read, target.to_string() if target.authority == "write" else ""


def _mode(child: Child, read: str, write: str) -> str:
    is_directory = isinstance(child.target, DirectoryCap)
    kind = "?" if isinstance(child.target, UnknownChild) else "d" if is_directory else "-"
    return kind + ("r" if read else "-") + ("w" if write else "-") + ("x" if is_directory else "-")


def _size(child: Child) -> str:
    match child.target:
        case DirectoryCap():
            return "-"
        case LitCap() | ChkCap() | SliceCap() | SequenceCap():
            return str(child.target.size)
        case _:
            return "?"


def _date(metadata: Metadata, now: float) -> str:
    times = metadata.get("tahoe")
    made = times.get("linkcrtime") if isinstance(times, Mapping) else None
    if made is None:
        made = metadata.get("ctime")
    if not isinstance(made, int | float) or isinstance(made, bool):
        return "-"
    try:
        when = time.localtime(made)
    except (OverflowError, ValueError, OSError):
        return "-"
    return time.strftime("%b %d  %Y" if now - made > HALF_A_YEAR_S else "%b %d %H:%M", when)


def _mark(child: Child, write: str) -> str:
    if isinstance(child.target, DirectoryCap):
        return "/"
    if isinstance(child.target, UnknownChild):
        return "?"
    return "*" if write else ""
