"""`grid mkdir`, `mv`, `ln` and `unlink`: change the entries of directories. [spec cli 2.2, 2.7, 2.8]"""

from __future__ import annotations

import json
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

import click

from grid.cli.arguments.completion import complete_remote
from grid.cli.arguments.replacing import ReplacePolicy, replace_options
from grid.cli.terminal.invocation import examples

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from grid.cli.arguments.remote import RemotePath
    from grid.cli.arguments.replacing import Undo
    from grid.cli.arguments.tree import Tree
    from grid.directory.pack import Child

_JSON = click.option("--json", "as_json", is_flag=True, help="Print the result as one line of JSON.")


@click.command(
    epilog=examples(
        "grid mv work:draft.txt work:final.txt", "grid mv work:final.txt work:docs/", "grid mv work:a work:b work:docs"
    )
)
@click.argument("arguments", metavar="FROM... TO", nargs=-1, required=True, shell_complete=complete_remote)
@replace_options()
@_JSON
@click.pass_context
def mv(ctx: click.Context, *, arguments: tuple[str, ...], policy: ReplacePolicy, as_json: bool) -> int:
    """Move or rename FROM to TO, or several of them into the directory TO.

    If TO ends with a slash, it is a directory to move into. An existing file is replaced; a directory is not. No
    contents are copied. -u compares the times at which the files were linked.
    """
    from grid.cli.arguments.remote import parse_remote, require_new_names
    from grid.cli.arguments.replacing import open_undo
    from grid.cli.arguments.tree import open_tree_directory, run_in_tree

    if len(arguments) < 2:
        raise click.UsageError("give at least one source and a target")
    directory, aliases = open_tree_directory(ctx)
    *olds, target = (parse_remote(argument, aliases) for argument in arguments)
    moves = _plan_moves(olds, target)
    for _, new in moves:
        require_new_names(new.names, new.shown)
    undo = open_undo(ctx)
    moved: list[RemotePath] = []

    async def operation(tree: Tree) -> bool:
        if len(moves) > 1:
            await tree.find_directory(target)
            for old, _ in moves:
                await tree.find(old)
        for old, new in moves:
            if await _move(tree, old, new, policy, undo):
                moved.append(new)
        return bool(moved)

    is_moved = _translating_conflicts(lambda: run_in_tree(directory, operation))
    if len(moves) == 1:
        _report("mv", "Moved", moves[0][1], undo, is_done=is_moved, as_json=as_json)
        return 0
    skipped = [new for _, new in moves if new not in moved]
    if as_json:
        line = {"event": "mv", "moved": [path.shown for path in moved], "skipped": [path.shown for path in skipped]}
        click.echo(json.dumps({**line, "replaced": undo.to_json()}))
        return 0
    for path in skipped:
        click.echo(f"{path.shown} already exists; not replaced", err=True)
    click.echo("OK" if not sys.stdout.isatty() else f"Moved {len(moved)} into {target.shown}")
    undo.tell()
    return 0


def _plan_moves(olds: Sequence[RemotePath], target: RemotePath) -> list[tuple[RemotePath, RemotePath]]:
    """The destination of each; GridError for a root, and for two with the same destination."""
    from grid.directory.names import normalize_name
    from grid.errors import GridError

    for old in olds:
        if not old.names:
            raise GridError(
                f"{old.shown} is not an entry of a directory, so it cannot be moved; `grid ln` links it elsewhere"
            )
    if len(olds) == 1:
        return [(olds[0], _target(olds[0], target))]
    names = [normalize_name(old.names[-1]) for old in olds]
    for index, name in enumerate(names):
        if name in names[:index]:
            raise GridError(f"two of these are called {name!r}; nothing was moved")
    return [(old, target.with_name(old.names[-1])) for old in olds]


async def _move(tree: Tree, old: RemotePath, new: RemotePath, policy: ReplacePolicy, undo: Undo) -> bool:
    """Move one entry if the policy permits it; return whether it was moved."""
    from grid.cli.arguments.tree import nothing_at
    from grid.directory.names import normalize_name
    from grid.errors import GridError, MayHoldError, NoSuchChildError

    moved = await tree.find(old)
    above, name = await tree.parent(new)
    there = (await above.list()).get(normalize_name(name))
    if not await _may_replace(policy, new, moved, there):
        return False
    try:
        source = await tree.move(old, new, overwrite="only-files")
    except NoSuchChildError:
        raise nothing_at(old) from None
    except MayHoldError:
        # What was not done is found as it was when the move is undone.
        with suppress(GridError):
            undo.note_move(((await tree.parent(old))[0].cap, old), (above.cap, new), moved, there)
        raise
    if (source, normalize_name(old.names[-1])) != (above.cap, normalize_name(name)):
        undo.note_move((source, old), (above.cap, new), moved, there)
    return True


