"""`grid watch`: stores new files of a folder, once or continuously."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import time
from typing import TYPE_CHECKING

import click
from attrs import evolve

from grid.cli.arguments.completion import complete_local_or_remote
from grid.cli.commands.cp import JOBS, conclude
from grid.cli.commands.transfer import describe_faults, observer_of, print_as_json, require_meant
from grid.cli.terminal.exit_codes import ExitCode
from grid.cli.terminal.failures import describe, tell_problem
from grid.cli.terminal.invocation import examples, invocation, progress_options
from grid.cli.terminal.quoting import plain
from grid.cli.transfer.selection import selection_options
from grid.cli.transfer.throttle import bwlimit_option
from grid.plural import counted
from grid.values import frozen

if TYPE_CHECKING:
    from grid.cli.terminal.progress import TransferDisplay
    from grid.transfer.ends import Entry
    from grid.transfer.journal import Journal
    from grid.transfer.outcome import Observer, Outcome
    from grid.transfer.rates import Schedule
    from grid.transfer.selection import Selection
    from grid.transfer.status import JournalStatus
    from grid.transfer.watching import Settling


@frozen(kw_only=True)
class _Options:
    """The options of a watch."""

    folder: str
    target: str
    settle: float
    every: float
    transfers: int
    selection: Selection
    verify: bool
    unique: bool
    bwlimit: Schedule | None


@click.command(
    epilog=examples(
        "grid watch /data/instrument work:runs                       # until you stop it",
        "grid watch --once --settle 60 /data/instrument work:runs    # from cron",
        "grid watch --status /data/instrument work:runs",
    )
)
@click.argument("folder", metavar="FOLDER", type=click.Path(), shell_complete=complete_local_or_remote)
@click.argument("target", metavar="TARGET", shell_complete=complete_local_or_remote)
@click.option("--settle", metavar="SECONDS", type=click.FloatRange(0), default=10.0, show_default=True,
              help="Store a file once nothing has written to it for this long.")  # fmt: skip
@click.option("--every", metavar="SECONDS", type=click.FloatRange(0.1), default=5.0, show_default=True,
              help="How often to look for new files.")  # fmt: skip
@click.option("--once", is_flag=True, help="Store the files that are complete now, then exit.")
@click.option("--status", is_flag=True, help="Show which files are stored, in progress and failed, and change nothing.")
@click.option("--transfers", "--jobs", "transfers", metavar="N", type=click.IntRange(1, 256), default=JOBS,
              show_default=True, help="How many files to store at once.")  # fmt: skip
@selection_options("Store")
@click.option(
    "--verify",
    is_flag=True,
    help="On a grid, ask the servers whether all shares are there, at first of every stored file, then of each new one, "
    "and store again those that lack some. On other targets, read each new file back.",
)
@click.option(
    "--unique",
    is_flag=True,
    help="Use random keys: each file is read only once, but equal files are stored separately.",
)
@bwlimit_option
@progress_options
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="Print a line of JSON for each file that is stored, and for each pass that did something.",
)
@click.pass_context
def watch(ctx: click.Context, /, *, folder: str, once: bool, status: bool, as_json: bool, **options: object) -> int:
    """Store every file that appears below FOLDER in TARGET, as soon as it is complete.

    A file counts as complete when nothing has written to it for some seconds. Files that change later are stored again.
    Nothing is ever removed, neither from FOLDER nor from TARGET. TARGET is ALIAS:PATH, a capability, or any other
    target of `grid transfer`; object stores and SFTP need the extra `transfer`.

    The watch keeps a journal: after a crash or a full disk, start it again, and it resumes. `--status` reads the
    journal, even while the watch runs.

    PATTERN uses .gitignore syntax: a name matches at any depth; a path such as /letters/*.txt is relative to FOLDER.
    --exclude wins over --include.
    """
    given = _Options(folder=os.path.abspath(os.path.expanduser(folder)), **options)  # type: ignore[arg-type]
    require_meant(ctx, [folder], given.target)
    if status:
        return _tell_status(ctx, given, as_json=as_json)
    from grid.cli.terminal.progress import TransferDisplay

    with TransferDisplay(as_json=as_json, hidden=invocation(ctx).hides_progress) as display:
        report = _Report(display, as_json=as_json, is_quiet=invocation(ctx).is_quiet)
        try:
            asyncio.run(_run(ctx, given, report, once=once))
        except asyncio.CancelledError:
            # SIGTERM is the normal way to end a watch.
            return ExitCode.INTERRUPTED if once else _conclude_watch(report, as_json=as_json)
    return conclude(display, as_json=as_json)


def _conclude_watch(report: _Report, *, as_json: bool) -> int:
    """The exit code of a watch that was ended: an error if something is left to store although it was tried."""
    if not report.missing:
        return ExitCode.OK
    tell_problem(
        f"not everything is stored: {report.missing}; start the watch again to continue",
        kind="incomplete",
        code=ExitCode.OTHER,
        as_json=as_json,
    )
    return ExitCode.OTHER


async def _run(ctx: click.Context, given: _Options, report: _Report, *, once: bool) -> None:
    """Watch until cancelled, or make one pass. Raises the errors of opening the ends and of the first pass."""
    from grid.cli.commands.transfer import EndOpener
    from grid.runtime import collect_garbage
    from grid.transfer.grid_end import GridEnd
    from grid.transfer.journal import Journal, journal_path
    from grid.transfer.local_end import LocalEnd
    from grid.transfer.opening import limit, open_target, require_apart
    from grid.transfer.outcome import Plan
    from grid.transfer.traits import identity_of, keep_times
    from grid.transfer.watching import FolderWatch, Settling, Watched

    task = asyncio.current_task()
    assert task is not None
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    opener = EndOpener(ctx, unique=given.unique, packs=False)
    target = open_target(given.target, opener.open)
    collect_garbage()
    is_grid = isinstance(target, GridEnd)
    plan = Plan(
        mode="stream",
        transfers=given.transfers,
        verify=given.verify and not is_grid,
        keeps_times=keep_times(target),
        selection=given.selection,
    )
    try:
        require_apart([LocalEnd(given.folder)], target, plan)
        journal = Journal(journal_path([given.folder], identity_of(target)))
        try:
            settling = Settling(given.settle)
            watched = Watched(
                folder=given.folder,
                target=target,
                journal=journal,
                plan=plan,
                settling=settling,
                check=target.check if given.verify and isinstance(target, GridEnd) else None,
                slow=limit(given.bwlimit),
            )
            watch = FolderWatch(watched, report.observer(journal))

            def tell(outcome: Outcome) -> None:
                report.tell(outcome, settling)
                opener.end_change()

            try:
                if once:
                    report.conclude(await watch.once(), settling)
                else:
                    await watch.run(given.every, tell)
            finally:
                report.missing = watch.missing
        finally:
            journal.close()
    finally:
        await target.close()
        await opener.close()


class _Report:
    """Prints stored files, and each pass that did something."""

    def __init__(self, display: TransferDisplay, *, as_json: bool, is_quiet: bool) -> None:
        self._display, self._as_json, self._is_quiet = display, as_json, is_quiet
        self.missing = ""

    def observer(self, journal: Journal) -> Observer:
        """An observer that shows progress, and notes in the journal which files are being stored."""
        return evolve(
            observer_of(self._display),
            began=lambda entry: journal.note_under_way(entry, time.time()),
            left=journal.note_left,
            stored=self._note_stored,
        )

    def _note_stored(self, entry: Entry) -> None:
        if self._as_json:
            click.echo(json.dumps({"event": "stored", "name": entry.name, "size": entry.size}))
        elif not self._is_quiet:
            with self._display.paused():
                click.echo(plain(entry.name))

    def tell(self, outcome: Outcome, settling: Settling) -> None:
        """Report one pass of a continuous watch."""
        if self._as_json and (outcome.copied or outcome.linked or outcome.failures):
            print_as_json(_describe_pass(outcome, settling))

    def conclude(self, outcome: Outcome, settling: Settling) -> None:
        """Report the only pass."""
        for name, error in outcome.failures:
            text = describe(error)
            self._display.fail(text if name in text else f"{name}: {text}", is_kept=False)
        if self._as_json:
            print_as_json(_describe_pass(outcome, settling))
        elif not self._is_quiet:
            parts = [f"{counted(outcome.copied + outcome.linked, 'file')} stored", f"{outcome.unchanged} unchanged"]
            if settling.waiting_count:
                parts.append(f"{settling.waiting_count} not complete yet")
            click.echo(", ".join(parts))


def _describe_pass(outcome: Outcome, settling: Settling) -> dict[str, object]:
    return {
        "event": "watch",
        "files_stored": outcome.copied + outcome.linked,
        "files_unchanged": outcome.unchanged,
        "files_waiting": settling.waiting_count,
        "bytes": outcome.sent_bytes,
        **describe_faults(outcome),
    }


def _tell_status(ctx: click.Context, given: _Options, *, as_json: bool) -> int:
    from grid.cli.commands.transfer import EndOpener
    from grid.transfer.journal import journal_path
    from grid.transfer.opening import open_source
    from grid.transfer.status import read_status
    from grid.transfer.traits import identity_of

    target = open_source(given.target, EndOpener(ctx, unique=given.unique).open)  # It connects to nothing.
    found = read_status(journal_path([given.folder], identity_of(target)))
    if as_json:
        click.echo(json.dumps(_status_to_json(found)))
        return ExitCode.OK
    click.echo("The watch is running." if found.is_running else "No watch is running.")
    click.echo(
        f"{counted(found.done, 'file')} stored, {found.stored} to be linked,"
        f" {len(found.under_way)} in progress, {found.failed} failed"
    )
    for each in found.under_way:
        size = "" if each.size is None else f", {counted(each.size, 'byte')}"
        click.echo(f"in progress for {max(0, round(time.time() - each.began_at))} s: {plain(each.name)}{size}")
    for name, why in found.failures:
        click.echo(f"failed: {plain(why if name in why else f'{name}: {why}')}")
    return ExitCode.OK


def _status_to_json(found: JournalStatus) -> dict[str, object]:
    return {
        "event": "status",
        "is_running": found.is_running,
        "files_stored": found.done,
        "files_to_be_linked": found.stored,
        "files_failed": found.failed,
        "failures": [{"name": name, "why": why} for name, why in found.failures],
        "under_way": [{"name": each.name, "size": each.size, "began_at": each.began_at} for each in found.under_way],
    }
