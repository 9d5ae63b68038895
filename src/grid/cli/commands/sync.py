"""`grid sync`: makes one directory like another, locally or on the grid, with the engine of `grid transfer`."""

from __future__ import annotations

import os

import click

from grid.cli.arguments.completion import complete_local_or_remote
from grid.cli.commands.cp import JOBS, conclude
from grid.cli.commands.transfer import (
    comparison_options,
    describe_outcome,
    is_remote,
    print_as_json,
    require_meant,
    run_request,
    show_outcome,
)
from grid.cli.terminal.invocation import examples, invocation, progress_options
from grid.cli.transfer.selection import selection_options
from grid.transfer.choices import Comparison
from grid.transfer.selection import Selection


@click.command(
    epilog=examples(
        "grid sync ~/docs work:docs",
        "grid sync --delete --dry-run ~/docs work:docs",
        "grid sync --delete work:docs work:copy",
    )
)
@click.argument("source", metavar="SOURCE", shell_complete=complete_local_or_remote)
@click.argument("target", metavar="TARGET", shell_complete=complete_local_or_remote)
@click.option(
    "--delete",
    is_flag=True,
    help="Also remove files of TARGET that SOURCE does not have; on the grid, `grid undo` brings them back.",
)
@click.option("--dry-run", is_flag=True, help="Print what would be sent and removed, and change nothing.")
@selection_options("Copy and remove")
@comparison_options("checksum", "size")
@click.option(
    "--jobs", metavar="N", type=click.IntRange(1, 256), default=JOBS, show_default=True,
    help="How many files to copy at once.",
)  # fmt: skip
@progress_options
@click.option(
    "--json", "as_json", is_flag=True, help="Print progress as JSON lines on stderr, and the result as one on stdout."
)
@click.pass_context
def sync(
    ctx: click.Context,
    /,
    *,
    source: str,
    target: str,
    delete: bool,
    dry_run: bool,
    selection: Selection,
    comparison: Comparison,
    jobs: int,
    as_json: bool,
) -> int:
    """Copy new and changed files below SOURCE into TARGET. Each is a directory, local or on the grid.

    Only files whose size or time differs are sent; within the grid, files are linked. On the grid, equal files are
    stored once, as with `grid transfer --convergent`. Run the same command again to resume after an interruption. Only
    --delete removes files, and only after everything else has succeeded.

    PATTERN uses .gitignore syntax: a name matches at any depth; a path such as /letters/*.txt is relative to SOURCE and
    TARGET. Files that the patterns leave out are neither sent nor removed. --exclude wins over --include.
    """
    from grid.cli.terminal.progress import TransferDisplay
    from grid.transfer.opening import Request
    from grid.transfer.outcome import Plan

    for name in (source, target):
        if "://" in name:
            raise click.UsageError(
                f"{name}: `grid sync` takes local directories and the grid; `grid transfer` takes URLs"
            )
    require_meant(ctx, [source], target)
    plan = Plan(transfers=jobs, delete=delete, dry_run=dry_run, selection=selection, comparison=comparison)
    request = Request(sources=(_whole(source),), target=_whole(target), plan=plan)
    with TransferDisplay(as_json=as_json, hidden=invocation(ctx).hides_progress) as display:
        outcome = run_request(ctx, request, display, unique=False)
    if as_json:
        print_as_json(describe_outcome("sync", outcome))
    elif not invocation(ctx).is_quiet:
        show_outcome(outcome)
    return conclude(display, as_json=as_json)


def _whole(text: str) -> str:
    """The absolute local path, so the journals of two directories cannot be confused."""
    return text if is_remote(text) else os.path.abspath(os.path.expanduser(text))
