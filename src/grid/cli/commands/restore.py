"""`grid restore`: copies a snapshot, or any directory of the grid, to this machine. [spec cli 3]"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from grid.cli.arguments.completion import complete_local_or_remote, complete_remote
from grid.cli.arguments.replacing import ReplacePolicy, replace_options
from grid.cli.commands.cp import JOBS, conclude, describe_result
from grid.cli.terminal.invocation import examples, invocation, progress_options
from grid.cli.terminal.quoting import plain
from grid.cli.transfer.selection import selection_options
from grid.plural import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from grid.cli.arguments.remote import RemotePath
    from grid.cli.arguments.tree import Tree
    from grid.cli.connection import Connection
    from grid.cli.snapshots.catalog import Catalog
    from grid.cli.terminal.progress import TransferDisplay
    from grid.cli.transfer.copy_plan import NoSuchSourceError
    from grid.cli.transfer.endpoints import RemoteEndpoint
    from grid.errors import NoSuchChildError
    from grid.transfer.selection import Selection


@click.command(
    epilog=examples(
        "grid restore work:backups/docs/Latest ~/docs",
        "grid restore --snapshot 2026-01-31 work:backups/docs /tmp/old",
        "grid restore --snapshot 2026-01-31 --include /letters/1.txt work:backups/docs /tmp/old",
    )
)
@click.argument("source", metavar="ALIAS:PATH", shell_complete=complete_remote)
@click.argument("directory", metavar="DIR|--target DIR", required=False, shell_complete=complete_local_or_remote)
@click.option(
    "--target", metavar="DIR", type=click.Path(), help="The directory to restore into, as an alternative to DIR."
)
@click.option(
    "--snapshot", metavar="NAME",
    help="The snapshot to restore: its name, a date (the newest snapshot whose name begins with it), or `latest`. "
    "ALIAS:PATH is then the target of `grid backup`.",
)  # fmt: skip
@selection_options("Restore")
@click.option(
    "--jobs",
    metavar="N",
    type=click.IntRange(1, 256),
    default=JOBS,
    show_default=True,
    help="How many files to fetch at once.",
)
@click.option("--no-owner", is_flag=True, help="Do not restore the owners of files, even as root.")
@replace_options()
@progress_options
@click.option(
    "--json", "as_json", is_flag=True, help="Print progress as JSON lines on stderr, and the result as one on stdout."
)
@click.pass_context
def restore(
    ctx: click.Context,
    *,
    source: str,
    directory: str | None,
    target: str | None,
    snapshot: str | None,
    selection: Selection,
    jobs: int,
    no_owner: bool,
    policy: ReplacePolicy,
    as_json: bool,
) -> int:
    """Copy the directory ALIAS:PATH into DIR, with times, modes, symbolic links and extended attributes as backed up.

    After `grid backup tree work:home`, `grid restore work:home/Latest tree` restores the newest snapshot, and `grid
    restore --snapshot NAME work:home tree` an older one. Files restored earlier and unchanged since are not fetched
    again; other files of the same name are replaced (see -n, -i and -u), and all others stay. If you are root, owners
    are restored too.

    PATTERN uses .gitignore syntax: a name matches at any depth; a path such as /letters/*.txt is relative to the restored
    directory. A directory that matches stands for everything below it. --exclude wins over --include.
    """
    from grid.cli.arguments.remote import require_local_target
    from grid.cli.terminal.progress import TransferDisplay
    from grid.cli.transfer.copy_plan import NoSuchSourceError
    from grid.cli.transfer.copying import restore_tree
    from grid.cli.transfer.session import open_remote_endpoint, transfer_session
    from grid.node.files import expand_home

    into = _target(directory, target)
    with (
        transfer_session(ctx) as session,
        TransferDisplay(as_json=as_json, hidden=invocation(ctx).hides_progress) as display,
    ):
        endpoint = open_remote_endpoint(session, source)
        require_local_target(into, session.aliases)
        policy.quiet = display.paused

        restored: list[str] = []

        async def operation(connection: Connection) -> None:
            from grid.cli.arguments.tree import open_tree

            tree = await open_tree(connection)
            catalog: Catalog | None = None
            if snapshot is None:
                await _require_one_tree(tree, endpoint)
                chosen = endpoint
            else:
                catalog, chosen = await _snapshot_in(tree, endpoint, snapshot)
                restored.append(chosen.shown)
            path = str(expand_home(into))
            missing: NoSuchSourceError | None = None
            try:
                await restore_tree(
                    tree.store, session.database, display, chosen, path, jobs=jobs, replace=policy,
                    selection=selection, keep_owners=not no_owner,
                )  # fmt: skip
            except NoSuchSourceError as problem:
                missing = problem
            if missing is not None:
                raise await _with_earlier(missing, tree, catalog, chosen, ctx.params["include"])

        session.run(operation)
    if as_json:
        click.echo(json.dumps(describe_result("restore", display)))
    elif not display.tally.failed and not invocation(ctx).is_quiet:
        click.echo(_summary(display) + "".join(f", from {plain(shown)}" for shown in restored))
    return conclude(display, as_json=as_json)


def _target(directory: str | None, target: str | None) -> str:
    """The target directory, which can be given in either of two ways."""
    named = [name for name in (directory, target) if name is not None]
    if len(named) != 1:
        raise click.UsageError("name one directory to restore into: DIR or --target DIR")
    return named[0]


async def _with_earlier(
    missing: NoSuchSourceError,
    tree: Tree,
    catalog: Catalog | None,
    chosen: RemoteEndpoint,
    patterns: Sequence[str],
) -> NoSuchSourceError:
    """The error, with the name of an earlier snapshot that has the first included path, if the path is plain and one has."""
    from grid.caps import DirectoryCap
    from grid.cli.transfer.copy_plan import NoSuchSourceError
    from grid.errors import GridError

    plain_paths = [text for text in patterns if "/" in text.rstrip("/") and not set(text) & set("*?[\\")]
    if catalog is None or not plain_paths or not isinstance(chosen.root, DirectoryCap):
        return missing
    names = [name for name in plain_paths[0].split("/") if name not in ("", ".")]
    try:
        found = await catalog.find_earlier(tree.store, chosen.root, names)
    except GridError:
        return missing  # The problem to report is the first one.
    if found is None:
        return missing
    words = f"{missing}; the nearest earlier snapshot that has {plain(plain_paths[0])} is {found.name}"
    return NoSuchSourceError(words, name=missing.name)


async def _snapshot_in(tree: Tree, endpoint: RemoteEndpoint, name: str) -> tuple[Catalog, RemoteEndpoint]:
    """All snapshots, and the one of this name; NoSuchChildError."""
    from grid.cli.snapshots.catalog import read_catalog
    from grid.cli.transfer.endpoints import RemoteEndpoint
    from grid.directory.snapshots import ARCHIVES
    from grid.errors import NoSuchChildError

    backup = endpoint.below(())
    try:
        catalog = await read_catalog(tree, backup)
    except NoSuchChildError as problem:
        missing = problem
    else:
        chosen = catalog.choose(name)
        return catalog, RemoteEndpoint(chosen.cap, (), backup.with_name(ARCHIVES).with_name(chosen.name).shown)
    raise await _with_holder(missing, tree, backup, name)


async def _with_holder(missing: NoSuchChildError, tree: Tree, backup: RemotePath, name: str) -> NoSuchChildError:
    """The error, with the command that restores this path if a directory above it holds the snapshots."""
    from grid.cli.snapshots.catalog import backup_above
    from grid.cli.terminal.quoting import quote
    from grid.errors import NoSuchChildError

    if (holder := await backup_above(tree, backup)) is None:
        return missing
    below = quote("/" + "/".join(backup.names[len(holder.names) :]))
    line = f"grid restore --snapshot {plain(name)} --include {below} {quote(holder.shown)} DIR"
    return NoSuchChildError(f"{missing}; the backup is {holder.shown}: `{line}`", name=missing.name)


async def _require_one_tree(tree: Tree, endpoint: RemoteEndpoint) -> None:
    """Raise UsageError for the directory of a backup: all its snapshots together are seldom what is meant."""
    from grid.caps import DirectoryCap
    from grid.cli.transfer.endpoints import find_remote
    from grid.directory.snapshots import ARCHIVES, LATEST

    found = await find_remote(tree.store, endpoint)
    if found is None or not isinstance(found.cap, DirectoryCap) or not found.cap.is_mutable:
        return
    if {ARCHIVES, LATEST} <= set(await tree.store.directory(found.cap).list()):
        shown = endpoint.shown
        raise click.UsageError(
            f"{shown} holds the snapshots of a backup: choose one, as in `--snapshot latest {shown}`;"
            f" `grid snapshots {shown}` lists them, and `grid cp -r` copies them all"
        )


def _summary(display: TransferDisplay) -> str:
    tally = display.tally
    files = f"{counted(tally.copied, 'file')} restored ({tally.skipped} already there)"
    return f"{files}, {counted(tally.directories, 'directory', 'directories')}"
