"""`grid cp`: copy files and trees between this machine and the grid, and within the grid. [spec cli 2.6]"""

from __future__ import annotations

import json
import sys
import time
from typing import TYPE_CHECKING, cast

import click

from grid.cli.arguments.completion import complete_local_or_remote
from grid.cli.arguments.replacing import ReplacePolicy, open_undo, replace_options
from grid.cli.terminal.exit_codes import ExitCode
from grid.cli.terminal.failures import tell_problem
from grid.cli.terminal.invocation import examples, invocation, pack_option, progress_options
from grid.cli.terminal.quoting import plain
from grid.cli.transfer.selection import selection_options
from grid.cli.transfer.throttle import bwlimit_option
from grid.plural import counted

if TYPE_CHECKING:
    from grid.cli.connection import Connection
    from grid.cli.terminal.progress import TransferDisplay
    from grid.cli.transfer.copying import Copier
    from grid.transfer.rates import Schedule
    from grid.transfer.selection import Selection

JOBS = 8
"""Files copied in parallel unless --jobs is given."""


class JobsType(click.ParamType[int | str]):
    """A number of jobs, or `auto`. most: the largest number allowed."""

    name = "jobs"

    def __init__(self, most: int = 256) -> None:
        self._most = most

    def convert(self, value: str | int, param: click.Parameter | None, ctx: click.Context | None) -> int | str:
        """Parse the number; an error lists the allowed values."""
        return "auto" if value == "auto" else click.IntRange(1, self._most)(value, param, ctx)


@click.command(
    epilog=examples(
        "grid cp notes.txt report.pdf work:docs/",
        "grid cp -r photos work:",
        "grid cp -r --exclude '*.tmp' --dry-run docs work:",
    )
)
@click.argument("arguments", metavar="FROM... TO", nargs=-1, required=True, shell_complete=complete_local_or_remote)
@click.option("-r", "--recursive", is_flag=True, help="Copy directories with everything in them.")
@click.option("-v", "--verbose", is_flag=True, help="Print on stderr what is done with each file and directory.")
@click.option("--caps-only", is_flag=True, help="Write each file's capability instead of its contents.")
@click.option(
    "--jobs",
    metavar="N",
    type=JobsType(),
    default=JOBS,
    show_default=True,
    help="How many files to copy at once; auto: add more as long as that makes the copy faster.",
)
@pack_option
@selection_options("Copy")
@click.option("--unique", is_flag=True,
              help="Use random keys: each new file is read only once, and equal files get different capabilities.")  # fmt: skip
