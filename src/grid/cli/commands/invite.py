"""`grid invite`, and the side of `grid create` that joins: settings of a grid for a one-time code."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, redirect_stdout
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, TypeVar

import click

from grid.cli.terminal.invocation import examples, invocation, json_option
from grid.plural import counted

if TYPE_CHECKING:
    from grid.discovery.invitation import Invitation
    from grid.node.directory import NodeDirectory
    from grid.node.invitations import Meeting
    from grid.ports import Clock
    from grid.wire.locators import Furl

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., object])

SERVER_VARIABLE = "GRID_WORMHOLE_SERVER"
_SERVER_OPTION = "--wormhole-server"


def server_option(command: F) -> F:
    """Add `--wormhole-server`, which both sides must give alike; `named_server` returns it."""

    def note(context: click.Context, parameter: click.Parameter, value: str | None) -> None:
        context.meta[_SERVER_OPTION] = value

    text = (
        "The server of magic-wormhole at which both sides meet: use the same on both (or GRID_WORMHOLE_SERVER); default: "
        "that of Tahoe-LAFS."
    )
    option = click.option(
        _SERVER_OPTION, "server", metavar="URL", envvar=SERVER_VARIABLE, expose_value=False, callback=note, help=text
    )
    return option(command)


def named_server() -> str | None:
    """The server that the running command is to use; None for the default."""
    found: str | None = click.get_current_context().meta[_SERVER_OPTION]
    return found


@click.command(
    epilog=examples(
        "grid invite laptop",
        "grid -d ~/introducer invite --needed 2 --happy 3 --total 3 attic",
        "grid invite --wormhole-server ws://grid.example.org:4000/v1 --timeout 600 office",
    )
)
@click.argument("nickname")
@click.option("--needed", metavar="K", type=int, help="How many shares the new node needs to read a file.")
@click.option("--happy", metavar="H", type=int, help="How many servers must hold shares of its new files.")
@click.option("--total", metavar="N", type=int, help="How many shares its new files have.")
@server_option
@click.option(
    "--timeout", metavar="SECONDS", type=click.IntRange(1, 86400), default=3600, show_default=True,
    help="How long to wait until the code is used.",
)  # fmt: skip
@json_option("Print the code as one line of JSON, and another when the code is used.")
@click.pass_context
def invite(
    ctx: click.Context,
    *,
    nickname: str,
    needed: int | None,
    happy: int | None,
    total: int | None,
    timeout: int,
    as_json: bool,
) -> int:
    """Invite a new node to the grid of this node: print a code that works once, and wait until it is used.

    On the other machine, `grid create client DIR --join CODE` or `grid create storage DIR --join CODE` makes a node with
    the introducer, the numbers of shares, and NICKNAME. The three numbers default to this node's; a note says so if the
    grid has too few servers for them. Tahoe-LAFS nodes can join, too. Give the code only to the person you invite: the
    first one who uses it can use the grid. Ctrl-C withdraws it.

    Both machines need the extra `invite`.
    """
    from grid.cli.terminal.quoting import plain
    from grid.discovery.invitation import Invitation, parse_nickname
    from grid.node.directory import open_directory

    address = _checked_server()
    directory = open_directory(Path(invocation(ctx).node_directory))
    introducer = _introducer(directory, as_json=as_json)
    counts = _share_counts(directory, needed, happy, total)
    tell = partial(_tell_of_few_servers, directory, introducer, counts[1], is_chosen=happy is not None, as_json=as_json)
    invitation = Invitation(
        nickname=_understood("NICKNAME", parse_nickname, nickname),
        introducer=introducer,
        needed=counts[0],
        happy=counts[1],
        total=counts[2],
    )
    with _library_kept_quiet() as out:

        def show(code: str) -> None:
            if as_json:
                line = {"event": "invitation", "nickname": nickname, "code": code, "server": address}
                click.echo(json.dumps(line), file=out)
                return
            there = "" if named_server() is None else f" {_SERVER_OPTION} {address}"
            click.echo(f"Invitation code for {plain(nickname)}: {code}", file=out)
            click.echo(f"To join, on the other machine: grid create client DIR --join {code}{there}", err=True)
            click.echo(f"                           or: grid create storage DIR --join {code}{there}", err=True)
            click.echo("Waiting until the code is used; Ctrl-C withdraws it.", err=True)

        _meet(address, lambda meeting: _offer(meeting, invitation, show, timeout, tell))
    if as_json:
        click.echo(json.dumps({"event": "invite", "nickname": nickname}))
    else:
        click.echo(f"{plain(nickname)} has the settings of this grid.")
    return 0


async def _offer(
    meeting: Meeting,
    invitation: Invitation,
    show: Callable[[str], None],
    wait_s: float,
    tell: Callable[[Clock], Coroutine[Any, Any, None]],
) -> None:
    """Offer the invitation. tell: started once the code is shown, and canceled when that ends."""
    from grid.node.invitations import offer
    from grid.runtime import Tasks

    telling = Tasks()

    def show_and_tell(code: str) -> None:
        show(code)
        telling.start(tell(meeting.clock))

    try:
        await offer(meeting, invitation, show_and_tell, wait_s)
    finally:
        telling.cancel()


def join(code: str) -> Invitation:
    """Take the invitation behind a code; GridError, UsageError."""
    from grid.discovery.invitation import parse_code
    from grid.node.invitations import accept

    address = _checked_server()
    parsed = _understood("--join", parse_code, code)
    with _library_kept_quiet():
        return _meet(address, lambda meeting: accept(meeting, parsed))


def check_code(code: str) -> None:
    """Raise UsageError unless the code and the server could be; ConfigError if the library is missing."""
    from grid.discovery.invitation import parse_code
    from grid.node.invitations import require_library

    _understood("--join", parse_code, code)
    _checked_server()
    require_library()


def _meet(server: str, task: Callable[[Meeting], Coroutine[Any, Any, T]]) -> T:
    from grid.cli.terminal.runner import run_task
    from grid.node.invitations import Meeting
    from grid.runtime import ReactorClock

    return run_task(lambda reactor: task(Meeting(reactor=reactor, clock=ReactorClock(reactor), server=server)))


def _checked_server() -> str:
    from grid.discovery.invitation import DEFAULT_SERVER, parse_server

    return _understood(_SERVER_OPTION, parse_server, named_server() or DEFAULT_SERVER)


def _understood(name: str, parse: Callable[[str], str], text: str) -> str:
    """What parse makes of a word of the command line; UsageError."""
    from grid.errors import FormatError

    try:
        return parse(text)
    except FormatError as problem:
        raise click.UsageError(f"{name}: {problem}") from None


def _introducer(directory: NodeDirectory, *, as_json: bool) -> Furl:
    """The introducer to invite to, with a warning if only this machine can reach it; ConfigError."""
    from grid.errors import ConfigError
    from grid.node.introducers import introducer_of_grid

    settings = directory.settings
    if not settings.reveal_address or settings.tcp_handler != "tcp":
        raise ConfigError(
            f"{directory.path} must not reveal its address, which the wormhole server would see: pass on the introducer's FURL "
            "another way, for --introducer"
        )
    found = introducer_of_grid(directory)
    if found.hints and all(
        hint.removeprefix("tcp:").startswith(("127.", "localhost:", "[::1]")) for hint in found.hints
    ):
        _note(
            "the introducer announces only addresses of this machine: nodes elsewhere cannot reach it", as_json=as_json
        )
    return found


async def _tell_of_few_servers(
    directory: NodeDirectory, introducer: Furl, happy: int, clock: Clock, *, is_chosen: bool, as_json: bool
) -> None:
    """Say if the grid has fewer servers now than the new node needs. is_chosen: an option named that number."""
    from grid.cli.arguments.share_counts import fitting_options
    from grid.node.server_count import count_servers

    count = await count_servers(directory.settings, introducer, clock)
    if count is None or count >= happy:
        return
    has = f"this grid has {counted(count, 'server')} now"
    if is_chosen or not count:
        _note(f"{has}: the new node can store files once there are {happy} (--happy)", as_json=as_json)
        return
    _note(
        f"{has}, and the new node needs {happy} to store a file: press Ctrl-C, and invite with numbers that fit: "
        f"{fitting_options(count)}",
        as_json=as_json,
    )


def _note(text: str, *, as_json: bool) -> None:
    click.echo(json.dumps({"event": "warning", "message": text}) if as_json else f"Note: {text}.", err=True)


def _share_counts(
    directory: NodeDirectory, needed: int | None, happy: int | None, total: int | None
) -> tuple[int, int, int]:
    from grid.node.create import require_share_counts

    given = directory.settings.client
    found = (
        given.needed if needed is None else needed,
        given.happy if happy is None else happy,
        given.total if total is None else total,
    )
    require_share_counts(*found, is_invited=happy is None and needed is None)
    return found


@contextmanager
def _library_kept_quiet() -> Iterator[TextIO]:
    """Stdout for us alone: the library prints there if a server sends what it does not understand."""
    out = sys.stdout
    with open(os.devnull, "w", encoding="utf-8") as nowhere, redirect_stdout(nowhere):
        yield out
