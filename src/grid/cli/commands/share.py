"""`grid share`, `grid shares` and `grid unshare`: links that end, served by your own gateway. (decision 460)

They change the file of links that the gateway reads, so the gateway itself is only looked for, and asked for nothing.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from itertools import chain
from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem

from grid.cli.arguments.completion import complete_file, complete_kept, complete_remote
from grid.cli.terminal.invocation import examples, invocation, json_option

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from grid.caps import KnownCap
    from grid.cli.arguments.remote import RemotePath
    from grid.cli.arguments.tree import Tree
    from grid.cli.connection import Home
    from grid.gateway.shared.passwords import PasswordHash
    from grid.gateway.shared.share_links import ShareLink
    from grid.node.share_file import ShareFile


@click.command(
    epilog=examples(
        "grid share work:photos",
        "grid share --expires 2w --downloads 3 work:report.pdf",
        "grid share --expires 2030-12-31 --password work:photos",
    )
)
@click.argument("path", metavar="PATH", shell_complete=complete_remote)
@click.option(
    "--expires",
    metavar="TIME|DATE|never",
    default="7d",
    help="When the link ends: after a time such as 12h, 7d or 4w, with a day such as 2030-12-31 (UTC), or never; default: 7d.",
)
@click.option("--downloads", metavar="N", type=click.IntRange(1, 10**9), help="End the link after N downloads.")
@click.option("--password", "asks", is_flag=True, help="Ask for a password that visitors have to enter.")
@click.option(
    "--password-file", metavar="FILE", type=click.Path(dir_okay=False), shell_complete=complete_file,
    help="Take the password from the first line of FILE.",
)  # fmt: skip
@click.option("--name", metavar="NAME", default="", help="Show this name to visitors; default: that of PATH.")
@click.option(
    "--address", metavar="URL", help="Begin the link with this address, if others reach your gateway through a proxy."
)
@json_option()
@click.pass_context
def share(
    ctx: click.Context,
    *,
    path: str,
    expires: str,
    downloads: int | None,
    asks: bool,
    password_file: str | None,
    name: str,
    address: str | None,
    as_json: bool,
) -> int:
    """Make a link to PATH that works in a browser until it ends, and print it. Take it back with `grid unshare`.

    Your own gateway serves the link, so it has to run (`grid gateway`). Visitors see the file, or the directory with
    everything below it as it is then, and no capability. They can change nothing.

    Nobody, not even you, can see the link again later: `grid shares` lists your links without their addresses.
    """
    import os
    import time

    from grid.cli.arguments.remote import parse_remote
    from grid.cli.arguments.tree import open_tree_directory
    from grid.gateway.pages.links import shared_path
    from grid.gateway.shared.share_links import add_link, make_link, new_token

    now = time.time()
    ends = _parse_end(expires, now)
    home, aliases = open_tree_directory(ctx)
    file = _file(ctx, home)
    base = _base(home, address)
    remote = parse_remote(path, aliases)
    cap = _find(home, remote)
    token = new_token(os.urandom)
    link = make_link(
        token,
        cap,
        name or _name_of(remote),
        now,
        expires=ends,
        most_downloads=downloads,
        password=_password(password_file) if asks or password_file else None,
    )
    with file.changing() as links:
        add_link(links, link, now)
    url = f"{base}{shared_path(token)}"
    if as_json:
        line = {"event": "share", "link": url, "id": link.identifier, "name": link.name, "expires": link.expires}
        click.echo(json.dumps(line))
        return 0
    click.echo(url)
    _explain(link, base, is_guess=address is None and _is_guess(home, base))
    _warn_of_writers(home, base, is_proxied=address is not None)
    return 0


@click.command(epilog=examples("grid shares", "grid shares --json", "grid -d ~/client shares"))
@json_option("Print one JSON document.")
@click.pass_context
def shares(ctx: click.Context, *, as_json: bool) -> int:
    """List your share links: their names, when they end, and how often they were opened. Never their addresses.

    USES counts the pages and files that visitors opened, DOWNLOADS the files and ZIP files that they fetched. Links that
    ended are listed for 30 more days.
    """
    import time

    from grid.cli.arguments.tree import open_tree_directory
    from grid.cli.terminal.columns import table
    from grid.gateway.shared.share_links import describe_link

    now = time.time()
    links = sorted(_file(ctx, open_tree_directory(ctx)[0]).read(), key=lambda link: link.created, reverse=True)
    if as_json:
        click.echo(json.dumps([describe_link(link, now) for link in links]))
        return 0
    rows = [_row(link, now) for link in links]
    headings = ("ID", "NAME", "TYPE", "CREATED", "ENDS", "USES", "DOWNLOADS")
    for line in table(headings, rows, ("USES", "DOWNLOADS")) if rows else ():
        click.echo(line)
    if not rows:
        click.echo("no share links; `grid share PATH` makes one", err=True)
    return 0


def _complete_links(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete the names and IDs of links."""
    from grid.node.share_file import ShareFile

    def read(directory: Path) -> Iterable[str]:
        return chain.from_iterable((link.name, link.identifier) for link in ShareFile(directory / "private").read())

    return complete_kept(ctx, incomplete, read)


