"""`grid backup`: keep immutable snapshots of a local directory. [spec cli 3]"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import TYPE_CHECKING

import click
from attrs import evolve

from grid.cli.arguments.completion import complete_local_or_remote, complete_remote
from grid.cli.commands.cp import JOBS
from grid.cli.snapshots.options import exclude_options, note_options
from grid.cli.terminal.exit_codes import ExitCode
from grid.cli.terminal.invocation import examples, invocation, pack_option, progress_options
from grid.cli.transfer.throttle import Throttle, bwlimit_option
from grid.node.redaction import one_line
from grid.plural import counted

if TYPE_CHECKING:
    from collections.abc import Callable

    from grid.cli.connection import Connection
    from grid.cli.terminal.progress import TransferDisplay
    from grid.cli.transfer.local_tree import ScanRules
    from grid.cli.transfer.snapshot import Archived, Snapshotter
    from grid.cli.transfer.upload import Uploader
    from grid.directory.snapshots import SnapshotNote
    from grid.transfer.rates import Schedule

_CHECKED = " {} files checked, {} directories checked"
"""1.20's words, which programs parse."""

INCOMPLETE = ExitCode.USAGE
"""Exit code 2, which scripts know to mean that the backup is done but incomplete."""


@click.command(
    epilog=examples(
        "grid backup ~/docs work:backups/docs",
        "grid backup --exclude '*.o' --one-file-system / work:backups/root",
        "grid backup --quiet --tag monthly ~/docs work:backups/docs",
    )
)
@click.argument("source", metavar="DIR", shell_complete=complete_local_or_remote)
@click.argument("target", metavar="ALIAS:[PATH]", shell_complete=complete_remote)
@click.option("-v", "--verbose", is_flag=True, help="Print what is done with each file and directory.")
@exclude_options
@note_options
@click.option("--ignore-timestamps", is_flag=True, help="Read every file, even if it seems unchanged.")
@click.option(
    "--jobs",
    metavar="N",
    type=click.IntRange(1, 256),
    default=JOBS,
    show_default=True,
    help="How many files to store at once.",
)
@pack_option
@bwlimit_option
@progress_options
@click.option(
    "--json", "as_json", is_flag=True, help="Print progress as JSON lines on stderr, and the result as one on stdout."
)
@click.pass_context
def backup(
    ctx: click.Context,
    *,
    source: str,
    target: str,
    verbose: bool,
    rules: ScanRules,
    note: SnapshotNote,
    ignore_timestamps: bool,
    jobs: int,
    bwlimit: Schedule | None,
    as_json: bool,
) -> int:
    """Store a snapshot of DIR as Archives/TIME in the target, and link it as Latest.

    Only files that changed since the last backup are read and uploaded. Symbolic links are kept as links; owners, modes,
    times and extended attributes are recorded. Files that cannot be read are left out with a warning, and the exit
    code is 2. The shares of storage nodes below DIR are left out: they are on a grid already. `grid restore` restores a
    snapshot. `grid snapshots` lists them all, and says if the last backup failed.

    PATTERN uses .gitignore syntax: a name matches at any depth; a path such as /letters/*.txt is relative to DIR. A
    .gridignore file has patterns for its own directory and those below it.
    """
    from grid.cli.arguments.remote import require_local_source, require_new_names
    from grid.cli.terminal.progress import TransferDisplay
    from grid.cli.transfer.backup_lock import full_target, lock_backup
    from grid.cli.transfer.session import open_remote_endpoint, own_files, transfer_session, wants_packs
    from grid.node.files import expand_home

    invocation(ctx).is_dated = invocation(ctx).is_quiet
    with (
        transfer_session(ctx) as session,
        TransferDisplay(
            as_json=as_json, hidden=invocation(ctx).hides_progress, is_dated=invocation(ctx).is_quiet
        ) as display,
    ):
        _require_order(source, target)
        endpoint = open_remote_endpoint(session, target)
        require_new_names(endpoint.path, endpoint.shown)
        require_local_source(source, session.aliases)
        report = _Report(display, verbose, as_json, is_quiet=invocation(ctx).is_quiet)

        async def operation(connection: Connection) -> Archived:
            from grid.cli.transfer.snapshot import Snapshotter, back_up
            from grid.cli.transfer.upload import Uploader

            store = await connection.open_store()
            uploader = Uploader(
                store, session.database, display.tally, display.update, follow_links=False,
                trust_times=not ignore_timestamps, packs=wants_packs(session, invocation(ctx).packs),
                throttle=Throttle(store.runtime.clock, bwlimit),
            )  # fmt: skip
            snapshotter = Snapshotter(
                store, uploader, session.database, display, jobs=jobs, warn=display.warn, say=report.say, remark=report.remark,
            )  # fmt: skip
            report.begin(snapshotter, uploader)
            path = str(expand_home(source))
            scanned = evolve(rules, own=own_files(session))
            return await back_up(store, snapshotter, path, endpoint, scanned, report.set_total, note)

        whole = full_target(endpoint.root, endpoint.path)
        with lock_backup(session.directory.private, os.path.abspath(expand_home(source)), whole):
            archived = session.run(operation)
    return report.conclude(archived)


