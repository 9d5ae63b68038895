"""`grid block`, `grid blocks` and `grid unblock`: what your own gateway shows to nobody. (decision 468)

They change the file that the gateway reads, so it need not run. Objects are looked up on the grid before anything is
written.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem

from grid.cli.arguments.completion import complete_kept, complete_remote
from grid.cli.terminal.invocation import examples, invocation, json_option, progress_options
from grid.plural import counted

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from grid.caps import KnownCap
    from grid.cli.arguments.remote import RemotePath
    from grid.cli.arguments.tree import Tree
    from grid.cli.connection import Home
    from grid.cli.terminal.survey_progress import SurveyDisplay
    from grid.directory.walk import Visited
    from grid.errors import GridError
    from grid.node.blacklist_file import BlacklistFile, Item

REASON = "no longer shared"
LONGEST = 200
"""Characters of a reason, which stands in the file once for each object."""


@click.command(
    epilog=examples(
        "grid block work:Photos",
        'grid block --reason "ask me for the new link" work:Photos',
        "grid block work:Photos/a.jpg",
    )
)
@click.argument("path", metavar="PATH", shell_complete=complete_remote)
@click.option("--reason", metavar="TEXT", default=REASON, help=f"Show this to visitors; default: “{REASON}”.")
@progress_options
@json_option()
@click.pass_context
def block(ctx: click.Context, *, path: str, reason: str, as_json: bool) -> int:
    """Make your gateway refuse PATH, and everything that is below it now, to everyone, including you.

    This counts at once for every link and capability, and for S3 and SFTP. It is the way to take back a link with a
    capability from people who have only your gateway. Other gateways and clients of the grid still open everything.

    Block a directory before you remove it. What is added below it later is not blocked: run this again. An equal file
    elsewhere, or one in the same pack, is the same object, and is blocked, too.
    """
    from grid.cli.arguments.remote import parse_remote
    from grid.cli.arguments.tree import open_tree_directory, run_in_tree
    from grid.cli.terminal.failures import tell_unread
    from grid.cli.terminal.quoting import plain
    from grid.cli.terminal.survey_progress import SurveyDisplay
    from grid.codec import base32
    from grid.node.blacklist_file import BlockedTree, add_tree

    words = _reason(reason)
    home, aliases = open_tree_directory(ctx)
    file = _file(ctx, home)
    remote = parse_remote(path, aliases)
    lost: list[tuple[str, GridError]] = []
    hidden = invocation(ctx).hides_progress or as_json

    async def operation(tree: Tree) -> tuple[bytes, list[bytes]]:
        with SurveyDisplay("listing", hidden=hidden) as display:
            return await _collect(tree, remote, lost, display)

    root, indexes = run_in_tree(home, operation)
    with file.changing() as items:
        add_tree(items, BlockedTree(root=root, path=remote.shown, reasons=dict.fromkeys(indexes, words)))
    if as_json:
        line = {"event": "block", "path": remote.shown, "storage_index": base32.encode(root), "objects": len(indexes)}
        click.echo(json.dumps({**line, "reason": words}))
    else:
        click.echo(f"blocked: {plain(remote.shown)}, {counted(len(indexes), 'object')}")
        if not invocation(ctx).is_quiet:
            click.echo(f"To show it again: `grid unblock {_way_back(remote, root)}`", err=True)
    tell_unread(lost, as_json=as_json)
    return 1 if lost else 0


@click.command(epilog=examples("grid blocks", "grid blocks --json", "grid -d ~/client blocks"))
@json_option("Print one JSON document.")
@click.pass_context
def blocks(ctx: click.Context, *, as_json: bool) -> int:
    """List what your gateway shows to nobody, and why.

    OBJECTS counts the files and directories that were blocked together. Lines of `access.blacklist` that you wrote
    yourself have no path.
    """
    from grid.cli.arguments.tree import open_tree_directory
    from grid.cli.terminal.columns import table
    from grid.cli.terminal.quoting import plain
    from grid.codec import base32
    from grid.node.blacklist_file import blocked_trees

    found = blocked_trees(_file(ctx, open_tree_directory(ctx)[0]).read())
    lines: list[Mapping[str, object]] = [
        {
            "path": each.path,
            "storage_index": base32.encode(each.root),
            "objects": len(each.reasons),
            "reason": next(iter(each.reasons.values()), ""),
        }
        for each in found
    ]
    if as_json:
        click.echo(json.dumps(lines))
        return 0
    headings = ("PATH", "OBJECTS", "STORAGE INDEX", "REASON")
    keys = ("path", "objects", "storage_index", "reason")
    rows = [tuple(plain(str(line[key])) or "-" for key in keys) for line in lines]
    for text in table(headings, rows, ("OBJECTS",)) if rows else ():
        click.echo(text)
    if not rows:
        click.echo("nothing is blocked; `grid block PATH` blocks something", err=True)
    return 0


def _complete_blocks(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete the paths of blocks."""
    from grid.node.blacklist_file import BlacklistFile, blocked_trees

    return complete_kept(
        ctx, incomplete, lambda kept: (each.path for each in blocked_trees(BlacklistFile(kept).read()))
    )


