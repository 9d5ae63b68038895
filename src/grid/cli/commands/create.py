"""`grid create introducer|storage|client`: new node directories."""

from __future__ import annotations

import json
import shutil
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click
from attrs import evolve
from click.core import ParameterSource

from grid.cli.arguments.completion import complete_file
from grid.cli.commands.invite import check_code, join, server_option
from grid.cli.terminal.invocation import examples, json_option
from grid.cli.terminal.quoting import plain
from grid.plural import counted

if TYPE_CHECKING:
    from collections.abc import Callable

    from grid.discovery.invitation import Invitation
    from grid.node.create import Listening, NewClient, NewStorage

_DIRECTORY = click.argument("directory", metavar="DIR", type=click.Path(file_okay=False))
_NICKNAME = click.option("--nickname", default="", help="The name that others see.")
_PORT = click.option(
    "--port", metavar="ENDPOINT", help="Where to listen, as tcp:PORT[:interface=ADDRESS]; requires --location."
)
_LOCATION = click.option(
    "--location", metavar="HINTS", help="The addresses to announce, as tcp:HOST:PORT[,...]; requires --port."
)
_HOSTNAME = click.option(
    "--hostname",
    metavar="HOST",
    help="Announce this host name, and listen on a free port; instead of --port and --location.",
)
_INTRODUCER = click.option(
    "--introducer", metavar="FURL", shell_complete=complete_file,
    help="The introducer's address (a FURL), or a file that holds it, such as private/introducer.furl. This or --join "
    "is required.",
)  # fmt: skip
_JOIN = click.option(
    "--join", "code", metavar="CODE",
    help="The code that `grid invite` or `tahoe invite` shows on another node of the grid; instead of --introducer. "
    "Needs the extra `invite`.",
)  # fmt: skip


@click.group()
def create() -> None:
    """Create a node directory."""


@create.command(
    short_help="Create an introducer, which tells clients about servers.",
    epilog=examples(
        "grid create introducer --hostname grid.example.org ~/introducer",
        "grid create introducer --port tcp:3458 --location tcp:grid.example.org:3458 ~/introducer",
        "grid run ~/introducer     # makes private/introducer.furl",
    ),
)
@_DIRECTORY
@_NICKNAME
@_PORT
@_LOCATION
@_HOSTNAME
@json_option()
def introducer(
    directory: str, nickname: str, port: str | None, location: str | None, hostname: str | None, as_json: bool
) -> int:
    """Create an introducer, which tells clients about the storage servers of a grid.

    Without --port, --location and --hostname, it listens on a free port and announces the addresses of this machine.
    """
    from grid.node.create import create_introducer

    create_introducer(Path(directory), _listening(port, location, hostname), nickname)
    words = f"Introducer created in {directory}; `grid run {directory}` starts it and makes private/introducer.furl."
    return _report("introducer", directory, words, as_json=as_json)


@create.command(
    short_help="Create a storage node, which holds shares.",
    epilog=examples(
        "grid create storage --introducer introducer.furl --hostname attic.example.org ~/storage",
        "grid create storage --join 7-guitarist-revenge --storage-dir /srv/shares --reserved-space 50G ~/storage",
        "grid run ~/storage",
    ),
)
@_DIRECTORY
@_INTRODUCER
@_JOIN
@server_option
@_NICKNAME
@_PORT
@_LOCATION
@click.option(
    "--hostname",
    metavar="HOST",
    help="Announce this host name, and listen on a free port; instead of --port and --location. It is also the nickname "
    "if you give no other.",
)
@click.option("--reserved-space", metavar="SIZE", default="1G", show_default=True, help="Disk space to leave free.")
@click.option(
    "--storage-dir", metavar="DIR", default="", type=click.Path(file_okay=False),
    help="Where to keep shares; default: DIR/storage.",
)  # fmt: skip
@json_option()
def storage(
    *,
    directory: str,
    introducer: str | None,
    code: str | None,
    nickname: str,
    port: str | None,
    location: str | None,
    hostname: str | None,
    reserved_space: str,
    storage_dir: str,
    as_json: bool,
) -> int:
    """Create a storage node: a server that holds shares.

    Without --port, --location and --hostname, it listens on a free port and announces the addresses of this machine.
    """
    from grid.node.create import NewStorage, create_storage

    new = NewStorage(
        listening=_listening(port, location, hostname),
        nickname=nickname or hostname or "",
        reserved_space=reserved_space,
        directory=storage_dir,
    )
    invitation = _invitation(Path(directory), new, introducer, code)
    if invitation is not None:
        invitation = evolve(invitation, nickname=nickname or invitation.nickname or hostname or "")
        new = evolve(
            new,
            nickname=invitation.nickname,
            introducer_furl=invitation.introducer.to_string(),
            encoding=(invitation.needed, invitation.happy, invitation.total),
        )
    else:
        new = evolve(new, introducer_furl=read_furl(introducer or ""))
    create_storage(Path(directory), new)
    words = f"Storage node created in {directory}; `grid run {directory}` starts it."
    _report("storage", directory, words, invitation, as_json=as_json)
    _warn_of_small_disk(storage_dir or directory, reserved_space, as_json=as_json)
    return 0


