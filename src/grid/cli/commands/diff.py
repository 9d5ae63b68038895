"""`grid diff`: compares two snapshots, or any two directories of the grid."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from grid.cli.arguments.completion import complete_remote
from grid.cli.terminal.exit_codes import ExitCode
from grid.cli.terminal.invocation import examples, invocation
from grid.cli.terminal.quoting import plain
from grid.plural import counted

if TYPE_CHECKING:
    from grid.caps import DirectoryCap
    from grid.cli.arguments.tree import Tree
    from grid.cli.snapshots.comparison import Comparison, Difference, Totals


@click.command(
    epilog=examples(
        "grid diff --in work:backups/docs 2026-01-30 latest",
        "grid diff work:backups/docs/Archives/2026-01-31_12:00:00Z work:backups/docs/Latest",
        "grid diff --json work:draft work:final | jq 'select(.change == \"removed\").path'",
    )
)
@click.argument("old", metavar="A", shell_complete=complete_remote)
@click.argument("new", metavar="B", shell_complete=complete_remote)
@click.option(
    "--in", "backup", metavar="ALIAS:PATH", shell_complete=complete_remote,
    help="A and B are snapshots of the backup there: names, dates (the newest snapshot whose name begins with it), or `latest`.",
)  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print a line of JSON for each path, and one with the totals.")
@click.pass_context
def diff(ctx: click.Context, *, old: str, new: str, backup: str | None, as_json: bool) -> int:
    """Show what changed from A to B, two directories of the grid.

    Each path is preceded by `+` if it is only in B, `-` if it is only in A, `M` if its contents differ, and `T` if it
    is a file in one and a directory in the other. Only names and capabilities are compared: no file is read. A
    mutable file or directory linked in both never counts as changed.
    """
    from grid.cli.arguments.remote import parse_remote
    from grid.cli.arguments.tree import open_tree_directory, run_in_tree
    from grid.cli.snapshots.comparison import compare
    from grid.cli.terminal.failures import tell_unread

    home, aliases = open_tree_directory(ctx)
    paths = [parse_remote(text, aliases) for text in ((old, new) if backup is None else (backup,))]

    async def find(tree: Tree) -> tuple[DirectoryCap, DirectoryCap]:
        from grid.cli.snapshots.catalog import read_catalog

        if backup is None:
            return (await tree.find_directory(paths[0])).cap, (await tree.find_directory(paths[1])).cap
        catalog = await read_catalog(tree, paths[0])
        return catalog.choose(old).cap, catalog.choose(new).cap

    async def operation(tree: Tree) -> Comparison:
        return await compare(tree.store, *await find(tree))

    found = run_in_tree(home, operation)
    for difference in found.differences:
        click.echo(json.dumps(_describe(difference)) if as_json else _line(difference))
    if as_json:
        click.echo(json.dumps({"event": "diff", **found.totals.to_json()}))
    elif not invocation(ctx).is_quiet:
        click.echo(_summary(found.totals))
    tell_unread(found.unread, as_json=as_json)
    return ExitCode.OTHER if found.unread else ExitCode.OK


def _describe(difference: Difference) -> dict[str, object]:
    return {
        "event": "difference",
        "path": "/".join(difference.path),
        "change": difference.change.name.lower(),
        "type": "directory" if difference.is_directory else "file",
        "old_bytes": difference.old_size,
        "new_bytes": difference.new_size,
    }


def _line(difference: Difference) -> str:
    return f"{difference.change.value}  {plain('/'.join(difference.path))}{'/' if difference.is_directory else ''}"


def _summary(totals: Totals) -> str:
    from grid.cli.terminal.columns import shown_size

    files = (
        f"{counted(totals.files_added, 'file')} added, {totals.files_removed} removed, {totals.files_modified} modified"
    )
    directories = counted(totals.directories_added, "directory", "directories")
    retyped = f"; {totals.retyped} changed between file and directory" if totals.retyped else ""
    sizes = f"{shown_size(totals.added_bytes)} added, {shown_size(totals.removed_bytes)} removed"
    return f"{files}; {directories} added, {totals.directories_removed} removed{retyped}; {sizes}"
