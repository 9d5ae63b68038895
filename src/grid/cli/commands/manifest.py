"""`grid manifest`: lists everything below a directory, one object per line. [spec cli 2.11]"""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import click

from grid.cli.arguments.completion import complete_remote
from grid.cli.terminal.invocation import examples, invocation, progress_options

if TYPE_CHECKING:
    from collections.abc import Mapping

    from grid.cli.arguments.remote import RemotePath
    from grid.cli.arguments.tree import Tree
    from grid.cli.terminal.survey_progress import SurveyDisplay


@click.command(
    epilog=examples("grid manifest work:", "grid manifest --verify-cap work:docs", "grid manifest --json work: | head")
)
@click.argument("path", metavar="[PATH]", required=False, default="", shell_complete=complete_remote)
@click.option("-s", "--storage-index", "field", flag_value="storage-index", help="Print only storage indexes.")
@click.option("--verify-cap", "field", flag_value="verifycap", help="Print only verify capabilities.")
@click.option("--repair-cap", "field", flag_value="repaircap", help="Print only repair capabilities.")
@progress_options
@click.option(
    "-r", "--raw", "--json", "raw", is_flag=True, help="Print a line of JSON for each object, and one of statistics."
)
@click.pass_context
def manifest(ctx: click.Context, *, path: str, field: str | None, raw: bool) -> int:
    """Print the capability and path of everything below PATH, each object once.

    Without PATH: the alias `tahoe`, if you have one. A repair capability is the capability that `grid repair` needs: of
    an immutable file its verify capability, of a mutable file or directory its write capability.
    """
    from grid.cli.arguments.remote import parse_remote
    from grid.cli.arguments.tree import open_tree_directory, run_in_tree
    from grid.cli.terminal.survey_progress import SurveyDisplay

    directory, aliases = open_tree_directory(ctx)
    remote = parse_remote(path, aliases)

    async def operation(tree: Tree) -> int:
        with SurveyDisplay("listing", hidden=invocation(ctx).hides_progress or sys.stdout.isatty()) as display:
            return await _print(tree, remote, field, raw, display)

    return run_in_tree(directory, operation)


async def _print(tree: Tree, remote: RemotePath, field: str | None, raw: bool, display: SurveyDisplay) -> int:
    from grid.cli.terminal.failures import tell_unread
    from grid.cli.terminal.quoting import plain
    from grid.directory.node_json import describe_unit
    from grid.directory.walk import Visited
    from grid.errors import GridError

    lost: list[tuple[str, GridError]] = []

    def unreadable(visited: Visited, error: GridError) -> None:
        if not visited.path:
            raise error
        lost.append(("/".join(visited.path), error))

    stats: list[Mapping[str, object]] = []
    root = await tree.find_directory(remote)
    async for visited in display.watch(tree.survey.visit(root.cap, stats.append, unreadable)):
        unit = describe_unit(visited.path, visited.target, visited.cap)
        if raw:
            click.echo(json.dumps(unit))
        elif field is None:
            if unit["cap"] is not None:
                click.echo(f"{plain(str(unit['cap']))} {plain('/'.join(visited.path))}")
        elif unit[field]:
            click.echo(plain(str(unit[field])))
    display.stop()
    if raw:
        click.echo(json.dumps({"type": "stats", "stats": stats[0]}))
    tell_unread(lost, as_json=raw)
    return 1 if lost else 0
