"""`grid restore`: bring a snapshot back, with times and modes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from grid.cli.arguments.replacing import ReplacePolicy, replace_options
from grid.cli.commands.cp import JOBS, conclude, describe_result
from grid.plural import counted

if TYPE_CHECKING:
    from grid.cli.connection import Connection


@click.command(short_help="Bring a snapshot back to this machine.")
@click.argument("source", metavar="ALIAS:PATH")
@click.argument("target", metavar="DIR")
@click.option(
    "--jobs", metavar="N", type=click.IntRange(1, 256), default=JOBS, show_default=True, help="Files fetched at once."
)
@replace_options()
@click.option("--json", "as_json", is_flag=True, help="Progress as JSON lines on stderr, the result as one on stdout.")
@click.pass_context
def restore(ctx: click.Context, *, source: str, target: str, jobs: int, policy: ReplacePolicy, as_json: bool) -> int:
    """Put what the directory ALIAS:PATH holds into DIR, with the times and modes that `grid backup` noted.

    After `grid backup tree work:home`, `grid restore work:home/Latest tree` brings the newest snapshot back, and
    work:home/Archives/TIME an older one. What is in DIR already and has not changed since it was restored is not
    fetched again; other files of the same name are replaced (see -n, -i and -u), and further ones stay.
    """
    from grid.cli.arguments.local_names import require_local_target
    from grid.cli.transfer.display import TransferDisplay
    from grid.cli.transfer.restoring import restore_tree
    from grid.cli.transfer.session import open_remote_place, transfer_session
    from grid.node.files import expand_home

    with transfer_session(ctx) as session, TransferDisplay(as_json=as_json) as display:
        place = open_remote_place(session, source)
        require_local_target(target, session.aliases)
        policy.quiet = display.paused

        async def operation(connection: Connection) -> None:
            store = await connection.open_store()
            path = str(expand_home(target))
            await restore_tree(store, session.database, display, place, path, jobs=jobs, replace=policy)

        session.run(operation)
    if as_json:
        click.echo(json.dumps(describe_result("restore", display)))
    elif not display.tally.failures:
        tally = display.tally
        click.echo(
            f"{counted(tally.copied, 'file')} restored ({tally.skipped} {'was' if tally.skipped == 1 else 'were'} there),"
            f" {counted(tally.directories, 'directory', 'directories')}"
        )
    return conclude(display, as_json=as_json)
