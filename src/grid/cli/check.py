"""`grid check` and `grid repair`: how many shares of a file are left, and making new ones."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from grid.cli.cap_argument import cap_file_option
from grid.cli.exit_codes import ExitCode

if TYPE_CHECKING:
    from grid.caps import ChkCap, ChkVerifyCap, LitCap
    from grid.cli.progress import ProgressDisplay
    from grid.immutable.check import CheckResult
    from grid.immutable.repair import RepairResult
    from grid.node.client import Client


@click.command(short_help="Look how many shares of a file are left.")
@click.argument("arguments", metavar="CAP|-", nargs=-1)
@cap_file_option
@click.option("--verify", is_flag=True, help="Read every octet of every share and prove it, not only count them.")
@click.option("--add-lease", is_flag=True, help="Add or renew this client's lease on every share.")
@click.option("--json", "as_json", is_flag=True, help="The result as one line of JSON, as Tahoe-LAFS has it.")
@click.pass_context
def check(
    ctx: click.Context,
    *,
    arguments: tuple[str, ...],
    cap_file: str | None,
    verify: bool,
    add_lease: bool,
    as_json: bool,
) -> int:
    """Look how many shares of a file its servers hold.

    Ends with 0 if there is one of every number, 1 if some are missing, 4 if the file cannot be read any more.
    """
    from grid.cli.client_command import open_client_directory, run_with_client
    from grid.cli.progress import ProgressDisplay

    cap = _take_one_cap(arguments, cap_file)
    with ProgressDisplay(as_json=as_json) as display:

        async def operation(client: Client) -> CheckResult:
            return await _check(client, cap, verify, add_lease, display)

        result = run_with_client(open_client_directory(ctx), operation)
    if as_json:
        click.echo(json.dumps(result.to_json()))
    else:
        click.echo("\n".join(describe_check(result)))
    return health_code(result)


@click.command(short_help="Replace missing and damaged shares of a file.")
@click.argument("arguments", metavar="CAP|-", nargs=-1)
@cap_file_option
@click.option("--json", "as_json", is_flag=True, help="The result as one line of JSON, as Tahoe-LAFS has it.")
@click.pass_context
def repair(ctx: click.Context, *, arguments: tuple[str, ...], cap_file: str | None, as_json: bool) -> int:
    """Check every share of a file, and replace those that are missing or damaged.

    A verify capability is enough. Ends with 0 if there is a good share of every number afterwards.
    """
    from grid.cli.client_command import open_client_directory, run_with_client
    from grid.cli.progress import ProgressDisplay

    cap = _take_one_cap(arguments, cap_file)
    with ProgressDisplay(as_json=as_json) as display:

        async def operation(client: Client) -> RepairResult:
            return await _repair(client, cap, display)

        result = run_with_client(open_client_directory(ctx), operation)
    if as_json:
        click.echo(json.dumps(result.to_json()))
    else:
        click.echo("\n".join(describe_repair(result)))
    return health_code(result.after)


def health_code(result: CheckResult) -> ExitCode:
    """The exit status that says how a file is."""
    if result.healthy:
        return ExitCode.OK
    return ExitCode.OTHER if result.recoverable else ExitCode.NOT_ENOUGH_SHARES


def describe_check(result: CheckResult) -> list[str]:
    """What a person wants to know, in the words of 1.20. [spec cli 2.10]"""
    lines = [f"Summary: {result.summary}", f" storage index: {result.storage_index}"]
    if result.literal:
        return lines
    good = len(result.sharemap)
    lines.append(f" good-shares: {good} (encoding is {result.needed}-of-{result.expected})")
    lines.append(" wrong-shares: 0")
    if result.corrupt:
        lines.append(" corrupt shares:")
        lines += [
            f"  server {server}, SI {result.storage_index}, shnum {share}" for server, share in sorted(result.corrupt)
        ]
    if result.incompatible:
        lines.append(f" shares of a version that is not known: {len(result.incompatible)}")
    return lines


def describe_repair(result: RepairResult) -> list[str]:
    """What a person wants to know, in the words of 1.20. [spec cli 2.10]"""
    lines = describe_check(result.before)
    lines[0] = "Summary: healthy" if result.before.healthy else "Summary: not healthy"
    if result.attempted:
        lines.append(" repair successful" if result.successful else " repair failed")
    return lines


def _take_one_cap(arguments: tuple[str, ...], cap_file: str | None) -> ChkCap | ChkVerifyCap | LitCap:
    from grid.cli.cap_argument import take_cap
    from grid.cli.client_command import require_immutable

    parsed, rest = take_cap(arguments, cap_file)
    if rest:
        raise click.UsageError("one capability at a time")
    return require_immutable(parsed, to_read=False)


async def _check(
    client: Client, cap: ChkCap | ChkVerifyCap | LitCap, verify: bool, add_lease: bool, display: ProgressDisplay
) -> CheckResult:
    from grid.caps import LitCap
    from grid.immutable.check import check as check_file

    return await check_file(
        cap,
        servers=[] if isinstance(cap, LitCap) else await client.servers(),
        runtime=client.runtime,
        verify=verify,
        leases=client.leases if add_lease else None,
        observer=display,
    )


async def _repair(client: Client, cap: ChkCap | ChkVerifyCap | LitCap, display: ProgressDisplay) -> RepairResult:
    from grid.caps import LitCap
    from grid.immutable.repair import repair as repair_file

    return await repair_file(
        cap,
        servers=[] if isinstance(cap, LitCap) else await client.servers(),
        leases=client.leases,
        runtime=client.runtime,
        observer=display,
    )
