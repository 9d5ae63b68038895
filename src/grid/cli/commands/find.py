"""`grid find` and `grid du`: list the paths below a directory, and show the size of each directory."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import click

from grid.cli.arguments.completion import complete_remote
from grid.cli.terminal.invocation import examples, invocation, progress_options
from grid.cli.terminal.quoting import plain
from grid.values import define

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from grid.cli.arguments.tree import Tree
    from grid.directory.pack import Target
    from grid.directory.walk import Visited
    from grid.errors import GridError

    Lost = list[tuple[str, GridError]]

_TYPES = {"f": "file", "d": "directory"}


@click.command(
    epilog=examples(
        "grid find work: --name '*.jpg'",
        "grid find work:photos --type d",
        "grid find work: --name report.pdf --json | jq .path",
    )
)
@click.argument("path", metavar="[PATH]", required=False, default="", shell_complete=complete_remote)
@click.option("--name", "pattern", metavar="GLOB", help="Only names that match; `*`, `?` and `[...]` as in a shell.")
@click.option("--type", "letter", type=click.Choice(["f", "d"]), help="Only files (f), or only directories (d).")
@progress_options
@click.option("--json", "as_json", is_flag=True, help="Print a line of JSON for each path.")
@click.pass_context
def find(ctx: click.Context, *, path: str, pattern: str | None, letter: str | None, as_json: bool) -> int:
    """Print the paths of everything below PATH, or only of what matches every option you give.

    Without PATH: the alias `tahoe`, if you have one.
    A directory linked in several places is listed in each, but its contents only in the first. Directories that
    cannot be read are named on stderr, and the exit code is 1.
    """
    from grid.cli.transfer.names import make_exclusion

    matches = make_exclusion([pattern] if pattern is not None else ["*"])

    def show(below: tuple[str, ...], target: Target) -> None:
        kind = type_of(target)
        if not matches(below[-1]) or (letter is not None and kind != _TYPES[letter]):
            return
        text = "/".join(below)
        if as_json:
            click.echo(json.dumps({"event": "found", "path": text, "type": kind, "bytes": size_of(target)}))
        else:
            click.echo(plain(text))

    async def operation(visits: AsyncIterator[Visited], tree: Tree) -> None:
        async for visited in visits:
            for name, child in (visited.children or {}).items():
                show((*visited.path, name), child.target)

    return walk_path(ctx, path, operation, as_json=as_json, prints_paths=sys.stdout.isatty())


@define
class _Usage:
    """The bytes and files of a directory."""

    size: int = 0
    files: int = 0


@click.command(
    epilog=examples(
        "grid du work:", "grid du --depth 0 work:photos", "grid du --json work: | jq 'select(.bytes > 1e9).path'"
    )
)
@click.argument("path", metavar="[PATH]", required=False, default="", shell_complete=complete_remote)
@click.option(
    "-d", "--depth", metavar="N", type=click.IntRange(0, 1000), default=1, show_default=True,
    help="How many levels of directories to list; 0 shows only the total.",
)  # fmt: skip
@click.option("-b", "--bytes", "in_bytes", is_flag=True, help="Print sizes in bytes.")
@progress_options
@click.option("--json", "as_json", is_flag=True, help="Print a line of JSON for each directory.")
@click.pass_context
def du(ctx: click.Context, *, path: str, depth: int, in_bytes: bool, as_json: bool) -> int:
    """Show the total size of the files in each directory below PATH, subdirectories included.

    Without PATH: the alias `tahoe`, if you have one.
    A file linked in several places counts once, where it is found first; so a directory that equals another has 0 B. Files
    take more space on the servers: with 3-of-10 encoding, 3.3 times as much. `grid stats` counts by type.
    """
    from grid.caps import DirectoryCap
    from grid.cli.terminal.columns import shown_size, table

    found: dict[tuple[str, ...], _Usage] = {}

    async def operation(visits: AsyncIterator[Visited], tree: Tree) -> None:
        async for visited in visits:
            if visited.is_directory:
                if len(visited.path) <= depth:
                    found.setdefault(visited.path, _Usage())
                if len(visited.path) < depth:
                    for name, child in (visited.children or {}).items():
                        if isinstance(child.target, DirectoryCap):  # Perhaps one that was visited elsewhere.
                            found.setdefault((*visited.path, name), _Usage())
                continue
            size = await _real_size(tree, visited)
            for level in range(min(depth, len(visited.path) - 1) + 1):
                usage = found.setdefault(visited.path[:level], _Usage())
                usage.size += size
                usage.files += 1

    status = walk_path(ctx, path, operation, as_json=as_json)
    rows = [(usage, "/".join(below) or ".") for below, usage in sorted(found.items())]
    if as_json:
        for usage, name in rows:
            click.echo(json.dumps({"event": "du", "path": name, "bytes": usage.size, "files": usage.files}))
        return status
    cells = [
        (str(usage.size) if in_bytes else shown_size(usage.size), str(usage.files), plain(name)) for usage, name in rows
    ]
    for line in table(("SIZE", "FILES", "DIRECTORY"), cells, numbers=("SIZE", "FILES")):
        click.echo(line)
    return status


async def _real_size(tree: Tree, visited: Visited) -> int:
    """The size of a file in bytes, which is fetched for a mutable one; 0 for an object of unknown kind."""
    from grid.caps import UnknownChild

    target = visited.target
    if visited.size is not None or isinstance(target, UnknownChild):
        return visited.size or 0
    return 0 if target.authority == "verify" else await tree.store.size(target)


def walk_path(
    ctx: click.Context,
    path: str,
    operation: Callable[[AsyncIterator[Visited], Tree], Awaitable[None]],
    *,
    as_json: bool,
    prints_paths: bool = False,
    depth: int | None = None,
) -> int:
    """Run the operation on everything below the path; return exit code 1 if directories could not be read.

    prints_paths: the operation prints to the terminal, so no bar is shown. depth: of the directories read, None for
    all.
    """
    from grid.cli.arguments.remote import parse_remote
    from grid.cli.arguments.tree import open_tree_directory, run_in_tree
    from grid.cli.terminal.failures import tell_unread
    from grid.cli.terminal.survey_progress import SurveyDisplay
    from grid.directory.walk import walk

    home, aliases = open_tree_directory(ctx)
    remote = parse_remote(path, aliases)
    lost: Lost = []

    def unreadable(visited: Visited, error: GridError) -> None:
        if not visited.path:
            raise error
        lost.append(("/".join(visited.path), error))

    async def task(tree: Tree) -> None:
        root = await tree.find_directory(remote)
        visits = walk(tree.store, root.cap, on_unreadable=unreadable, depth=depth)
        with SurveyDisplay("listing", hidden=invocation(ctx).hides_progress or prints_paths) as display:
            await operation(display.watch(visits), tree)

    run_in_tree(home, task)
    tell_unread(lost, as_json=as_json)
    return 1 if lost else 0


def type_of(target: Target) -> str:
    """`file`, `directory` or `unknown`."""
    from grid.caps import DirectoryCap, UnknownChild

    if isinstance(target, UnknownChild):
        return "unknown"
    return "directory" if isinstance(target, DirectoryCap) else "file"


def size_of(target: Target) -> int | None:
    """Bytes of an immutable file; None for anything else."""
    from grid.caps import ImmutableFileCap

    return target.size if isinstance(target, ImmutableFileCap) else None
