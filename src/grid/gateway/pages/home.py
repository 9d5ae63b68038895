"""The home page, and the part of it for browsers that `grid web` has opened: directories and recent uploads. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from grid.gateway.pages.entries import info_path
from grid.gateway.pages.forms import download_form, open_form, store_form, unlinked_mkdir_form
from grid.gateway.pages.links import object_path
from grid.gateway.pages.markup import Markup, icon, join, size_text, tag, time_mark
from grid.gateway.pages.servers import connected_text, space_text
from grid.gateway.pages.shell import card, document, notice
from grid.gateway.shared.home import Alias, RecentUpload
from grid.gateway.shared.node_view import ServerView
from grid.plural import counted

UNNAMED = "<unspecified>"
"""What 1.20 calls a node without a nickname."""


def render_welcome(
    servers: Sequence[ServerView],
    introducers: Sequence[str],
    *,
    happy: int,
    needed: int = 1,
    total: int = 1,
    nickname: str = "",
) -> str:
    """Render the first page. happy: servers that storing a file requires. introducers: one line each.

    needed, total: shares of a new file.
    """
    connected = sum(server.is_connected for server in servers)
    warning = None
    if connected < happy:
        words = f"Storing a file needs {counted(happy, 'server')}. A stored file can be read while enough of its servers are connected."
        warning = notice("warn", tag("p", words))
    listed = [tag("li", line) for line in introducers]
    network = [tag("h3", "Introducers"), tag("ul", listed)] if listed else None
    return document(
        "Grid",
        tag("h1", "Your grid" if nickname in ("", UNNAMED) else nickname),
        _health(servers, happy, needed, total),
        warning,
        tag("div", class_="drop", id="drop", data_drop_home=True, hidden=True),
        tag("div", id="own", data_own=True, hidden=True),
        tag("div", _open(_OWN), _upload(), _make_directory(), _download(), class_="columns"),
        card("Network", tag("p", connected_text(servers)), network, id="network") if network else None,
        here="/",
    )


def render_visitors_home() -> str:
    """Render the first page of a read-only gateway for visitors."""
    heading = tag("h1", "Open what others share with you")
    words = tag("p", "This gateway is read-only: you cannot store or change anything through it.")
    own = tag("div", id="own", data_own=True, data_visit=True, hidden=True)
    return document("Grid", heading, words, own, tag("div", _open(_VISITORS), class_="columns"), is_visit=True)


def render_entrance(*, is_visit: bool) -> str:
    """Render the page that takes the token of `grid web PATH` and goes on to the path. is_visit: see `document`.

    It says something only if that takes long, so the pages that follow do not flicker.
    """
    words = tag("h1", "Opening…"), tag("p", tag("a", "Home", href="/"))
    return document("Grid", tag("div", words, class_="late", data_own=True, data_entrance=True), is_visit=is_visit)


def _health(servers: Sequence[ServerView], happy: int, needed: int, total: int) -> Markup:
    """One sentence: who is connected, and how much can be stored."""
    link = tag("a", connected_text(servers), href="/servers")
    space = space_text(servers, needed, total, happy)
    connected = sum(server.is_connected for server in servers)
    rest = f". {space}." if space and connected >= happy else "."
    return tag("p", link, rest, class_="lead")


def render_own(aliases: Sequence[Alias], recent: Sequence[RecentUpload]) -> str:
    """The page whose part `own` scripts show on the first page."""
    leave = tag("button", "Forget this browser", type="button", class_="small quiet", data_leave=True)
    hint = tag(
        "p", "Only this browser shows these, because ", tag("code", "grid web"), " opened it. ", leave, class_="hint"
    )
    columns = tag("div", _directories(aliases), _recent(recent), class_="columns")
    return document("Your directories", tag("h1", "Your directories"), tag("div", columns, hint, id="own"), here="/")


def _directories(aliases: Sequence[Alias]) -> Markup:
    if not aliases:
        words = tag("p", "You have none yet: ", tag("code", "grid create-alias work"), " creates one.")
        return card("Your directories", words, id="aliases")
    rows = []
    for name, cap in aliases:
        badge = None if cap.authority == "write" else tag("span", icon("lock"), "Read only", class_="badge")
        link = tag("a", tag("bdi", f"{name}:"), href=object_path(cap.to_string(), directory=True))
        rows.append(tag("li", icon("folder"), tag("div", link), badge))
    writable = [(name, cap) for name, cap in aliases if cap.authority == "write"]
    options = [tag("option", f"{name}:", value=object_path(cap.to_string(), directory=True)) for name, cap in writable]
    into = join(
        tag("label", "Store dropped files in", for_="drop-into"),
        tag("select", tag("option", "no directory", value=""), options, id="drop-into"),
    )
    return card("Your directories", tag("ul", rows, class_="rows"), tag("div", into, class_="field"), id="aliases")


def _recent(recent: Sequence[RecentUpload]) -> Markup:
    if not recent:
        return card(
            "Recent uploads",
            tag("p", "What you upload in this browser is listed here until the gateway stops."),
            id="recent",
        )
    rows = []
    for upload in recent:
        text, name = upload.cap.to_string(), upload.name or "(no name)"
        about = tag("small", size_text(upload.size), ", ", time_mark(upload.time))
        link = tag("a", tag("bdi", name), href=info_path(upload.cap, upload.name))
        copy = tag(
            "button",
            "Copy",
            type="button",
            class_="small",
            data_copy=text,
            aria_label=f"Copy the capability of {name}",
            hidden=True,
        )
        rows.append(tag("li", tag("div", link, about), copy))
    return card("Recent uploads", tag("ul", rows, class_="rows"), id="recent")


_OWN = "Open a file or directory that you or somebody else stored: paste its capability, or a link to it."
_VISITORS = "Open a file or directory that somebody shares with you: paste its capability, or a link to it."


def _open(words: str) -> Markup:
    return card("Open", tag("p", words), open_form(), id="open")


def _download() -> Markup:
    return card(
        "Download", tag("p", "Save a file to your disk under a name you choose."), download_form(), id="download"
    )


def _upload() -> Markup:
    words = tag("p", "You get a capability for it. To keep several files together, create a directory first.")
    return card("Store a file", words, store_form(), id="upload")


def _make_directory() -> Markup:
    words = tag("p", "A new, empty directory. Its capability is its only name: bookmark the page that opens.")
    return card("Create a directory", words, unlinked_mkdir_form(), id="mkdir")