@click.command(
    epilog=examples(
        "grid unblock work:Photos", "grid unblock mvzavm5ddo3pdlgdmjj7wpfkme", "grid unblock --json work:Photos"
    )
)
@click.argument("path", metavar="PATH|INDEX", shell_complete=_complete_blocks)
@json_option()
@click.pass_context
def unblock(ctx: click.Context, *, path: str, as_json: bool) -> int:
    """Let your gateway show again what `grid block PATH` blocked. It counts at once.

    `grid blocks` lists the paths and storage indexes. What another block contains, too, stays blocked.
    """
    from grid.cli.arguments.tree import open_tree_directory
    from grid.cli.terminal.quoting import plain
    from grid.errors import NoSuchChildError
    from grid.node.blacklist_file import blocked_objects, remove_tree

    home, aliases = open_tree_directory(ctx)
    file = _file(ctx, home)
    shown, roots = _roots(home, aliases, file.read(), path)
    with file.changing() as items:
        removed = {index for root in roots for index in remove_tree(items, root)}
        left = blocked_objects(items)
    if not removed:
        raise NoSuchChildError(f"{plain(shown)} is not blocked; `grid blocks` lists what is", name=shown)
    still = sum(index in left for index in removed)
    if as_json:
        click.echo(json.dumps({"event": "unblock", "path": shown, "objects": len(removed), "still_blocked": still}))
        return 0
    click.echo(f"unblocked: {plain(shown)}, {counted(len(removed) - still, 'object')}")
    if still:
        verb = "stays" if still == 1 else "stay"
        click.echo(f"{counted(still, 'object')} in it {verb} blocked by others: `grid blocks` lists them", err=True)
    return 0


def _file(ctx: click.Context, home: Home) -> BlacklistFile:
    """The file of the client directory; UsageError with a gateway other than its own, ConfigError without a directory."""
    from grid.cli.arguments.aliases import require_lasting
    from grid.node.blacklist_file import BlacklistFile

    if invocation(ctx).gateway not in (None, "node"):
        raise click.UsageError("what is blocked is kept by your own gateway: leave --gateway and GRID_GATEWAY out")
    require_lasting(home)
    return BlacklistFile(home.path)


def _reason(text: str) -> str:
    """The reason on one line; UsageError."""
    words = " ".join(text.split())
    if not words or not words.isprintable() or len(words) > LONGEST:
        raise click.UsageError(f"--reason: expected a line of at most {LONGEST} characters")
    return words


async def _collect(
    tree: Tree, remote: RemotePath, lost: list[tuple[str, GridError]], display: SurveyDisplay
) -> tuple[bytes, list[bytes]]:
    """The storage index at the path, and those of it and everything below it. lost: takes what cannot be read."""
    from grid.caps import DirectoryCap, UnknownChild
    from grid.cli.arguments.tree import known

    def unreadable(visited: Visited, error: GridError) -> None:
        lost.append(("/".join(visited.path) or remote.shown, error))

    cap = known(await tree.find(remote), remote.shown)
    root = _index(cap, remote.shown)
    found = {root: None}
    if isinstance(cap, DirectoryCap) and cap.authority != "verify":
        async for visited in display.watch(tree.survey.visit(cap, lambda stats: None, unreadable)):
            if not isinstance(visited.target, UnknownChild) and visited.target.storage_index is not None:
                found[visited.target.storage_index] = None
    return root, list(found)


def _index(cap: KnownCap, shown: str) -> bytes:
    from grid.errors import GridError

    if cap.storage_index is None:
        raise GridError(f"{shown} is so small that its capability contains it: it has no storage index to block")
    return cap.storage_index


def _roots(home: Home, aliases: Mapping[str, str], items: Sequence[Item], path: str) -> tuple[str, list[bytes]]:
    """How messages name the argument, and the objects it means. The grid is asked only for a path that no block has."""
    from grid.cli.arguments.remote import parse_remote
    from grid.cli.arguments.tree import known, run_in_tree
    from grid.codec import base32
    from grid.node.blacklist_file import blocked_objects, blocked_trees

    named = [each.root for each in blocked_trees(items) if each.path and each.path.rstrip("/") == path.rstrip("/")]
    named = named or [index for index in blocked_objects(items) if base32.encode(index) == path]
    if named:
        return path, named
    remote = parse_remote(path, aliases)

    async def find(tree: Tree) -> bytes:
        return _index(known(await tree.find(remote), remote.shown), remote.shown)

    root = run_in_tree(home, find) if remote.names else _index(remote.root, remote.shown)
    return remote.shown, [root]


def _way_back(remote: RemotePath, root: bytes) -> str:
    """What `grid unblock` takes: the path, or the storage index for a path with a capability."""
    from grid.cli.terminal.quoting import quote
    from grid.codec import base32

    return base32.encode(root) if remote.shown.startswith("URI:") else quote(remote.shown)