@bwlimit_option
@replace_options()
@click.option("--dry-run", is_flag=True, help="Print what would be copied and replaced, and change nothing.")
@progress_options
@click.option(
    "--json", "as_json", is_flag=True, help="Print progress as JSON lines on stderr, and the result as one on stdout."
)
@click.pass_context
def cp(
    ctx: click.Context,
    /,
    *,
    arguments: tuple[str, ...],
    recursive: bool,
    verbose: bool,
    caps_only: bool,
    jobs: int | str,
    selection: Selection,
    policy: ReplacePolicy,
    dry_run: bool,
    as_json: bool,
    **others: object,
) -> int:
    """Copy each FROM to TO. A name with a colon is on the grid (ALIAS:PATH or a capability); any other is a local file.

    With -r, a directory is copied under its own name: `grid cp -r photos work:` makes work:photos. Existing files are
    replaced; directories never are. -u compares a local file's time with that of the link on the grid.

    Files whose size and times are unchanged are not copied again: repeat an interrupted copy to continue it. Within the
    grid, immutable files are linked, not transferred. If a file cannot be copied, the others are, with exit code 1.

    PATTERN uses .gitignore syntax: a name matches at any depth; a path such as /letters/*.txt is relative to each
    FROM. A directory that matches stands for everything below it. --exclude wins over --include.
    """
    from grid.cli.terminal.progress import TransferDisplay
    from grid.cli.transfer.copying import FILES_COPIED, Copier, CopyOptions
    from grid.cli.transfer.session import open_endpoints, transfer_session, wants_packs, with_random_keys
    from grid.transfer.jobs import choose_jobs

    unique, bwlimit = bool(others["unique"]), cast("Schedule | None", others["bwlimit"])
    _require_sense(ctx, arguments, policy, dry_run=dry_run, unique=unique)
    with (
        transfer_session(ctx) as session,
        TransferDisplay(as_json=as_json, hidden=invocation(ctx).hides_progress) as display,
    ):
        *sources, target = open_endpoints(session, arguments)
        policy.quiet = display.paused
        options = CopyOptions(
            recursive=recursive,
            caps_only=caps_only,
            jobs=choose_jobs(jobs, display.progress),
            spool=session.directory.temporary_path,
            packs=wants_packs(session, invocation(ctx).packs),
            schedule=bwlimit,
            replace=policy,
            selection=selection,
            dry_run=dry_run,
            undo=open_undo(ctx),
        )

        async def operation(connection: Connection) -> tuple[str, Copier]:
            say = display.say if verbose and not as_json else _say_nothing
            store = await connection.open_store()
            copier = Copier(with_random_keys(store) if unique else store, session.database, display, options, say)
            return await copier.run(sources, target), copier

        done, copier = session.run(operation)
    steps = [] if copier.rehearsal is None else copier.rehearsal.to_json()
    if as_json:
        about = {"planned": steps} if dry_run else {"replaced": copier.undo.to_json()}
        click.echo(json.dumps({**describe_result("cp", display), **about}))
    elif not invocation(ctx).is_quiet:
        for step in steps:
            click.echo(f"would {step['do']} {plain(step['path'])}")
        if dry_run or not display.tally.failed:
            click.echo(_sentence(display) if done == FILES_COPIED and sys.stdout.isatty() else done)
        copier.undo.tell()
    return conclude(display, as_json=as_json)


def _require_sense(
    ctx: click.Context, arguments: tuple[str, ...], policy: ReplacePolicy, *, dry_run: bool, unique: bool
) -> None:
    """Raise UsageError if arguments are missing or contradict each other."""
    if len(arguments) < 2:
        raise click.UsageError("give at least one source and a target")
    if dry_run and policy.ask:
        raise click.UsageError("-i and --dry-run contradict each other: a dry run asks nothing")
    if unique and invocation(ctx).gateway is not None:
        raise click.UsageError("--unique works only without --gateway: a gateway has its own encoding")


def conclude(display: TransferDisplay, *, as_json: bool) -> ExitCode:
    """Summarize failures on stderr and return the exit code."""
    count = display.tally.failed
    if not count:
        return ExitCode.OK
    tell_problem(
        f"{counted(count, 'file')} could not be copied; see the warnings above",
        kind="incomplete",
        code=ExitCode.OTHER,
        as_json=as_json,
    )
    return ExitCode.OTHER


def _sentence(display: TransferDisplay) -> str:
    """The result for people; programs get 1.20's words."""
    tally = display.tally
    more = [f"{count} {word}" for count, word in ((tally.linked, "linked"), (tally.skipped, "already there")) if count]
    return ", ".join([f"{counted(tally.copied, 'file')} copied", *more])


def describe_result(command: str, display: TransferDisplay) -> dict[str, object]:
    """The result as a JSON object."""
    from grid.node.redaction import one_line

    tally = display.tally
    return {
        "event": command,
        "files_copied": tally.copied,
        "files_linked": tally.linked,
        "files_skipped": tally.skipped,
        "directories": tally.directories,
        "failures": [one_line(line) for line in tally.failures],
        "bytes": round(tally.moved_bytes),
        "seconds": round(time.monotonic() - tally.began_at, 3),
    }


def _say_nothing(line: str) -> None:
    """Print nothing, since the run is not verbose."""
