"""The pages of storage servers, and the first page. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from grid.gateway.pages.forms import download_form, open_form, store_form, unlinked_mkdir_form
from grid.gateway.pages.markup import Markup, duration_text, join, size_text, tag, time_text
from grid.gateway.pages.shell import card, document, nothing_here, notice
from grid.gateway.shared.node_view import ServerView
from grid.placement.space import as_files, space_of_disks
from grid.plural import counted


def connected_text(servers: Sequence[ServerView]) -> str:
    """Say how many of the servers are connected."""
    connected = sum(server.is_connected for server in servers)
    return f"{connected} of {counted(len(servers), 'server')} connected"


def render_servers(servers: Sequence[ServerView], introducers: Sequence[str], needed: int = 1, total: int = 1) -> str:
    """Render all known servers, connected ones first. needed, total: shares of a new file."""
    if not servers:
        table = nothing_here(
            "No server is known yet", "Servers appear here once an introducer announces them.", "server"
        )
    else:
        ordered = sorted(servers, key=lambda server: (not server.is_connected, server.nickname, server.server_id))
        heads = ("Server", "State", "Round trip", "Free space", "Last heard", "Software")
        head = tag("thead", tag("tr", [tag("th", name, scope="col") for name in heads]))
        table = tag(
            "div",
            tag(
                "table",
                tag("caption", "Storage servers", class_="unseen"),
                head,
                tag("tbody", map(_row, ordered)),
                class_="cards",
            ),
            class_="scroll",
            tabindex="0",
            role="region",
            aria_label="Storage servers",
        )
    lost = sum(not server.is_connected for server in servers)
    warning = notice("warn", tag("p", f"{counted(lost, 'server')} cannot be reached right now.")) if lost else None
    listed = [tag("h2", "Introducers"), tag("ul", [tag("li", line) for line in introducers])] if introducers else None
    return document(
        "Servers", tag("h1", "Servers"), _lead(servers, needed, total), warning, table, listed, here="/servers"
    )


def free_space(servers: Sequence[ServerView]) -> int:
    """Free bytes on the disks of connected servers. A disk shared by several servers counts once."""
    known = [(each.host, each.available_space) for each in servers if each.is_connected]
    return space_of_disks([(host, space) for host, space in known if space is not None])


def _lead(servers: Sequence[ServerView], needed: int, total: int) -> Markup:
    space = free_space(servers)
    words = f"{connected_text(servers)}."
    if space:
        files = f"room for about {size_text(as_files(space, needed, total))} of files with {needed}-of-{total}"
        words += f" {size_text(space)} free on their disks: {files}."
    return tag("p", words, class_="lead")


def _row(server: ServerView) -> Markup:
    state = "good" if server.is_connected else "bad"
    word = "Connected" if server.is_connected else "Not connected"
    detail = tag("small", server.status) if server.status and server.status != word else None
    name = join(tag("bdi", server.nickname or "unnamed"), tag("small", tag("code", server.server_id)))
    return tag(
        "tr",
        tag("th", name, scope="row"),
        tag("td", tag("div", tag("span", word, class_=f"state {state}"), detail), data_label="State"),
        tag("td", duration_text(server.latency_s), class_="number", data_label="Round trip"),
        tag("td", size_text(server.available_space), class_="number", data_label="Free space"),
        tag("td", time_text(server.last_received_at), class_="number", data_label="Last heard"),
        tag("td", tag("small", server.version or "–"), data_label="Software"),
    )


def render_welcome(
    servers: Sequence[ServerView], introducers: Sequence[str], *, needed: int, nickname: str = ""
) -> str:
    """needed: servers that storing a file requires. introducers: one line each."""
    connected = sum(server.is_connected for server in servers)
    state = tag("p", tag("a", connected_text(servers), href="/servers"), class_="lead")
    warning = None
    if connected < needed:
        words = f"Storing a file needs {counted(needed, 'server')}. A stored file can be read while enough of its servers are connected."
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
    words = tag("p", "A file or directory that you or somebody else has stored.")
    return card("Open", words, open_form(), id="open")


def _download() -> Markup:
    return card(
        "Download", tag("p", "Saves a file to your disk under a name that you choose."), download_form(), id="download"
    )


def _upload() -> Markup:
    words = tag("p", "You get a capability for it. To keep several files together, make a directory first.")
    return card("Store a file", words, store_form(), id="upload")


def _make_directory() -> Markup:
    words = tag("p", "A new, empty directory. Its capability is its only name: bookmark the page that opens.")
    return card("Make a directory", words, unlinked_mkdir_form(), id="mkdir")