@click.command(epilog=examples("grid unshare photos", "grid unshare 3f9c2a7b10", "grid unshare --json photos"))
@click.argument("link", metavar="NAME|ID", shell_complete=_complete_links)
@json_option()
@click.pass_context
def unshare(ctx: click.Context, *, link: str, as_json: bool) -> int:
    """Take a share link back: from now on, it opens nothing. `grid shares` shows the names and IDs.

    What visitors have saved stays with them. A download that has begun goes on to its end.
    """
    from grid.cli.arguments.tree import open_tree_directory
    from grid.cli.terminal.quoting import plain
    from grid.gateway.shared.share_links import find_link

    with _file(ctx, open_tree_directory(ctx)[0]).changing() as links:
        removed = links.pop(find_link(links.values(), link).digest)
    line = {"event": "unshare", "id": removed.identifier, "name": removed.name}
    click.echo(json.dumps(line) if as_json else f"taken back: {plain(removed.name)}")
    return 0


def _file(ctx: click.Context, home: Home) -> ShareFile:
    """The links of the client directory; UsageError with a gateway other than its own, ConfigError without a directory."""
    from grid.cli.arguments.aliases import require_lasting
    from grid.node.share_file import ShareFile

    if invocation(ctx).gateway not in (None, "node"):
        raise click.UsageError("share links are kept by your own gateway: leave --gateway and GRID_GATEWAY out")
    require_lasting(home)
    return ShareFile(home.private)


def _base(home: Home, given: str | None) -> str:
    """The scheme and host of the link; ConfigError without a gateway, PeerGoneError if it does not run."""
    from grid.cli.commands.web import require_listening
    from grid.cli.webapi.address import parse_address
    from grid.errors import ConfigError
    from grid.node.files import read_text
    from grid.node.share_file import PUBLIC_URL

    own = read_text(home.path / "node.url")
    if own is not None:
        require_listening(parse_address(own, str(home.path / "node.url"), None))
    elif given is None:  # Only a proxy reaches a gateway that listens on a socket in the file system.
        raise ConfigError(
            f"no web gateway has run in {home.path}, and share links are opened through it: start one that others can "
            "reach with `grid gateway --read-only --listen ENDPOINT` (see “Sharing” in the documentation)"
        )
    if given is None:
        base = (read_text(home.path / PUBLIC_URL) or own or "").strip().rstrip("/")
        usual = {"https": ":443", "http": ":80"}[base.partition(":")[0]]
        return base.removesuffix(usual)
    try:
        address = parse_address(given, "--address", None)
    except ConfigError as problem:
        raise click.UsageError(str(problem)) from None
    if address.base.count("/") != 3:
        raise click.UsageError("--address: expected https://HOST/ or https://HOST:PORT/, without a path below it")
    return address.shown


def _find(home: Home, remote: RemotePath) -> KnownCap:
    """The capability of what the path names; looks at the grid only if it has to."""
    from grid.cli.arguments.tree import known, run_in_tree

    if not remote.names:
        return remote.root

    async def operation(tree: Tree) -> KnownCap:
        return known(await tree.find(remote), remote.shown)

    return run_in_tree(home, operation)


def _name_of(remote: RemotePath) -> str:
    """The last name of the path, or that of the alias; "" for a bare capability."""
    if remote.names:
        return remote.names[-1]
    return "" if remote.shown.startswith("URI:") else remote.shown.rstrip(":/")


def _parse_end(text: str, now: float) -> int | None:
    """The Unix time at which the link ends, None for never; UsageError."""
    from grid.gateway.shared.share_links import parse_end

    try:
        return parse_end(text, now)
    except ValueError as problem:
        raise click.UsageError(f"--expires: {problem}") from None