@click.command(
    epilog=examples(
        "grid ln work:docs/report.pdf work:latest.pdf",
        "grid ln URI:CHK:... work:received/photo.jpg",
        "grid ln -n work:docs other:docs",
    )
)
@click.argument("source", metavar="FROM", shell_complete=complete_remote)
@click.argument("target", metavar="TO", shell_complete=complete_remote)
@replace_options("ni")
@_JSON
@click.pass_context
def ln(ctx: click.Context, *, source: str, target: str, policy: ReplacePolicy, as_json: bool) -> int:
    """Make FROM, a path or a capability, available at TO as well.

    If TO ends with a slash, FROM is linked in the directory TO, under its own name. A bare capability has
    none: end TO with one. An existing file at TO is replaced; a directory is not.
    """
    from grid.cli.arguments.remote import parse_remote, require_new_names
    from grid.cli.arguments.replacing import edit_entry, open_undo
    from grid.cli.arguments.tree import open_tree_directory, run_in_tree
    from grid.directory.edits import SetChild
    from grid.directory.names import normalize_name

    directory, aliases = open_tree_directory(ctx)
    old = parse_remote(source, aliases)
    new = _target(old, parse_remote(target, aliases))
    require_new_names(new.names, new.shown)
    undo = open_undo(ctx)

    async def operation(tree: Tree) -> bool:
        found = await tree.find(old)
        above, name = await tree.parent(new)
        if policy.is_given:
            there = (await above.list()).get(normalize_name(name))
            if not await _may_replace(policy, new, found, there):
                return False
        await edit_entry(above, SetChild(name, found.target, overwrite="only-files"), new, undo)
        return True

    is_linked = _translating_conflicts(lambda: run_in_tree(directory, operation))
    _report("ln", "Linked at", new, undo, is_done=is_linked, as_json=as_json)
    return 0


@click.command(
    epilog=examples(
        "grid rm work:docs/draft.txt work:docs/old.txt", "grid rm -r work:old", "grid undo     # brings it back"
    )
)
@click.argument("paths", metavar="PATH...", nargs=-1, required=True, shell_complete=complete_remote)
@click.option("-f", "--force", is_flag=True, help="Do not complain about a path that does not exist.")
@click.option(
    "-r",
    "-R",
    "--recursive",
    is_flag=True,
    help="Accepted for compatibility: directories are removed with or without it.",
)
@_JSON
@click.pass_context
def unlink(ctx: click.Context, *, paths: tuple[str, ...], force: bool, recursive: bool, as_json: bool) -> int:
    """Remove the file at each PATH, or the directory with everything in it.

    Anyone who has its capability can still open it as long as servers keep its shares: by default forever; on a
    server with expire.enabled, until their leases expire. On a terminal, rm reminds you of `grid undo`; with --json,
    the removed capability is under `removed`. If one path does not exist, the others are removed all the same.
    """
    from grid.cli.arguments.remote import parse_remote
    from grid.cli.arguments.replacing import open_undo
    from grid.cli.arguments.tree import open_tree_directory, run_in_tree
    from grid.errors import GridError

    directory, aliases = open_tree_directory(ctx)
    remotes = [parse_remote(path, aliases) for path in paths]
    for remote in remotes:
        if not remote.names:
            raise GridError(f"{remote.shown} is not an entry of a directory, so it cannot be removed")
    undo = open_undo(ctx, "removed")

    async def operation(tree: Tree) -> Exception | None:
        missing = None
        for remote in remotes:
            before = len(undo.taken)
            error = await _remove(tree, remote, undo)
            missing = missing or error
            if error is None or force:
                _report_removal(remote, undo, before, is_there=error is None, as_json=as_json)
        return missing

    try:
        missing = run_in_tree(directory, operation)
    finally:
        if not as_json:
            undo.tell()
    if missing is not None and not force:
        raise missing
    return 0


async def _remove(tree: Tree, path: RemotePath, undo: Undo) -> Exception | None:
    """Remove one entry. Returns an error, rather than raising it, if there is nothing at the path."""
    from grid.cli.arguments.replacing import edit_entry
    from grid.cli.arguments.tree import nothing_at
    from grid.directory.edits import RemoveChild
    from grid.errors import NoSuchChildError

    try:
        above, name = await tree.parent(path)
    except NoSuchChildError as error:
        return error
    try:
        await edit_entry(above, RemoveChild(name), path, undo)
    except NoSuchChildError:
        return nothing_at(path)
    return None


