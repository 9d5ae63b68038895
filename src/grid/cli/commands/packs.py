"""`grid pack`, `grid unpack` and `grid repack`: convert the small files of a tree to slices of packs, and back."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from grid.cli.arguments.completion import complete_remote
from grid.cli.terminal.invocation import examples, invocation
from grid.plural import counted

if TYPE_CHECKING:
    from grid.cli.arguments.remote import RemotePath
    from grid.cli.arguments.tree import Tree
    from grid.cli.transfer.repacking import Choose, Failed, Found, MakeConverter, Rewritten
    from grid.directory.edits import OnReplaced
    from grid.directory.store import Store
    from grid.errors import GridError

_PATH = click.argument("path", metavar="ALIAS:[PATH]", shell_complete=complete_remote)
_JSON = click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
_DRY_RUN = click.option("-n", "--dry-run", is_flag=True, help="Print what would be done, and change nothing.")


@click.command(epilog=examples("grid pack work:photos", "grid pack --dry-run work:", "grid pack --json work:photos"))
@_PATH
@_DRY_RUN
@_JSON
@click.pass_context
def pack(ctx: click.Context, *, path: str, dry_run: bool, as_json: bool) -> int:
    """Put small immutable files below PATH into packs, and link the packed files in place of the old ones.

    A file is small if it has 56 bytes to 256 KiB; a smaller one fits into its capability.
    Tahoe-LAFS clients list and keep packed files, but cannot read them. Immutable directories (snapshots) are stored
    again with the packed files. Servers keep the old files, by default forever; a server with expire.enabled deletes
    them after their leases expire.
    """
    from grid.cli.transfer.repacking import ToPacks, is_small_file

    return _rewrite(ctx, path, "pack", is_small_file, ToPacks, dry_run=dry_run, as_json=as_json)


@click.command(
    epilog=examples("grid unpack work:photos", "grid unpack --dry-run work:photos", "grid unpack --json work:photos")
)
@_PATH
@_DRY_RUN
@_JSON
@click.pass_context
def unpack(ctx: click.Context, *, path: str, dry_run: bool, as_json: bool) -> int:
    """Store packed files below PATH separately again, so that Tahoe-LAFS clients can read them."""
    from grid.cli.transfer.repacking import ToFiles, is_slice

    return _rewrite(ctx, path, "unpack", is_slice, ToFiles, dry_run=dry_run, as_json=as_json)


@click.command(
    epilog=examples("grid repack work:", "grid repack --threshold 80 work:photos", "grid repack --dry-run work:")
)
@_PATH
@click.option(
    "--threshold",
    metavar="PERCENT",
    type=click.IntRange(1, 100),
    default=50,
    show_default=True,
    help="Rewrite packs of which less than PERCENT is in use.",
)
@_DRY_RUN
@_JSON
@click.pass_context
def repack(ctx: click.Context, *, path: str, threshold: int, dry_run: bool, as_json: bool) -> int:
    """Move files out of packs that are mostly unused into new packs.

    Only links below PATH count as use, so give the directory above everything that uses these packs. Links elsewhere
    keep pointing into the old packs.
    """
    from grid.cli.transfer.repacking import ToPacks, is_slice

    return _rewrite(ctx, path, "repack", is_slice, ToPacks, dry_run=dry_run, as_json=as_json, threshold=threshold / 100)


def _rewrite(
    ctx: click.Context,
    path: str,
    word: str,
    choose: Choose,
    make: MakeConverter,
    *,
    dry_run: bool,
    as_json: bool,
    threshold: float | None = None,
) -> int:
    from grid.cli.arguments.remote import parse_remote
    from grid.cli.arguments.tree import open_tree_directory, run_in_tree
    from grid.cli.terminal.failures import tell_unread
    from grid.cli.undo.keeping import Keeper

    if invocation(ctx).gateway is not None:
        raise click.UsageError(f"`grid {word}` works only without --gateway")
    directory, aliases = open_tree_directory(ctx)
    remote = parse_remote(path, aliases)
    problems: list[tuple[str, GridError]] = []

    async def operation(tree: Tree) -> tuple[Found, Rewritten | None]:
        from grid.cli.transfer.repacking import find, sparse_only

        root = await tree.find_directory(remote)
        found = await find(tree.store, root.cap, choose)
        if threshold is not None:
            found = sparse_only(found, threshold)
        if dry_run:
            return found, None

        def failed(where: str, error: GridError) -> None:
            problems.append((where, error))

        return found, await _carry_out(
            tree, remote, found, make, failed, Keeper(ctx).below(remote.shown, remote.names[-1] if remote.names else "")
        )

    found, done = run_in_tree(directory, operation)
    chosen = found.chosen()
    size = sum(cap.size for cap in chosen)
    if as_json:
        told = {"files": len(chosen), "bytes": size, "dry_run": True} if done is None else done.to_json()
        root = {} if done is None or done.root == found.order[0].cap else {"root": done.root.to_string()}
        click.echo(json.dumps({"event": word, **told, **root}))
    elif done is None:
        click.echo(f"would {word} {counted(len(chosen), 'file')} ({counted(size, 'byte')})")
    elif not invocation(ctx).is_quiet:
        packs = f" into {counted(done.packs, 'pack')}" if word != "unpack" else ""
        click.echo(
            f"{counted(done.files, 'file')} {word}ed{packs},"
            f" {counted(done.directories, 'directory', 'directories')} changed"
        )
        if done.root != found.order[0].cap and not remote.names:
            click.echo(done.root.to_string())
    tell_unread(problems, as_json=as_json)
    return 1 if problems else 0


async def _carry_out(
    tree: Tree, remote: RemotePath, found: Found, make: MakeConverter, failed: Failed, keep: OnReplaced
) -> Rewritten:
    """Rewrite the tree, and link its new root if it is linked anywhere. keep: called with what was replaced."""
    from grid.cli.transfer.repacking import Rewriter
    from grid.directory.edits import SetChild, previous_of
    from grid.errors import MayHoldError

    store: Store = tree.store
    rewriter = Rewriter(store, found, failed, keep)
    done = await rewriter.run(make(store, rewriter.done, failed))
    old = found.order[0].cap
    if done.root != old and remote.names:
        parent, name = await tree.parent(remote)
        try:
            replaced = await parent.edit([SetChild(name, done.root, only=old)])
        except MayHoldError as error:
            keep(parent.cap, [((), child, done.root) for child in previous_of(error).values()])
            raise
        keep(parent.cap, [((), child, done.root) for child in (replaced or {}).values()])
    return done
