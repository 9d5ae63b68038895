"""`grid stop`: the end of a node that runs somewhere else, for example in the background."""

from __future__ import annotations

import click

from grid.cli.terminal.invocation import invocation


@click.command(short_help="Stop a node; requests to its web gateway may end first.")
@click.argument("directory", metavar="[DIR]", required=False, type=click.Path(file_okay=False))
@click.option("--now", is_flag=True, help="Cut the requests that are under way.")
@click.pass_context
def stop(ctx: click.Context, *, directory: str | None, now: bool) -> int:
    """Stop the node of DIR (default: that of -d), and wait until it has ended.

    Its web gateway takes no more connections from then on, and lets the requests that are under way end, for as long as
    `[node] web.drain_timeout` says (60 s). Ctrl-C ends the waiting, not the node.
    """
    from grid.node.directory import require_node_directory
    from grid.node.files import expand_home
    from grid.node.patience import patience_s
    from grid.node.running import stop as stop_node

    # The pid is all it takes: the configuration may be broken or gone.
    path = expand_home(directory if directory is not None else invocation(ctx).node_directory).absolute()
    found = stop_node(path, patience_s=patience_s(path), say=lambda line: click.echo(line, err=True), at_once=now)
    if not found:
        require_node_directory(path)
    click.echo("the node has ended" if found else "no node was running")
    return 0
