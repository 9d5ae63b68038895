"""`grid check` and `grid repair`: check the health of files and directories, and recreate missing shares."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from grid.cli.arguments.cap_argument import cap_file_option
from grid.cli.arguments.completion import complete_remote
from grid.cli.terminal.exit_codes import ExitCode
from grid.cli.terminal.invocation import examples, invocation, progress_options
from grid.cli.terminal.quoting import plain
from grid.plural import counted

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from grid.caps import KnownCap
    from grid.cli.arguments.remote import RemotePath
    from grid.cli.connection import Connection
    from grid.directory.store import Health, RepairResult, Store

    Act = Callable[[Store, KnownCap], Awaitable[tuple[ExitCode, str]]]
    """Processes an object; returns the exit code and the text to print."""


MAX_ABSENT = 10
"""Names listed of servers that did not answer."""


@click.command(
    epilog=examples(
        "grid check work:docs/report.pdf",
        "grid check --verify --repair work:docs/report.pdf",
        "grid check --deep --add-lease work:",
    )
)
@click.argument("arguments", metavar="[PATH|-]...", nargs=-1, shell_complete=complete_remote)
@cap_file_option
@click.option("--verify", is_flag=True, help="Read and validate every share instead of only counting them.")
@click.option(
    "--repair", is_flag=True, help="Recreate shares that are missing or damaged, and spread those on too few servers."
)
@click.option("--add-lease", is_flag=True, help="Add or renew this client's lease on every share.")
@click.option("--deep", is_flag=True, help="Also check everything below a directory, like `grid deep-check`.")
@progress_options
@click.option(
    "--json", "--raw", "as_json", is_flag=True, help="Print a line of JSON for each object, in Tahoe-LAFS's format."
)
@click.pass_context
def check(
    ctx: click.Context,
    *,
    arguments: tuple[str, ...],
    cap_file: str | None,
    verify: bool,
    repair: bool,
    add_lease: bool,
    deep: bool,
    as_json: bool,
) -> int:
    """Check the health of each PATH, a path or a capability; - reads one from stdin.

    Without PATH: the alias `tahoe`, if you have one.

    All of them are checked. The exit code is 0 if every share is there (with --repair: afterwards), 1 if some are
    missing, and 4 if something can no longer be read.
    """
    from grid.cli.commands.deep_check import CheckOptions, check_deeply

    arguments = _texts(arguments, cap_file)
    if deep:
        options = CheckOptions(verify=verify, repair=repair, add_lease=add_lease, raw=as_json)
        return check_deeply(ctx, arguments, options)

    async def examine(store: Store, cap: KnownCap) -> tuple[ExitCode, str]:
        if repair and cap.storage_index is not None:
            if add_lease:
                await store.check(cap, add_lease=True)
            return _tell_repair(await store.repair(cap), as_json)
        before = await store.check(cap, verify=verify, add_lease=add_lease)
        lines = [json.dumps(before.to_json())] if as_json else [*describe_check(before), *_absent(store, before)]
        return health_code(before), "\n".join(lines)

    return _for_each(ctx, arguments, as_json, examine)


@click.command(
    epilog=examples(
        "grid repair work:docs/report.pdf", "grid repair --cap-file report.cap", "grid repair --force work:draft.txt"
    )
)
@click.argument("arguments", metavar="PATH|-|--cap-file FILE", nargs=-1, shell_complete=complete_remote)
@cap_file_option
@progress_options
@click.option("--json", "as_json", is_flag=True, help="Print the result as one line of JSON, in Tahoe-LAFS's format.")
@click.option(
    "--force", is_flag=True, help="Repair a mutable file even if that discards a newer version that cannot be read."
)
@click.pass_context
def repair(ctx: click.Context, *, arguments: tuple[str, ...], cap_file: str | None, as_json: bool, force: bool) -> int:
    """Verify every share of a file or directory, and recreate those that are missing or damaged.

    PATH is a path or a capability; - reads one from stdin. For an immutable file, a verify capability is enough; for a
    mutable file, you need its write capability. The exit code is 0 if every share is good afterwards.
    """

    async def repair_one(store: Store, cap: KnownCap) -> tuple[ExitCode, str]:
        return _tell_repair(await store.repair(cap, force=force), as_json)

    texts = _texts(arguments, cap_file)
    if len(texts) != 1:
        raise click.UsageError("one capability or path at a time")
    return _for_each(ctx, texts, as_json, repair_one)


def health_code(result: Health) -> ExitCode:
    """The exit code for this health."""
    if result.healthy:
        return ExitCode.OK
    return ExitCode.OTHER if result.recoverable else ExitCode.NOT_FOUND


def describe_check(result: Health) -> list[str]:
    """The health in 1.20's words. [spec cli 2.10]"""
    lines = [f"Summary: {result.summary}", f" storage index: {result.storage_index}"]
    found = result.to_json().get("results")
    if not result.storage_index or not isinstance(found, dict):
        return lines
    encoding = f"{found['count-shares-needed']}-of-{found['count-shares-expected']}"
    lines.append(f" good-shares: {found['count-shares-good']} (encoding is {encoding})")
    lines.append(f" wrong-shares: {found['count-wrong-shares']}")
    if result.corrupt:
        lines.append(" corrupt shares:")
        lines += [
            f"  server {server}, SI {result.storage_index}, shnum {share}" for server, share in sorted(result.corrupt)
        ]
    unknown = getattr(result, "incompatible", ())
    if unknown:
        lines.append(f" shares of an unknown version: {len(unknown)}")
    return lines


