"""`grid create introducer|storage|client`: new node directories."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from grid.node.create import Listening

_DIRECTORY = click.argument("directory", metavar="DIR", type=click.Path(file_okay=False))
_NICKNAME = click.option("--nickname", default="", help="How the node is shown to others.")
_PORT = click.option("--port", metavar="ENDPOINT", help="Where to listen, as tcp:PORT[:interface=ADDRESS].")
_LOCATION = click.option("--location", metavar="HINTS", help="What to announce, as tcp:HOST:PORT[,...]; with --port.")
_HOSTNAME = click.option("--hostname", metavar="HOST", help="Announce this host name, and listen on a free port.")
_INTRODUCER = click.option(
    "--introducer", metavar="FURL", required=True,
    help="The introducer's FURL, or the name of a file that holds it (private/introducer.furl).",
)  # fmt: skip


@click.group()
def create() -> None:
    """Make a new node directory."""


@create.command(short_help="Through which clients find servers.")
@_DIRECTORY
@_NICKNAME
@_PORT
@_LOCATION
@_HOSTNAME
def introducer(directory: str, nickname: str, port: str | None, location: str | None, hostname: str | None) -> int:
    """Make an introducer, through which clients find the storage servers of a grid."""
    from grid.node.create import create_introducer

    create_introducer(Path(directory), _listening(port, location, hostname), nickname)
    click.echo(
        f"Introducer created in {directory}; `grid run {directory}` starts it and makes private/introducer.furl."
    )
    return 0


@create.command(short_help="Keeps shares of other people's files.")
@_DIRECTORY
@_INTRODUCER
@_NICKNAME
@_PORT
@_LOCATION
@_HOSTNAME
@click.option("--reserved-space", metavar="SIZE", default="1G", show_default=True, help="Disk space to leave free.")
@click.option("--storage-dir", metavar="DIR", default="", help="Where the shares go; default: DIR/storage.")
def storage(
    *,
    directory: str,
    introducer: str,
    nickname: str,
    port: str | None,
    location: str | None,
    hostname: str | None,
    reserved_space: str,
    storage_dir: str,
) -> int:
    """Make a storage node, which keeps shares of other people's files."""
    from grid.node.create import NewStorage, create_storage

    new = NewStorage(
        listening=_listening(port, location, hostname),
        nickname=nickname,
        introducer_furl=_read_furl(introducer),
        reserved_space=reserved_space,
        directory=storage_dir,
    )
    create_storage(Path(directory), new)
    click.echo(f"Storage node created in {directory}; `grid run {directory}` starts it.")
    return 0


@create.command(short_help="From which files are put and read.")
@_DIRECTORY
@_INTRODUCER
@_NICKNAME
@click.option("--needed", metavar="K", default=3, show_default=True, help="Shares that suffice to read a file.")
@click.option("--happy", metavar="H", default=7, show_default=True, help="Servers that must hold shares of a new file.")
@click.option("--total", metavar="N", default=10, show_default=True, help="Shares made of a new file.")
def client(directory: str, introducer: str, nickname: str, needed: int, happy: int, total: int) -> int:
    """Make a client directory, from which files are put and read."""
    from grid.node.create import NewClient, create_client

    new = NewClient(nickname=nickname, introducer_furl=_read_furl(introducer), needed=needed, happy=happy, total=total)
    create_client(Path(directory), new)
    click.echo(f"Client created in {directory}; use it as `grid -d {directory} put FILE`.")
    return 0


def _listening(port: str | None, location: str | None, hostname: str | None) -> Listening:
    from grid.node.addresses import free_port
    from grid.node.create import Listening

    if hostname is not None and (port is not None or location is not None):
        raise click.UsageError("--hostname cannot be used with --port and --location")
    if (port is None) != (location is None):
        raise click.UsageError("--port and --location must be used together")
    if port is not None and location is not None:
        return Listening(port=port, location=location)
    number = free_port()
    return Listening(port=f"tcp:{number}", location=f"tcp:{hostname}:{number}" if hostname is not None else "AUTO")


def _read_furl(text: str) -> str:
    """The FURL itself, or the first line of the file of that name; ConfigError if there is none."""
    from grid.errors import ConfigError
    from grid.limits import MAX_FURL_LENGTH
    from grid.node.files import expand_home

    if text.startswith("pb://"):
        return text
    furl = ""
    with suppress(FileNotFoundError), expand_home(text).open(encoding="utf-8", errors="replace") as file:
        furl = file.readline(MAX_FURL_LENGTH).strip()
    if not furl:
        raise ConfigError(
            f"{text} is no FURL, which begins with pb://, and no file that holds one; a running introducer has its own "
            "in private/introducer.furl"
        )
    return furl
