"""`grid deep-check`, and `grid check --deep`: the health of everything below a directory. [spec cli 2.10]"""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import click

from grid.cli.arguments.completion import complete_remote
from grid.cli.terminal.exit_codes import ExitCode
from grid.cli.terminal.invocation import examples, invocation, progress_options
from grid.plural import counted
from grid.values import frozen

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from grid.cli.arguments.remote import RemotePath
    from grid.cli.arguments.tree import Tree
    from grid.cli.terminal.survey_progress import SurveyDisplay
    from grid.directory.deep_check import CheckCounters, Checked, HealthCounts


@frozen(kw_only=True)
class CheckOptions:
    """What to do with each object, and what to print."""

    verify: bool = False
    repair: bool = False
    add_lease: bool = False
    raw: bool = False
    verbose: bool = False


@click.command(
    "deep-check",
    epilog=examples(
        "grid deep-check work:",
        "grid deep-check --repair --add-lease work:",
        "grid deep-check --json work: | tail -n 1",
    ),
)
@click.argument("paths", metavar="[PATH]...", nargs=-1, shell_complete=complete_remote)
@click.option("--verify", is_flag=True, help="Read and validate every share instead of only counting them.")
@click.option(
    "--repair", is_flag=True, help="Recreate shares that are missing or damaged, and spread those on too few servers."
)
@click.option("--add-lease", is_flag=True, help="Add or renew this client's lease on every share.")
@progress_options
@click.option("-r", "--raw", "--json", "raw", is_flag=True, help="Print a line of JSON for each object.")
@click.option("-v", "--verbose", is_flag=True, help="Print a line for each object.")
@click.pass_context
def deep_check(
    ctx: click.Context,
    *,
    paths: tuple[str, ...],
    verify: bool,
    repair: bool,
    add_lease: bool,
    raw: bool,
    verbose: bool,
) -> int:
    """Check the health of everything below each PATH; without PATH, below the alias `tahoe`, if you have one.

    All of them are checked. The exit code is 0 if everything is healthy (with --repair: afterwards), 4 if something can
    no longer be read, and 1 otherwise.
    """
    options = CheckOptions(verify=verify, repair=repair, add_lease=add_lease, raw=raw, verbose=verbose)
    return check_deeply(ctx, paths, options)


def check_deeply(ctx: click.Context, paths: tuple[str, ...], options: CheckOptions) -> int:
    """Check below each path in turn; return the highest exit code."""
    from grid.cli.arguments.tree import open_tree_directory, parse_paths, run_in_tree
    from grid.cli.terminal.survey_progress import SurveyDisplay

    directory, aliases = open_tree_directory(ctx)
    remotes = parse_paths(paths, aliases)
    hidden = invocation(ctx).hides_progress or options.raw
    verb = "verifying" if options.verify else "checking"

    async def operation(tree: Tree) -> int:
        async def look(remote: RemotePath) -> int:
            with SurveyDisplay(verb, hidden=hidden) as display:
                return await _check_below(tree, remote, options, display)

        return await check_each(remotes, look, as_json=options.raw)

    return run_in_tree(directory, operation)


async def check_each(
    remotes: Sequence[RemotePath], look: Callable[[RemotePath], Awaitable[int]], *, as_json: bool
) -> int:
    """Look at each path in turn, and return the highest exit code. An error at one path is reported; the others go on.

    Raises the error of the only path, and one that the others would meet too: unreachable servers, an interruption.
    """
    from grid.cli.terminal.exit_codes import exit_code
    from grid.cli.terminal.failures import tell_failure
    from grid.errors import GridError

    highest = 0
    for remote in remotes:
        try:
            code = await look(remote)
        except GridError as error:
            if len(remotes) == 1 or exit_code(error) in (ExitCode.UNREACHABLE, ExitCode.INTERRUPTED):
                raise
            code = tell_failure(error, as_json=as_json, about=remote.shown)
        highest = max(highest, code)
    return highest