@create.command(
    short_help="Create a client, to read and store files.",
    epilog=examples(
        "grid create client --introducer introducer.furl ~/.grid",
        "grid create client --introducer introducer.furl --needed 2 --happy 3 --total 4 ~/.grid",
        "grid create client --join 7-guitarist-revenge ~/.grid",
    ),
)
@_DIRECTORY
@_INTRODUCER
@_JOIN
@server_option
@_NICKNAME
@click.option("--needed", metavar="K", default=3, show_default=True, help="How many shares are needed to read a file.")
@click.option(
    "--happy", metavar="H", default=7, show_default=True, help="How many servers must hold shares of a new file."
)
@click.option("--total", metavar="N", default=10, show_default=True, help="How many shares a new file has.")
@json_option()
def client(
    *,
    directory: str,
    introducer: str | None,
    code: str | None,
    nickname: str,
    needed: int,
    happy: int,
    total: int,
    as_json: bool,
) -> int:
    """Create a client directory, which commands use to read and store files.

    With --join, the nickname and the three numbers come with the invitation, unless you give them; give all three
    numbers or none.
    """
    from grid.mutable.write.staging import encoding_notice
    from grid.node.create import NewClient, create_client

    given = [name for name in ("needed", "happy", "total") if _was_typed(name)]
    if code is not None and len(given) not in (0, 3):
        raise click.UsageError("with --join, give all of --needed, --happy and --total, or none of them")
    new = NewClient(nickname=nickname, needed=needed, happy=happy, total=total)
    invitation = _invitation(Path(directory), new, introducer, code)
    if invitation is not None:
        if given:
            invitation = evolve(invitation, needed=new.needed, happy=new.happy, total=new.total)
        invitation = evolve(invitation, nickname=nickname or invitation.nickname)
        new = NewClient(
            nickname=invitation.nickname,
            introducer_furl=invitation.introducer.to_string(),
            needed=invitation.needed,
            happy=invitation.happy,
            total=invitation.total,
            is_invited=True,
        )
    else:
        new = evolve(new, introducer_furl=read_furl(introducer or ""))
    create_client(Path(directory), new)
    option = "" if _is_default(directory) else f"-d {directory} "
    words = f"Client created in {directory}; use it as `grid {option}put FILE`."
    _report("client", directory, words, invitation, as_json=as_json)
    notice = encoding_notice(new.needed, new.total)
    if notice is not None:
        _warn(f"Note: {notice}.", as_json=as_json)
    return 0


def _invitation(
    directory: Path, new: NewClient | NewStorage, introducer: str | None, code: str | None
) -> Invitation | None:
    """The invitation behind the code; None if an introducer is given instead.

    The code works once. Everything that could fail later is checked before it is used.
    """
    if introducer is not None and code is not None:
        raise click.UsageError("--introducer and --join contradict each other")
    if code is None:
        if introducer is None:
            raise click.UsageError(
                "which grid? Give --join CODE, from `grid invite` on another node, or --introducer FURL"
            )
        if _was_typed("server"):
            raise click.UsageError("--wormhole-server is for --join")
        return None
    from grid.node.create import check_new

    check_code(code)
    check_new(directory, new)
    return join(code)


