"""The first page: open what one has a capability of, store something, see whether the grid is there. Pure. [spec webapi 10]"""

from __future__ import annotations

from collections.abc import Sequence

from grid.gateway.pages.forms import download_form, open_form, store_form, unlinked_mkdir_form
from grid.gateway.pages.markup import Markup, tag
from grid.gateway.pages.server_view import ServerView
from grid.gateway.pages.servers import connected_text
from grid.gateway.pages.shell import card, document, notice
from grid.plural import counted


def render_welcome(
    servers: Sequence[ServerView], introducers: Sequence[str], *, needed: int, nickname: str = ""
) -> str:
    """needed: servers that storing a file takes. introducers: a line on each."""
    connected = sum(server.is_connected for server in servers)
    state = tag("p", tag("a", connected_text(servers), href="/servers"), class_="lead")
    warning = None
    if connected < needed:
        words = f"Storing takes {counted(needed, 'server')}. Files that are stored can be read if enough of their servers are here."
        warning = notice("warn", tag("p", words))
    listed = [tag("li", line) for line in introducers]
    network = [tag("h3", "Introducers"), tag("ul", listed)] if listed else None
    return document(
        "Grid",
        tag("h1", nickname or "Your grid"),
        state,
        warning,
        tag("div", _open(), _upload(), _make_directory(), _download(), class_="columns"),
        card("Network", tag("p", connected_text(servers)), network, id="network") if network else None,
        here="/",
    )


def _open() -> Markup:
    words = tag("p", "A file or a directory that you, or somebody who shares it with you, has stored.")
    return card("Open", words, open_form(), id="open")


def _download() -> Markup:
    return card(
        "Download", tag("p", "Saves a file to your disk, under a name you choose."), download_form(), id="download"
    )


def _upload() -> Markup:
    words = tag("p", "You get a capability for it. To keep many files together, make a directory first.")
    return card("Store a file", words, store_form(), id="upload")


def _make_directory() -> Markup:
    words = tag("p", "A new, empty directory. Its capability is its only name: bookmark the page that opens.")
    return card("Make a directory", words, unlinked_mkdir_form(), id="mkdir")