async def _check_below(tree: Tree, remote: RemotePath, options: CheckOptions, display: SurveyDisplay) -> int:
    from grid.cli.surveys import CheckFlags
    from grid.cli.terminal.failures import tell_unread
    from grid.directory.deep_check import CheckCounters, good_shares
    from grid.directory.walk import Visited
    from grid.errors import GridError

    lost: list[tuple[str, GridError]] = []

    def unreadable(visited: Visited, error: GridError) -> None:
        if not visited.path:
            raise error
        lost.append(("/".join(visited.path), error))

    root = await tree.find_directory(remote)
    counters = CheckCounters()
    stats: list[Mapping[str, object]] = []
    flags = CheckFlags(verify=options.verify, add_lease=options.add_lease, repair=options.repair)
    literal = 0
    async for checked in tree.survey.check(root.cap, flags, stats.append, unreadable):
        counters.add(checked)
        literal += checked.health is not None and not checked.counts
        display.take(checked.visited, shares=good_shares(checked))
        _tell(checked, options, display.echo)
    display.stop()
    if options.raw:
        click.echo(json.dumps({"type": "stats", "stats": stats[0]}))
    else:
        click.echo("\n".join(_totals(counters, literal, options.repair)))
    tell_unread(lost, as_json=options.raw)
    left = counters.after if options.repair else counters.before
    if left.unrecoverable:
        return ExitCode.NOT_FOUND
    return ExitCode.OTHER if left.unhealthy or lost or counters.failed_checks else ExitCode.OK


def _tell(checked: Checked, options: CheckOptions, echo: Callable[[str], None]) -> None:
    from grid.cli.terminal.exit_codes import exit_code
    from grid.cli.terminal.failures import describe, kind_of, tell_problem
    from grid.cli.terminal.quoting import quote

    path = "/".join(checked.visited.path) or "<root>"
    if checked.error is not None:
        message = f"{quote(path)}: {describe(checked.error)}"
        error = checked.error
        tell_problem(message, kind=kind_of(error), code=exit_code(error), path=path, as_json=options.raw)
    if options.raw:
        click.echo(json.dumps(_unit(checked, options.repair)))
        return
    health = checked.health
    if options.verbose:
        summary = "unknown" if health is None else health.summary
        if options.repair and health is not None:
            summary = "healthy" if health.healthy else "not healthy"
        echo(f"{quote(path)}: {summary}")
    if health is not None:
        for server, share in sorted(health.corrupt):
            echo(f" corrupt: server {server}, SI {health.storage_index}, shnum {share}")
    if checked.repair is not None and checked.repair.attempted:
        echo(" repair successful" if checked.repair.successful else " repair failed")


def _unit(checked: Checked, repair: bool) -> dict[str, object]:
    from grid.directory.node_json import describe_unit

    visited = checked.visited
    unit = describe_unit(visited.path, visited.target, visited.cap)
    if not checked.counts:
        literal: dict[str, object] = {"storage-index": ""}
        if repair:
            return unit | {"check-and-repair-results": literal | {"repair-attempted": False}}
        return unit | {"check-results": literal | {"results": {"healthy": True}}}
    if checked.error is not None:
        unit["error"] = type(checked.error).__name__
    if repair and checked.repair is not None:
        return unit | {"check-and-repair-results": checked.repair.to_json()}
    return unit if checked.health is None else unit | {"check-results": checked.health.to_json()}


def _totals(counters: CheckCounters, literal: int, repair: bool) -> list[str]:
    """The summary lines. literal: number of literal files, which are always healthy and which 1.20 counts here."""
    before, after = counters.before, counters.after
    checked, attempted = counters.objects_checked + literal, counters.repairs_attempted
    objects, repairs = f"{checked} objects", f"{attempted} repairs"  # 1.20's words, which programs parse.
    if sys.stdout.isatty():
        objects, repairs = counted(checked, "object"), counted(attempted, "repair")
    done = f"done: {objects} checked"
    if not repair:
        return [f"{done}, {before.healthy + literal} healthy, {before.unhealthy} unhealthy", *_crowded(before, repair)]
    successful = counters.repairs_successful
    return [
        done,
        f" pre-repair: {before.healthy + literal} healthy, {before.unhealthy} unhealthy",
        f" {repairs} attempted, {successful} successful, {counters.repairs_unsuccessful} failed",
        f" post-repair: {after.healthy + literal} healthy, {after.unhealthy} unhealthy",
        *_crowded(after, repair),
    ]


def _crowded(counts: HealthCounts, repair: bool) -> list[str]:
    """A line of our own about healthy objects on too few servers, and what helps; none if there are none."""
    if not counts.crowded:
        return []
    helps = "start more servers, or make room on full ones, then repeat this"
    if not repair:
        helps = "`grid deep-check --repair` spreads them"
        if not counts.spreadable:
            helps = "no other server takes a share now; start more servers, or make room on full ones"
    return [f" {counts.crowded} healthy but spread over too few servers: {helps}"]