def _report_removal(path: RemotePath, undo: Undo, before: int, *, is_there: bool, as_json: bool) -> None:
    """Report one removal. before: how many entries `undo` had recorded before it."""
    if as_json:
        click.echo(json.dumps({"event": "unlink", "path": path.shown, "removed": undo.to_json()[before:]}))
    elif is_there:
        # Scripts get 1.20's word; on a terminal, `tell` reports how to undo the removal.
        click.echo("200 OK" if not sys.stdout.isatty() else f"Removed {path.shown}")


async def _may_replace(policy: ReplacePolicy, path: RemotePath, new: Child, there: Child | None) -> bool:
    """Whether the link may be made. It does not ask about an existing directory, which is never replaced."""
    from grid.caps import DirectoryCap
    from grid.cli.arguments.replacing import time_of

    if there is None or (isinstance(there.target, DirectoryCap) and not policy.never):
        return True
    return await policy.permits(path.shown, new_time=time_of(new.metadata), old_time=time_of(there.metadata))


def _report(event: str, words: str, path: RemotePath, undo: Undo, *, is_done: bool, as_json: bool) -> None:
    """Report the result: `OK` as in 1.20, or a sentence on a terminal."""
    if as_json:
        line = {"event": event, "path": path.shown, "skipped": not is_done, "replaced": undo.to_json()}
        click.echo(json.dumps(line))
        return
    if not is_done:
        click.echo(f"{path.shown} already exists; not replaced", err=True)
        return
    click.echo("OK" if not sys.stdout.isatty() else f"{words} {path.shown}")
    undo.tell()


def _target(old: RemotePath, new: RemotePath) -> RemotePath:
    """The path of the new link: inside a directory it keeps its name; GridError if it has none."""
    from grid.errors import GridError

    if not new.inside:
        return new
    if not old.names:
        raise GridError("a bare capability has no file name: give one at the end of TO")
    return new.with_name(old.names[-1])


def _translating_conflicts(run: Callable[[], bool]) -> bool:
    """Return the result of `run`; if a directory is in the way, report it in 1.20's words."""
    from grid.errors import ExistingChildError

    try:
        return run()
    except ExistingChildError as error:
        raise ExistingChildError("You can't overwrite a directory with a file", name=error.name) from error


@click.command(
    epilog=examples(
        "grid mkdir work:docs/2026",
        "grid mkdir --format MDMF work:many-files",
        "grid mkdir     # not linked anywhere: keep the capability it prints",
    )
)
@click.argument("path", metavar="[PATH]", required=False, default="", shell_complete=complete_remote)
@click.option(
    "--format",
    "format_name",
    type=click.Choice(["SDMF", "MDMF"], case_sensitive=False),
    help="The format of the directory; default: mutable.format in the configuration.",
)
@click.option(
    "-p",
    "--parents",
    is_flag=True,
    help="Accepted for compatibility: missing directories above are made with or without it.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the result as one line of JSON.")
@click.pass_context
def mkdir(ctx: click.Context, *, path: str, format_name: str | None, parents: bool, as_json: bool) -> int:
    """Create the directory PATH, with any missing directories above it, and print its capability.

    Without PATH, or with only `ALIAS:`, the new directory is linked nowhere: keep its capability. If PATH, below an
    alias, is already a directory, nothing changes.
    """
    from grid.caps import DirectoryCap
    from grid.cli.arguments.remote import parse_remote, require_new_names
    from grid.cli.arguments.tree import open_tree_directory, run_in_tree
    from grid.errors import ChildOfWrongTypeError
    from grid.mutable.share.geometry import FormatName

    directory, aliases = open_tree_directory(ctx)
    names = parse_remote(path, aliases) if path.strip(" ") else None
    if names is not None:
        require_new_names(names.names, names.shown)
    chosen: FormatName | None = None if format_name is None else "mdmf" if format_name.upper() == "MDMF" else "sdmf"

    async def operation(tree: Tree) -> DirectoryCap:
        if names is None or not names.names:
            return await tree.store.create_directory(format=chosen)
        await tree.require_meant(names)
        root = tree.store.directory(names.directory)
        try:
            return (await root.make_directories(names.names, format=chosen)).cap
        except ChildOfWrongTypeError:
            raise ChildOfWrongTypeError(
                f"{names.shown}: something on this path is not a directory", name=names.shown
            ) from None

    cap = run_in_tree(directory, operation).to_string()
    click.echo(json.dumps({"event": "mkdir", "cap": cap}) if as_json else cap)
    return 0
