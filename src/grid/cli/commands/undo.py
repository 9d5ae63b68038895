"""`grid undo`: reverts changes that commands made to directories of the grid."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from grid.cli.terminal.invocation import examples
from grid.plural import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from grid.cli.arguments.tree import Tree
    from grid.cli.undo.changes import Change, ChangedLink
    from grid.cli.undo.journal import Journal
    from grid.cli.undo.undoing import Undone
    from grid.directory.pack import Child

MOST_LINES = 20
"""Entries listed individually."""


@click.command(
    epilog=examples(
        "grid undo            # the last change",
        "grid undo --list     # what can be undone",
        "grid undo 12         # the change with that number",
    )
)
@click.argument("number", metavar="[N]", required=False, type=click.IntRange(1, 2**53 - 1))
@click.option("--list", "is_list", is_flag=True, help="List the changes that can be undone, the newest first.")
@click.option("--force", is_flag=True, help="Undo the change even if its entries have changed since.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as one line of JSON.")
@click.pass_context
def undo(ctx: click.Context, *, number: int | None, is_list: bool, force: bool, as_json: bool) -> int:
    """Undo the last change to directories on the grid, or change number N: link again what it removed or replaced,
    and move back what it moved.

    The last 100 changes made on this machine with rm, mv, ln, put, cp, forget, sync, transfer, watch, pack, unpack and
    repack are kept, with up to 10,000 entries each; --list shows those of the current client directory. If an entry
    has changed since, nothing is undone. What `put` wrote into an existing mutable file cannot be undone. Servers
    keep the contents, by default forever; a server with expire.enabled deletes them after their leases expire.
    """
    from grid.cli.arguments.remote import RemotePath
    from grid.cli.arguments.replacing import open_undo
    from grid.cli.arguments.tree import open_tree_directory, run_in_tree
    from grid.cli.undo.journal import Journal, client_of, journal_path
    from grid.cli.undo.undoing import Undoing

    if is_list and (number is not None or force):
        raise click.UsageError("--list cannot be used with N or --force")
    journal = Journal(journal_path())
    client = client_of(ctx)
    changes = [change for change in journal.changes() if change.client == client]
    if is_list:
        _list(changes, as_json=as_json)
        return 0
    change = _choose(changes, number)
    home, _ = open_tree_directory(ctx)
    replaced = open_undo(ctx)

    def note(link: ChangedLink, there: Child | None) -> None:
        argument = f"{link.directory.to_string()}/{link.name}"
        path = RemotePath(root=link.directory, names=(link.name,), shown=link.shown, argument=argument)
        replaced.note(link.directory, path, there, None if link.old is None else link.old.target)

    async def operation(tree: Tree) -> list[Undone]:
        return await Undoing(tree.store, change.links, force, note).run()

    done = run_in_tree(home, operation)
    _drop(journal, change, as_json=as_json)
    if as_json:
        links = [{"path": each.shown, "action": each.action} for each in done]
        line = {"event": "undo", **_describe(change), "links": links, "replaced": replaced.to_json()}
        click.echo(json.dumps(line))
        return 0
    _tell(change, done)
    replaced.tell()
    return 0


def _drop(journal: Journal, change: Change, *, as_json: bool) -> None:
    """Remove the change from the journal; a warning if that fails, for it is undone all the same."""
    from grid.cli.terminal.failures import tell_warning
    from grid.errors import ConfigError

    try:
        journal.drop(change)
    except ConfigError as error:
        tell_warning(f"change {change.number} was undone, but is still listed: {error}", as_json=as_json)


def _choose(changes: Sequence[Change], number: int | None) -> Change:
    """The change of this number, or the last one; NoSuchChildError."""
    from grid.errors import NoSuchChildError

    if not changes:
        raise NoSuchChildError("there is nothing to undo", name="")
    if number is None:
        return changes[-1]
    for change in changes:
        if change.number == number:
            return change
    raise NoSuchChildError(f"there is no change {number}; `grid undo --list` shows what can be undone", name="")


def _describe(change: Change) -> dict[str, object]:
    return {"number": change.number, "time": _when(change).replace(" ", "T"), "command": change.command}


def _when(change: Change) -> str:
    """The change's time in UTC."""
    try:
        moment = datetime.fromtimestamp(change.time, UTC)
    except (OverflowError, ValueError, OSError):
        return "-"
    return moment.strftime("%Y-%m-%d %H:%M:%SZ")


def _list(changes: Sequence[Change], *, as_json: bool) -> None:
    from grid.cli.terminal.columns import table
    from grid.cli.terminal.quoting import plain

    newest = list(reversed(changes))
    if as_json:
        found = [{**_describe(change), "paths": [link.shown for link in change.links]} for change in newest]
        click.echo(json.dumps({"event": "undo-list", "changes": found}))
        return
    rows = []
    for change in newest:
        paths = [plain(link.shown) for link in change.links[:1]]
        more = f" and {len(change.links) - 1} more" if len(change.links) > 1 else ""
        rows.append((str(change.number), _when(change), plain(change.command), "".join(paths) + more))
    for line in table(("CHANGE", "TIME", "COMMAND", "ENTRIES"), rows) if rows else ():
        click.echo(line)
    click.echo(counted(len(rows), "change"), err=True)


def _tell(change: Change, done: Sequence[Undone]) -> None:
    from grid.cli.terminal.quoting import plain

    click.echo(f"Undid change {change.number}: {plain(change.command)} of {_when(change)}")
    for each in done[:MOST_LINES]:
        click.echo(f"  {each.action}: {plain(each.shown)}")
    if len(done) > MOST_LINES:
        click.echo(f"  and {len(done) - MOST_LINES} more")