def _is_default(directory: str) -> bool:
    """Whether commands use that directory without -d."""
    from os import environ

    from grid.cli.terminal.invocation import DEFAULT_DIRECTORY
    from grid.node.files import expand_home

    default = environ.get("GRID_NODE_DIR") or DEFAULT_DIRECTORY
    return expand_home(directory).absolute() == expand_home(default).absolute()


def _was_typed(name: str) -> bool:
    """Whether the option is on the command line, not only in the environment."""
    return click.get_current_context().get_parameter_source(name) is ParameterSource.COMMANDLINE


def _warn_of_small_disk(shares: str, reserved_space: str, *, as_json: bool) -> None:
    """Say if the disk has so little room that the new storage node will accept no shares."""
    from grid.node.files import expand_home
    from grid.node.quantities import parse_size

    try:
        free = shutil.disk_usage(expand_home(Path(shares))).free
    except OSError:
        return  # A folder that is made later, or another disk that is not there yet.
    if free <= parse_size(reserved_space):
        room = f"{free / 10**6:.0f} MB are free on its disk, and {reserved_space} are kept free"
        _warn(
            f"Note: {room}: the node will accept no shares. Lower storage.reserved_space with `grid config set`.",
            as_json=as_json,
        )


def _warn(line: str, *, as_json: bool) -> None:
    click.echo(json.dumps({"event": "warning", "message": line}) if as_json else line, err=True)


def _report(kind: str, directory: str, words: str, invitation: Invitation | None = None, *, as_json: bool) -> int:
    where: dict[str, object] = {"event": "create", "kind": kind, "directory": str(Path(directory).absolute())}
    if invitation is not None:
        numbers = {"needed": invitation.needed, "happy": invitation.happy, "total": invitation.total}
        where["invitation"] = {"nickname": invitation.nickname, "encoding": numbers}
        shares = f"{counted(invitation.total, 'share')}, any {invitation.needed} of which restore it"
        words = f"{words}\nInvited as {plain(invitation.nickname)}. Each file is stored as {shares}."
    click.echo(json.dumps(where) if as_json else words)
    return 0


def _listening(port: str | None, location: str | None, hostname: str | None) -> Listening:
    from grid.node.addresses import free_port
    from grid.node.create import Listening
    from grid.node.quantities import parse_endpoint, parse_hint

    if hostname is not None and (port is not None or location is not None):
        raise click.UsageError("--hostname cannot be used with --port and --location")
    if (port is None) != (location is None):
        raise click.UsageError("--port and --location must be used together")
    if port is not None and location is not None:
        _require_each("--port", port, parse_endpoint)
        _require_each("--location", location, parse_hint)
        return Listening(port=port, location=location)
    if hostname is not None:
        _require_each("--hostname", f"tcp:{hostname}:1", parse_hint)
    number = free_port()
    return Listening(port=f"tcp:{number}", location=f"tcp:{hostname}:{number}" if hostname is not None else "AUTO")


def _require_each(option: str, text: str, parse: Callable[[str], str]) -> None:
    """Raise UsageError unless each comma-separated value is valid; the configuration checks `disabled` itself."""
    try:
        for value in [] if text == "disabled" else text.split(","):
            parse(value.strip())
    except ValueError as problem:
        expected = "expected a host name or address" if option == "--hostname" else str(problem)
        raise click.UsageError(f"{option}: {expected}") from None


def read_furl(text: str) -> str:
    """Return the FURL itself, or the first line of the file with that name; ConfigError if there is none."""
    from grid.errors import ConfigError
    from grid.limits import MAX_FURL_LENGTH
    from grid.node.files import expand_home

    if text.startswith("pb://"):
        return text
    if not text.strip():
        raise ConfigError(
            "the introducer's FURL is empty: give the line that begins with `pb:`, or a file that holds it"
        )
    furl = ""
    with suppress(FileNotFoundError), expand_home(text).open(encoding="utf-8", errors="replace") as file:
        furl = file.readline(MAX_FURL_LENGTH).strip()
    if not furl:
        raise ConfigError(
            # With its slashes, the beginning of a FURL would be redacted like a FURL.
            f"{text} is neither a FURL, a line that begins with `pb:`, nor a file that holds one; a running introducer has "
            "its own in private/introducer.furl"
        )
    return furl
