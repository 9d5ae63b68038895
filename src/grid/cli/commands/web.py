"""`grid web`: opens the gateway's pages in a browser without showing the capability in the process list."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from grid.cli.arguments.completion import complete_remote
from grid.cli.terminal.invocation import examples, invocation, json_option

if TYPE_CHECKING:
    from pathlib import Path

    from grid.cli.arguments.remote import RemotePath
    from grid.cli.webapi.address import GatewayAddress
    from grid.cli.webapi.home import GatewayHome

_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="referrer" content="no-referrer">
{plain}<meta http-equiv="refresh" content="0;url={url}"><title>Grid</title></head>
<body><p><a rel="noreferrer" href="{url}">Go on to Grid</a></p></body></html>
"""
_PLAIN = '<noscript><meta http-equiv="refresh" content="0;url={url}"></noscript>\n'
"""Comes first, so that browsers without scripts, which can use no token, go to the page itself."""

_NAME = "open-in-browser.html"

_ENTRANCE = "home?t=enter"
"""The page that takes a token and goes on to a path. [spec webapi 10]"""


@click.command(epilog=examples("grid web", "grid web work:photos", "grid web --visitor"))
@click.argument("path", metavar="[PATH]", required=False, default="", shell_complete=complete_remote)
@click.option("--print", "is_printed", is_flag=True, help="Print the address instead of opening a browser.")
@click.option(
    "--visitor", "is_visitor", is_flag=True, help="Open the page as a visitor sees it, without what is yours."
)
@click.option("--guest", "is_visitor", is_flag=True, hidden=True)  # Its former name.
@json_option()
@click.pass_context
def web(ctx: click.Context, *, path: str, is_printed: bool, is_visitor: bool, as_json: bool) -> int:
    """Open the gateway's pages in a browser: its home page, or the page of PATH.

    The gateway is that of the client directory (start it with `grid gateway`), or the one that --gateway names. Your
    own gateway then knows this browser as yours: here, and in no other browser, its home page shows your directories
    and recent uploads, and you can change files even if the gateway is read-only. Choose "Forget this browser" on the
    home page to end this; stopping the gateway ends it too.

    The address of a PATH contains a capability: keep it secret. To make a link for others, open the page and choose
    Share. No secret appears in the list of processes: the browser reads it from a file that only you can read.
    """
    from grid.cli.arguments.aliases import read_aliases
    from grid.cli.arguments.remote import parse_remote
    from grid.cli.webapi.home import open_gateway_home
    from grid.errors import ConfigError
    from grid.node.files import expand_home

    run = invocation(ctx)
    directory = expand_home(run.node_directory)
    home = open_gateway_home(ctx, directory, run.gateway or "node", run.gateway_ca)
    remote = parse_remote(path, read_aliases(home)) if path.strip() else None
    require_listening(home.address)
    url = home.address.base if remote is None else _page_url(home, remote)
    is_opened = False
    if not is_printed and not as_json:
        is_own = run.gateway in (None, "node") and home.address.is_loopback and not is_visitor
        if is_own and remote is not None:
            is_own = _has_entrance(home)
        target = _own_url(home, "" if remote is None else url) if is_own else url
        is_opened = _open(target if target == home.address.base else _write_page(home, target, url))
    if as_json:
        click.echo(json.dumps({"event": "web", "url": url}))
    elif is_printed:
        click.echo(url)
        if remote is not None and remote.root.authority == "write":
            click.echo(
                "Anyone with this address can change what is there: do not pass it on. `grid share PATH` makes a link for "
                "others.",
                err=True,
            )
    elif not is_opened:
        raise ConfigError(
            "no browser can be opened from here: `grid web --print` prints the address, and `grid share PATH` makes a link "
            "for others"
        )
    return 0


def _page_url(home: GatewayHome, remote: RemotePath) -> str:
    from urllib.parse import quote

    from grid.caps import DirectoryCap

    is_directory = isinstance(remote.root, DirectoryCap) and remote.inside
    names = "".join(f"/{quote(name, safe='')}" for name in remote.names)
    return f"{home.address.base}uri/{quote(remote.root.to_string(), safe='')}{names}{'/' if is_directory else ''}"


def _own_url(home: GatewayHome, then: str) -> str:
    """The address of the first page, or of the one before `then`, with a token that makes one browser known to the gateway.

    then: the address to go on to, "" for the first page. The token does not go there itself: a stored page could read it.
    """
    import time
    from urllib.parse import quote

    from grid.node.own_files import hand_over

    token = hand_over(home.private, time.time())
    if not then:
        return f"{home.address.base}#own={token}"
    path = quote(then[len(home.address.base) - 1 :], safe="")
    return f"{home.address.base}{_ENTRANCE}#own={token}&then={path}"


def _has_entrance(home: GatewayHome) -> bool:
    """Whether the gateway has the page on which a token is handed over before a path. That of Tahoe-LAFS does not."""
    import ssl
    from http import HTTPStatus
    from http.client import HTTPConnection, HTTPException, HTTPSConnection
    from urllib.parse import urlsplit

    parts = urlsplit(home.address.base)
    host = parts.hostname or ""
    if home.address.is_secure:
        # Nothing secret is sent, and the browser checks the certificate.
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        asked: HTTPConnection = HTTPSConnection(host, parts.port, timeout=CONNECT_S, context=context)
    else:
        asked = HTTPConnection(host, parts.port, timeout=CONNECT_S)
    try:
        asked.request("HEAD", f"{parts.path}{_ENTRANCE}")
        return asked.getresponse().status == HTTPStatus.OK
    except (OSError, HTTPException):
        return False
    finally:
        asked.close()


def require_listening(address: GatewayAddress) -> None:
    """Raise PeerGoneError unless something accepts connections there."""
    import socket
    from urllib.parse import urlsplit

    from grid.errors import PeerGoneError

    parts = urlsplit(address.base)
    port = parts.port or (443 if address.is_secure else 80)
    try:
        socket.create_connection((address.host, port), timeout=CONNECT_S).close()
    except OSError:
        raise PeerGoneError(f"no gateway answers at {address.shown}: is `grid gateway` running?") from None


CONNECT_S = 5.0


def _write_page(home: GatewayHome, url: str, plain_url: str) -> str:
    """Write a private page that redirects to the URL, and return its file address. plain_url: for browsers without scripts, if it is another page."""
    from html import escape

    from grid.node.files import write_atomically

    page: Path = home.private / _NAME
    plain = _PLAIN.format(url=escape(plain_url)) if not url.startswith(plain_url) else ""
    write_atomically(page, _PAGE.format(url=escape(url), plain=plain).encode("utf-8"), durable=False)
    return page.absolute().as_uri()


def _open(url: str) -> bool:
    """Ask a browser to open the URL; return whether there is a browser."""
    import webbrowser

    return webbrowser.open(url)