def _require_order(source: str, target: str) -> None:
    """Raise UsageError if the path on the grid comes first, as it does in `grid restore`."""
    if ":" in source.partition("/")[0] and not os.path.lexists(source) and ":" not in target.partition("/")[0]:
        raise click.UsageError("the local directory comes first: grid backup DIR ALIAS:PATH")


class _Report:
    """Prints a backup's results: 1.20's lines, or one line of JSON."""

    def __init__(self, display: TransferDisplay, verbose: bool, as_json: bool, *, is_quiet: bool) -> None:
        self._display = display
        self._verbose = verbose
        self._as_json = as_json
        self._is_quiet = is_quiet
        self._began_at = time.monotonic()
        self._snapshotter: Snapshotter | None = None
        self._uploader: Uploader | None = None
        self.say: Callable[[str], None] = print if verbose and not as_json else _say_nothing

    def remark(self, line: str) -> None:
        """Print what is good to know once, which is no warning."""
        if self._as_json:
            self._display.warn(line)
        elif not self._is_quiet:
            self._display.say(one_line(line))

    def begin(self, snapshotter: Snapshotter, uploader: Uploader) -> None:
        """Set the objects that hold the counts."""
        self._snapshotter, self._uploader = snapshotter, uploader

    def set_total(self, files: int, size: int) -> None:
        """Set the total number of files and bytes."""
        self._display.tally.total_files, self._display.tally.total_bytes = files, size

    def conclude(self, archived: Archived) -> int:
        """Print the summary and return the exit code."""
        assert self._snapshotter is not None and self._uploader is not None
        counts, elapsed_s = self._snapshotter.counts, time.monotonic() - self._began_at
        if self._as_json:
            line = {
                "event": "backup",
                "snapshot": archived.snapshot.to_string(),
                "name": archived.name,
                **counts.to_json(),
                "bytes": round(self._display.tally.moved_bytes),
                "seconds": round(elapsed_s, 3),
            }
            click.echo(json.dumps(line))
        elif not self._is_quiet:
            click.echo(counts.sentence if sys.stdout.isatty() else counts.summary)
            if self._verbose:
                checked = self._uploader.checked, counts.directories_checked
                click.echo(_checked(*checked) if sys.stdout.isatty() else _CHECKED.format(*checked))
            hours, rest = divmod(int(elapsed_s), 3600)
            click.echo(f" backup done, elapsed time: {hours}:{rest // 60:02}:{rest % 60:02}")
        return ExitCode.OK if counts.is_complete else INCOMPLETE


def _checked(files: int, directories: int) -> str:
    return f" {counted(files, 'file')} checked, {counted(directories, 'directory', 'directories')} checked"


def _say_nothing(line: str) -> None:
    """Print nothing, since the run is not verbose."""
