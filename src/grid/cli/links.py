"""`grid mv`, `ln` and `unlink`: entries of directories, which lead to files and directories. [spec cli 2.7, 2.8]"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from collections.abc import Callable

    from grid.cli.remote import RemotePath


@click.command(short_help="Move or rename a file or a directory.")
@click.argument("source", metavar="FROM")
@click.argument("target", metavar="TO")
@click.pass_context
def mv(ctx: click.Context, *, source: str, target: str) -> int:
    """Link what is at FROM at TO, and unlink it at FROM. A TO that ends with a slash is a directory to move it into.

    A file at TO is replaced, a directory is not. Nothing is copied.
    """
    from grid.cli.remote import parse_remote
    from grid.cli.tree import Tree, open_tree_directory, run_in_tree
    from grid.errors import GridError

    directory, aliases = open_tree_directory(ctx)
    old = parse_remote(source, aliases)
    new = _target(old, parse_remote(target, aliases))
    if not old.names:
        raise GridError(f"{old.shown} is a root: there is no entry to move; `grid ln` makes one")

    async def operation(tree: Tree) -> None:
        await tree.move(old, new, overwrite="only-files")

    _translating_conflicts(lambda: run_in_tree(directory, operation))
    click.echo("OK")
    return 0


@click.command(short_help="Link a file or a directory in one more place.")
@click.argument("source", metavar="FROM")
@click.argument("target", metavar="TO")
@click.pass_context
def ln(ctx: click.Context, *, source: str, target: str) -> int:
    """Link what FROM names (a path or a capability) at TO too. A TO that ends with a slash is a directory."""
    from grid.cli.remote import parse_remote
    from grid.cli.tree import Tree, open_tree_directory, run_in_tree
    from grid.directory.edits import SetChild

    directory, aliases = open_tree_directory(ctx)
    old = parse_remote(source, aliases)
    new = _target(old, parse_remote(target, aliases))

    async def operation(tree: Tree) -> None:
        found = await tree.find(old)
        above, name = await tree.parent(new)
        await above.edit([SetChild(name, found.target, overwrite="only-files")])

    _translating_conflicts(lambda: run_in_tree(directory, operation))
    click.echo("OK")
    return 0


@click.command(short_help="Remove an entry from its directory.")
@click.argument("path", metavar="PATH")
@click.pass_context
def unlink(ctx: click.Context, *, path: str) -> int:
    """Remove the entry PATH from its directory. What it led to stays for whoever has its capability."""
    from grid.cli.remote import parse_remote
    from grid.cli.tree import Tree, open_tree_directory, run_in_tree
    from grid.directory.edits import RemoveChild
    from grid.errors import GridError

    directory, aliases = open_tree_directory(ctx)
    remote = parse_remote(path, aliases)
    if not remote.names:
        raise GridError("'grid unlink' can only unlink directory entries, so a path must be given.")

    async def operation(tree: Tree) -> None:
        above, name = await tree.parent(remote)
        await above.edit([RemoveChild(name)])

    run_in_tree(directory, operation)
    click.echo("200 OK")
    return 0


def _target(old: RemotePath, new: RemotePath) -> RemotePath:
    """Where the link goes: into a directory it keeps its name; GridError if it has none."""
    from grid.errors import GridError

    if not new.inside:
        return new
    if not old.names:
        raise GridError("what a bare capability names has no name of its own: give one at the end of TO")
    return new.with_name(old.names[-1])


def _translating_conflicts(run: Callable[[], None]) -> None:
    """Run it; a directory in the way is told of in the words of 1.20."""
    from grid.errors import ExistingChildError, GridError

    try:
        run()
    except ExistingChildError as error:
        raise GridError("You can't overwrite a directory with a file") from error
