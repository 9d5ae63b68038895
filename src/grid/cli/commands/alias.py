"""`grid alias export` and `grid alias import`: save aliases encrypted, and load them again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click
from attrs import evolve

from grid.cli.arguments.completion import complete_file
from grid.cli.terminal.invocation import examples, json_option
from grid.cli.terminal.quoting import plain
from grid.plural import counted

if TYPE_CHECKING:
    from grid.cli.arguments.recovery import Recovery

_PASSPHRASE = click.option(
    "--passphrase-file", "passphrase_file", metavar="FILE", type=click.Path(dir_okay=False),
    help="Take the passphrase from the first line of FILE instead of asking.",
)  # fmt: skip


@click.group()
def alias() -> None:
    """Export or import your aliases, the names of your directories, in an encrypted file."""


@alias.command(
    "export",
    short_help="Write the aliases to an encrypted file.",
    epilog=examples(
        "grid alias export aliases.age",
        "grid alias export --sheet sheet.txt          # to print",
        "grid alias export --passphrase-file secret.txt aliases.age",
    ),
)
@click.argument("file", metavar="FILE", type=click.Path(dir_okay=False))
@click.option(
    "--sheet",
    is_flag=True,
    help="Write a recovery sheet: a page of text to print, which contains the encrypted aliases.",
)
@_PASSPHRASE
@json_option()
@click.pass_context
def export_command(ctx: click.Context, *, file: str, sheet: bool, passphrase_file: str | None, as_json: bool) -> int:
    """Write to FILE, encrypted with a passphrase, what leads to your directories: the aliases of this client directory,
    its introducers, their servers, and its numbers of shares.

    If you lose your aliases, you lose your directories. `grid alias import FILE` brings them back on another machine, and
    creates the client directory there. `age --decrypt FILE` shows the contents without Grid; for a sheet, give it only the
    lines from BEGIN to END. An existing FILE is not replaced.

    The passphrase needs at least 12 characters. The command needs the extra `recovery`.
    """
    from datetime import UTC, datetime

    from grid.cli.arguments.aliases import read_aliases, usable_aliases
    from grid.cli.arguments.recovery import Recovery, encrypt, make_sheet, pack_recovery
    from grid.cli.connection import open_client_directory
    from grid.errors import ConfigError, GridError
    from grid.node.files import write_if_missing
    from grid.node.introducers import read_introducers
    from grid.node.known_servers import known_servers

    directory = open_client_directory(ctx)
    caps, problem = usable_aliases(read_aliases(directory))
    if problem is not None:
        raise problem
    if not caps:
        raise GridError("there are no aliases to export; `grid create-alias` creates one")
    path = Path(file)
    if path.exists():
        raise ConfigError(f"{file} already exists: name a new file")
    passphrase = _passphrase(passphrase_file, is_new=True)
    settings = directory.settings.client
    recovery = Recovery(
        aliases=caps,
        introducers=[furl.to_string() for furl in read_introducers(directory).values()],
        encoding=(settings.needed, settings.happy, settings.total),
        servers=known_servers(directory),
    )
    armored = encrypt(pack_recovery(recovery), passphrase)
    date = datetime.now(UTC).strftime("%Y-%m-%d")
    text = make_sheet(armored, list(caps), date) if sheet else armored
    if not write_if_missing(path.absolute(), text.encode("utf-8")):
        raise ConfigError(f"{file} already exists: name a new file")
    if as_json:
        line = {
            "event": "alias-export",
            "file": str(path.absolute()),
            "aliases": list(caps),
            "introducers": len(recovery.introducers),
            "servers": recovery.server_count,
        }
        click.echo(json.dumps(line))
    else:
        aliases, introducers = counted(len(caps), "alias", "aliases"), counted(len(recovery.introducers), "introducer")
        click.echo(f"{aliases}, {introducers} and {counted(recovery.server_count, 'server')} written to {file}")
    return 0


@alias.command(
    "import",
    short_help="Add the aliases from an exported file.",
    epilog=examples(
        "grid alias import aliases.age",
        "grid -d ~/other alias import sheet.txt",
        "grid alias import --passphrase-file secret.txt --json aliases.age",
    ),
)
@click.argument("file", metavar="FILE", type=click.Path(dir_okay=False), shell_complete=complete_file)
@_PASSPHRASE
@json_option()
@click.pass_context
def import_command(ctx: click.Context, *, file: str, passphrase_file: str | None, as_json: bool) -> int:
    """Add the aliases in FILE, which `grid alias export` wrote, to this client directory. FILE may be a recovery sheet.

    If the client directory does not exist, it is created, with the introducers and the numbers of shares in FILE. The
    servers in FILE are used while an introducer cannot be reached. An alias of yours that has the same name, but leads
    elsewhere, is left alone; the others are added, and the exit code is 1. The command needs the extra `recovery`.
    """
    from grid.cli.arguments.aliases import add_alias, read_aliases
    from grid.cli.connection import client_path, open_client_directory
    from grid.cli.terminal.exit_codes import ExitCode
    from grid.cli.terminal.failures import tell_problem
    from grid.node.known_servers import remember_servers

    path = client_path(ctx)
    is_missing = not path.exists() or (path.is_dir() and not any(path.iterdir()))
    if not is_missing:
        open_client_directory(ctx)  # Before the passphrase is asked for.
    found = _read_file(file, passphrase_file)
    if is_missing:
        words = _create_client(path, found, file)
        if not as_json:
            click.echo(words)
    directory = open_client_directory(ctx)
    there = read_aliases(directory)
    added = [name for name in found.aliases if name not in there]
    others = [name for name, cap in found.aliases.items() if name in there and there[name] != cap.to_string()]
    for name in added:
        add_alias(directory, name, found.aliases[name])
    unchanged = len(found.aliases) - len(added) - len(others)
    servers = remember_servers(directory, found.servers)
    if as_json:
        line = {
            "event": "alias-import",
            "created": is_missing,
            "added": added,
            "unchanged": unchanged,
            "conflicts": others,
            "servers": servers,
        }
        click.echo(json.dumps(line))
    else:
        click.echo(f"{counted(len(added), 'alias', 'aliases')} added, {unchanged} already there")
        if servers:
            click.echo(f"{counted(servers, 'server')} noted, to use while the introducer cannot be reached")
    if not others:
        return ExitCode.OK
    names = ", ".join(others)
    message = f"not added, because aliases with these names lead elsewhere: {names}; rename those in private/aliases"
    tell_problem(message, kind="exists", code=ExitCode.OTHER, as_json=as_json)
    return ExitCode.OTHER


def _read_file(file: str, passphrase_file: str | None) -> Recovery:
    """What the file holds; FormatError or GridError."""
    from grid.cli.arguments.recovery import MAX_FILE, decrypt, parse_recovery
    from grid.errors import FormatError

    with Path(file).open("rb") as opened:
        data = opened.read(MAX_FILE + 1)
    if len(data) > MAX_FILE:
        raise FormatError(f"{file} is larger than any file that `grid alias export` writes")
    return parse_recovery(decrypt(data, _passphrase(passphrase_file, is_new=False)))


def _create_client(path: Path, found: Recovery, file: str) -> str:
    """Create a client directory with the file's introducers and numbers of shares; what was made, for people. ConfigError."""
    from grid.errors import ConfigError
    from grid.node.create import NewClient, create_client

    if not found.introducers:
        raise ConfigError(
            f"{file} names no introducer, so no client can be made from it: create one first, with `grid create client`"
        )
    first, *more = found.introducers
    new = NewClient(introducer_furl=first, more_introducers=tuple(more))
    if found.encoding is not None:
        needed, happy, total = found.encoding
        new = evolve(new, needed=needed, happy=happy, total=total, is_invited=True)
    create_client(path, new)
    introducers = counted(len(found.introducers), "introducer")
    shares = f"{counted(new.total, 'share')} of each file, any {new.needed} of which restore it"
    source = "" if found.encoding is not None else " (the defaults: the file has no numbers)"
    return f"Client created in {plain(str(path))}: {introducers}; {shares}, on at least {counted(new.happy, 'server')}{source}"


def _passphrase(file: str | None, *, is_new: bool) -> str:
    """Ask for the passphrase or read it from a file; UsageError if there is no terminal or it is too short."""
    import sys

    from grid.node.files import read_text

    if file is not None:
        text = (read_text(Path(file)) or "").partition("\n")[0].rstrip("\r")
    elif sys.stdin.isatty():
        text = click.prompt("Passphrase", hide_input=True, confirmation_prompt=is_new, err=True)
    else:
        raise click.UsageError("asking for the passphrase needs a terminal: give --passphrase-file FILE instead")
    if is_new and len(text) < SHORTEST:
        raise click.UsageError(f"the passphrase needs at least {SHORTEST} characters: four words, for example")
    if not text:
        raise click.UsageError("the passphrase is empty")
    return text


SHORTEST = 12
"""Characters of a new passphrase: anyone who finds the file can try as many as they like."""