def _password(file: str | None) -> PasswordHash:
    """Ask for the password or read it from a file; UsageError if there is no terminal, or if it is short."""
    import os
    import sys
    from pathlib import Path

    from grid.gateway.shared.passwords import LONGEST_PASSWORD, SALT_SIZE, SHORTEST_PASSWORD, hash_password
    from grid.node.files import read_text

    if file is not None:
        found = read_text(Path(file))
        if found is None:
            raise FileNotFoundError(2, "No such file or directory", file)
        text = found.partition("\n")[0].rstrip("\r")
    elif sys.stdin.isatty():
        text = click.prompt("Password of the link", hide_input=True, confirmation_prompt=True, err=True)
    else:
        raise click.UsageError("there is no terminal to ask for the password on: give --password-file FILE")
    if not SHORTEST_PASSWORD <= len(text) <= LONGEST_PASSWORD:
        words = f"the password needs at least {SHORTEST_PASSWORD} characters, and at most {LONGEST_PASSWORD}"
        raise click.UsageError(words)
    return hash_password(text, os.urandom(SALT_SIZE))


def _is_guess(home: Home, base: str) -> bool:
    """Whether the link begins with this computer's own name, which other computers may not know."""
    import socket
    from urllib.parse import urlsplit

    settings = getattr(home, "settings", None)  # A gateway's home has none.
    host = urlsplit(base).hostname or ""
    return host == socket.gethostname().lower() and (settings is None or host not in settings.web_hosts)


def _own_address() -> str:
    """An address of this computer in its network, "" if it has none. Nothing is sent."""
    import socket

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as found:
        try:
            found.connect(("192.0.2.1", 9))
            return str(found.getsockname()[0])
        except OSError:
            return ""


def _explain(link: ShareLink, base: str, *, is_guess: bool) -> None:
    """Say on stderr when the link ends, who can open it, and how to take it back."""
    from grid.cli.terminal.quoting import plain, quote
    from grid.node.web_address import is_on_loopback

    until = "works until you take it back" if link.expires is None else f"ends {_when(link.expires)}"
    click.echo(f"The link {until}: `grid unshare {quote(link.name)}` or `grid unshare {link.identifier}`", err=True)
    if is_on_loopback(base):
        words = "it works only on this computer; “Sharing” in the documentation explains how to let others reach your gateway"
        click.echo(f"grid: warning: {words}", err=True)
        return
    if base.startswith("http:"):
        click.echo("grid: warning: it is not encrypted in transit: others on the network can copy it", err=True)
    if is_guess:
        host = base.partition("://")[2]
        address = _own_address()
        click.echo(
            f"grid: warning: the link begins with this computer's own name, {plain(host.partition(':')[0])}. If others do "
            f"not know it by that name, put its IP address there{f' ({address})' if address else ''}, or set the name or "
            "address that they use with `grid config set node.web.allowed_hosts NAME`, restart the gateway, and make a new link",
            err=True,
        )


def _warn_of_writers(home: Home, base: str, *, is_proxied: bool) -> None:
    """Say on stderr if those who can open the link can also store files, as the gateway said when it started."""
    from grid.node.files import read_text
    from grid.node.share_file import READ_WRITE, VISITORS
    from grid.node.web_address import is_on_loopback

    if is_on_loopback(base) or (read_text(home.path / VISITORS) or "").strip() != READ_WRITE:
        return
    unless = ", unless your proxy prevents it" if is_proxied else ""
    click.echo(
        f"grid: warning: everyone who can open the link can also store files on your grid{unless}: run `grid config set "
        "node.web.read_only yes`, and restart the gateway",
        err=True,
    )


def _row(link: ShareLink, now: float) -> tuple[str, ...]:
    from grid.cli.terminal.quoting import plain

    state = link.state(now)
    ends = "never" if link.expires is None else _when(link.expires)
    most = "" if link.most_downloads is None else f"/{link.most_downloads}"
    return (
        link.identifier,
        plain(link.name),
        "directory" if link.is_directory else "file",
        _when(link.created),
        ends if state == "open" else f"{state} ({ends})",
        str(link.uses),
        f"{link.downloads}{most}",
    )


def _when(unix_time: int) -> str:
    """The time in UTC."""
    try:
        return datetime.fromtimestamp(unix_time, UTC).strftime("%Y-%m-%d %H:%MZ")
    except (OverflowError, ValueError, OSError):
        return "-"
