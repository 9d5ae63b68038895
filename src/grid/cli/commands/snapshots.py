"""`grid snapshots` and `grid forget`: list a backup's snapshots, and remove old ones."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, TypeVar

import click

from grid.cli.arguments.completion import complete_remote
from grid.cli.terminal.exit_codes import ExitCode
from grid.cli.terminal.invocation import examples, invocation, progress_options
from grid.cli.terminal.quoting import plain
from grid.plural import counted

if TYPE_CHECKING:
    from grid.cli.arguments.tree import Tree
    from grid.cli.snapshots.catalog import Catalog
    from grid.cli.snapshots.retention import Duration, Policy, Verdict
    from grid.cli.transfer.backup_lock import UnfinishedBackup
    from grid.directory.snapshots import Snapshot

F = TypeVar("F", bound=Callable[..., object])

_JSON = click.option("--json", "as_json", is_flag=True, help="Print the result as one line of JSON.")


def filter_options(command: F) -> F:
    """Options that select snapshots by what backups recorded."""
    for option, name, metavar, text in (
        ("--tag", "tags", "TAG", "Only snapshots with this tag; repeat to require several tags."),
        ("--host", "hosts", "NAME", "Only snapshots of this machine; repeat to allow several machines."),
    ):
        command = click.option(option, name, metavar=metavar, multiple=True, help=text)(command)
    return command


@click.command(
    epilog=examples(
        "grid snapshots work:backups/docs",
        "grid snapshots --host laptop --max-age 26h work:backups/docs",
        "grid snapshots --json work:backups/docs | jq '.snapshots[-1].name'",
    )
)
@click.argument("path", metavar="ALIAS:[PATH]", shell_complete=complete_remote)
@filter_options
@click.option(
    "--max-age", "max_age", metavar="DURATION",
    help="Exit with 1, and say why, if the newest of these snapshots is incomplete, none that is complete was made within "
    "this time, as in 26h or 7d, or the last backup from this client directory failed.",
)  # fmt: skip
@progress_options
@_JSON
@click.pass_context
def snapshots(
    ctx: click.Context, *, path: str, hosts: tuple[str, ...], tags: tuple[str, ...], max_age: str | None, as_json: bool
) -> int:
    """List the snapshots that `grid backup` stored in ALIAS:PATH, the oldest first.

    Times are in UTC. Files and sizes are those of the whole snapshot, although what it shares with others is stored
    only once. A dash stands for what Tahoe-LAFS, or an older version of Grid, did not record. If the last
    backup from this client directory stored no snapshot, a warning says why.

    With --max-age, the exit code tells whether the backup works. If several machines back up there, check each with --host.
    """
    from grid.cli.snapshots.retention import find_problems

    limit = None if max_age is None else _duration(max_age, "--max-age")
    catalog, unfinished, now = _read(ctx, path, as_json=as_json)
    found = catalog.select(hosts, tags)
    problems = [] if limit is None else find_problems(found, limit, now)
    failed = [each.sentence for each in unfinished if not each.is_running]
    code = ExitCode.OTHER if problems or (limit is not None and failed) else ExitCode.OK
    if as_json:
        event = {
            "event": "snapshots",
            "path": catalog.path.shown,
            "snapshots": [_describe(snapshot, catalog) for snapshot in found],
            "unfinished": _describe_unfinished(unfinished),
            "problems": None if limit is None else problems + failed,
        }
        click.echo(json.dumps(event))
        return code
    for line in _listing(found, catalog):
        click.echo(line)
    if not invocation(ctx).is_quiet:
        click.echo(counted(len(found), "snapshot"), err=True)
    for problem in problems:
        click.echo(f"WARNING: {plain(problem)}", err=True)
    _warn(unfinished, is_quiet=invocation(ctx).is_quiet)
    return code


@click.command(
    epilog=examples(
        "grid forget --keep-daily 7 --keep-weekly 5 --keep-monthly 12 --dry-run work:backups/docs",
        "grid forget --keep-within 30d --keep-tag keep work:backups/docs",
        "grid forget work:backups/docs 2026-01-31_12:00:00Z",
    )
)
@click.argument("path", metavar="ALIAS:[PATH]", shell_complete=complete_remote)
@click.argument("names", metavar="[SNAPSHOT]...", nargs=-1)
@click.option("--keep-last", metavar="N", help="Keep the newest N snapshots.")
@click.option("--keep-hourly", metavar="N", help="Keep the newest snapshot of each of N hours.")
@click.option("--keep-daily", metavar="N", help="Keep the newest snapshot of each of N days.")
@click.option("--keep-weekly", metavar="N", help="Keep the newest snapshot of each of N weeks.")
@click.option("--keep-monthly", metavar="N", help="Keep the newest snapshot of each of N months.")
@click.option("--keep-yearly", metavar="N", help="Keep the newest snapshot of each of N years.")
@click.option(
    "--keep-within",
    metavar="DURATION",
    help="Keep snapshots made within this time before the newest, as in 1y6m7d12h.",
)
@click.option("--keep-tag", "keep_tags", metavar="TAG", multiple=True, help="Keep snapshots with this tag.")
@filter_options
@click.option("-n", "--dry-run", is_flag=True, help="Only print what would be removed, and why the others stay.")
@_JSON
@click.pass_context
def forget(
    ctx: click.Context,
    /,
    *,
    path: str,
    names: tuple[str, ...],
    keep_within: str | None,
    keep_tags: tuple[str, ...],
    hosts: tuple[str, ...],
    tags: tuple[str, ...],
    dry_run: bool,
    as_json: bool,
    **counts: str | None,
) -> int:
    """Remove snapshots from the backup in ALIAS:PATH: those you name, or those that no --keep option keeps.

    A snapshot stays if any --keep option keeps it. N counts only hours, days, weeks, months or years that have a
    snapshot, and may be `unlimited`; if fewer than N have one, the oldest snapshot stays as well. The snapshots of each
    machine and directory are counted separately, and at least one of them stays, and so does each that is dated in the
    future, because a clock was wrong. A snapshot that you name is removed even then.

    `grid undo` brings removed snapshots back. Servers keep the contents, by default forever, and anyone with the
    capability can read them; a server with expire.enabled deletes them after their leases expire.
    """
    from grid.cli.arguments.remote import parse_remote
    from grid.cli.arguments.replacing import open_undo
    from grid.cli.arguments.tree import open_tree_directory, run_in_tree
    from grid.cli.snapshots.retention import Verdict, apply_policy

    policy = _policy(counts, keep_within, keep_tags)
    if names and not policy.is_empty:
        raise click.UsageError("name snapshots, or give --keep options, but not both")
    if not names and policy.is_empty:
        raise click.UsageError("say what to keep, as in `--keep-daily 7`, or name the snapshots to remove")
    home, aliases = open_tree_directory(ctx)
    remote = parse_remote(path, aliases)
    undo = open_undo(ctx, "removed")

    async def operation(tree: Tree) -> tuple[Catalog, list[Verdict]]:
        from grid.cli.snapshots.catalog import read_catalog, remove_snapshots

        catalog = await read_catalog(tree, remote)
        selected = catalog.select(hosts, tags)
        if names:
            chosen = {catalog.find(name).name for name in names}
            verdicts = [Verdict(each, () if each.name in chosen else ("not named",)) for each in selected]
        else:
            now = datetime.fromtimestamp(tree.store.runtime.clock.unix_time(), UTC)
            verdicts = apply_policy(selected, policy, now)
            _require_some_kept(verdicts)
        if not dry_run:
            gone = [each.snapshot for each in verdicts if not each.is_kept]
            await remove_snapshots(tree.store, catalog, gone, undo)
        return catalog, verdicts

    catalog, verdicts = run_in_tree(home, operation)
    _report(catalog, verdicts, is_dry_run=dry_run, as_json=as_json, is_quiet=invocation(ctx).is_quiet)
    return 0


def _report(catalog: Catalog, verdicts: Sequence[Verdict], *, is_dry_run: bool, as_json: bool, is_quiet: bool) -> None:
    kept, removed = [each for each in verdicts if each.is_kept], [each for each in verdicts if not each.is_kept]
    if as_json:
        line = {
            "event": "forget",
            "path": catalog.path.shown,
            "dry_run": is_dry_run,
            "kept": [{"name": each.snapshot.name, "reasons": list(each.reasons)} for each in kept],
            "removed": [{"name": each.snapshot.name} for each in removed],
        }
        click.echo(json.dumps(line))
        return
    if is_quiet:
        return
    for each in verdicts:
        word = "keep  " if each.is_kept else "remove"
        reasons = f"  ({', '.join(each.reasons)})" if each.reasons else ""
        click.echo(f"{word}  {each.snapshot.name}{reasons}")
    words = "would be removed" if is_dry_run else "removed"
    click.echo(f"{counted(len(removed), 'snapshot')} {words}, {len(kept)} kept")


def _read(ctx: click.Context, path: str, *, as_json: bool) -> tuple[Catalog, list[UnfinishedBackup], datetime]:
    """The snapshots, the backups that stored none, and the time; tells of these backups also if the servers cannot be
    reached.
    """
    from grid.cli.arguments.remote import parse_remote
    from grid.cli.arguments.tree import open_tree_directory, run_in_tree
    from grid.cli.snapshots.catalog import read_catalog
    from grid.cli.transfer.backup_lock import full_target, read_unfinished
    from grid.errors import GridError

    home, aliases = open_tree_directory(ctx)
    remote = parse_remote(path, aliases)
    unfinished = read_unfinished(home.private, full_target(remote.root, remote.names))

    async def operation(tree: Tree) -> tuple[Catalog, float]:
        return await read_catalog(tree, remote), tree.store.runtime.clock.unix_time()

    try:
        catalog, now = run_in_tree(home, operation)
    except GridError:
        if as_json and unfinished:
            invocation(ctx).error_details["unfinished"] = _describe_unfinished(unfinished)
        elif not as_json:
            _warn(unfinished, is_quiet=invocation(ctx).is_quiet)
        raise
    known = {snapshot.note.directory for snapshot in catalog.snapshots}
    mine = [each for each in unfinished if each.directory in known or os.path.isdir(each.directory)]
    return catalog, mine, datetime.fromtimestamp(now, UTC)


def _warn(unfinished: Sequence[UnfinishedBackup], *, is_quiet: bool) -> None:
    for each in unfinished:
        if not each.is_running:
            click.echo(f"WARNING: {plain(each.sentence)}", err=True)
        elif not is_quiet:
            click.echo(plain(each.sentence), err=True)


def _policy(counts: Mapping[str, str | None], within: str | None, tags: Sequence[str]) -> Policy:
    """The policy of the options; UsageError for an invalid number or duration."""
    from grid.cli.snapshots.retention import RULES, UNLIMITED, Policy

    numbers = {}
    for rule in RULES:
        text = counts[f"keep_{rule}"]
        if text is None:
            continue
        if text != "unlimited" and not (text.isascii() and text.isdecimal() and int(text[:10]) > 0 and len(text) < 10):
            raise click.UsageError(f"--keep-{rule} takes a number from 1, or `unlimited`, not {text!r}")
        numbers[rule] = UNLIMITED if text == "unlimited" else int(text)
    duration = None if within is None else _duration(within, "--keep-within")
    return Policy(counts=numbers, within=duration, tags=frozenset(tags))


def _duration(text: str, option: str) -> Duration:
    """The duration that the option was given; UsageError."""
    from grid.cli.snapshots.retention import Duration
    from grid.errors import GridError

    try:
        return Duration.parse(text)
    except GridError as problem:
        raise click.UsageError(f"{option}: {problem}") from None


def _require_some_kept(verdicts: Sequence[Verdict]) -> None:
    """Raise GridError if the policy would keep no snapshot of some machine and directory."""
    from grid.errors import GridError

    kept = {each.snapshot.group for each in verdicts if each.is_kept}
    for each in verdicts:
        if each.snapshot.group not in kept:
            where = "" if not each.snapshot.note.directory else f" of {plain(each.snapshot.note.directory)}"
            raise GridError(f"no snapshot{where} would stay; name the snapshots if you want to remove them all")


def _describe_unfinished(unfinished: Sequence[UnfinishedBackup]) -> list[dict[str, object]]:
    return [
        {
            "directory": each.directory,
            "began": each.began_at,
            "problem": each.problem or None,
            "running": each.is_running,
        }
        for each in unfinished
    ]


def _describe(snapshot: Snapshot, catalog: Catalog) -> dict[str, object]:
    note = snapshot.note
    return {
        "name": snapshot.name,
        "time": snapshot.made_at.isoformat().replace("+00:00", "Z"),
        "host": note.host or None,
        "directory": note.directory or None,
        "tags": list(note.tags),
        "files": note.files,
        "bytes": note.size,
        "complete": note.is_complete,
        "latest": snapshot.cap == catalog.latest,
    }


def _listing(found: Sequence[Snapshot], catalog: Catalog) -> list[str]:
    from grid.cli.terminal.columns import shown_size, table

    if not found:
        return []
    # Without changes, several are the same directory: people mean the newest of them.
    newest = next((each for each in reversed(catalog.snapshots) if each.cap == catalog.latest), None)
    rows = []
    for snapshot in found:
        note = snapshot.note
        marks = ["latest"] * (snapshot is newest) + ["incomplete"] * (not note.is_complete)
        rows.append(
            (
                snapshot.name,
                "-" if note.files is None else str(note.files),
                shown_size(note.size),
                plain(note.host) or "-",
                plain(" ".join(note.tags)) or "-",
                plain(note.directory) or "-",
                f"({', '.join(marks)})" if marks else "",
            )
        )
    return table(("SNAPSHOT", "FILES", "SIZE", "HOST", "TAGS", "DIRECTORY", ""), rows, numbers=("FILES", "SIZE"))