def _absent(store: Store, result: Health) -> list[str]:
    """A line that names the servers that did not answer, if shares are missing; a gateway does not report them."""
    found = result.to_json().get("results")
    grid = getattr(store, "grid", None)
    if result.healthy or grid is None or not isinstance(found, dict):
        return []
    answered = set(found.get("servers-responding", ()))
    silent = [server.identity for server in grid.servers if server.identity.server_id not in answered]
    # Nicknames are chosen by the servers' operators: shown, never trusted.
    names = sorted(plain(f"{server.nickname or '-'} ({server.server_id[:11]})") for server in silent)
    more = [f"and {len(names) - MAX_ABSENT} more"] if len(names) > MAX_ABSENT else []
    return [f" servers that did not answer: {', '.join([*names[:MAX_ABSENT], *more])}"] if names else []


def describe_repair(result: RepairResult) -> list[str]:
    """The health before the repair and what was done. [spec cli 2.10]"""
    lines = describe_check(result.before)
    if not result.attempted:
        done = "nothing to repair" if result.before.healthy else "repair not attempted"
    elif result.successful:
        done = "repair successful"
    else:
        done = f"repair failed{_why_not(result.after)}"
    return [*lines, f" {done}"]


def _why_not(after: Health) -> str:
    """Say what is still wrong after a repair."""
    found = after.to_json().get("results")
    if not isinstance(found, dict):
        return ""
    good, needed, expected = (found.get(f"count-shares-{word}") for word in ("good", "needed", "expected"))
    if not (isinstance(good, int) and isinstance(needed, int) and isinstance(expected, int)):
        return ""
    if not after.recoverable:
        return f": {counted(good, 'good share is', 'good shares are')} left, and {needed} {'is' if needed == 1 else 'are'} needed"
    return (
        f": {expected - good} of {counted(expected, 'share is', 'shares are')} still missing; no server took more"
        if good < expected
        else ""
    )


def _tell_repair(result: RepairResult, as_json: bool) -> tuple[ExitCode, str]:
    text = json.dumps(result.to_json()) if as_json else "\n".join(describe_repair(result))
    return health_code(result.after), text


def _texts(arguments: tuple[str, ...], cap_file: str | None) -> tuple[str, ...]:
    """The given capabilities and paths; reads `-` and --cap-file."""
    from grid.cli.arguments.cap_argument import take_text

    if cap_file is None and not arguments:
        return ()
    texts = []
    while cap_file is not None or arguments:
        text, arguments = take_text(arguments, cap_file)
        cap_file = None
        texts.append(text)
    return tuple(texts)


def _for_each(ctx: click.Context, texts: Sequence[str], as_json: bool, act: Act) -> int:
    """Process each object; return the highest exit code."""
    from grid.caps import LitCap, has_cap_prefix
    from grid.cli.arguments.remote import parse_remote
    from grid.cli.arguments.tree import known, open_tree, open_tree_directory, parse_paths
    from grid.cli.commands.deep_check import check_each
    from grid.cli.connection import run_connected
    from grid.cli.terminal.progress import ProgressDisplay

    for text in texts:
        if has_cap_prefix(text):
            parse_remote(text, {})  # Reports a malformed capability before anything is opened.
    directory, aliases = open_tree_directory(ctx)
    remotes = parse_paths(tuple(texts), aliases)
    with ProgressDisplay(as_json=as_json, hidden=invocation(ctx).hides_progress) as display:

        async def operation(connection: Connection) -> int:
            async def look(remote: RemotePath) -> int:
                try:
                    if not remote.names and isinstance(remote.root, LitCap):
                        status, text = await act(connection.store_without_servers(), remote.root)
                    else:
                        # Reading the directories of the path does not count as progress.
                        found = known(await (await open_tree(connection)).find(remote), remote.shown)
                        status, text = await act(await connection.open_store(display), found)
                finally:
                    display.stop()
                click.echo(text)
                return status

            return await check_each(remotes, look, as_json=as_json)

        return run_connected(directory, operation)
