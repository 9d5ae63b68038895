"""The storage servers: who they are, and how they are. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from grid.gateway.pages.figures import duration_text, size_text, time_text
from grid.gateway.pages.markup import Markup, join, tag
from grid.gateway.pages.shell import document, nothing_here, notice
from grid.gateway.serverview import ServerView


def connected_text(servers: Sequence[ServerView]) -> str:
    """How many of them there are."""
    connected = sum(server.is_connected for server in servers)
    return f"{connected} of {len(servers)} {'server' if len(servers) == 1 else 'servers'} connected"


def render_servers(servers: Sequence[ServerView], introducers: Sequence[str]) -> str:
    """All servers known, those that are connected first."""
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
            tag("table", tag("caption", "Storage servers", class_="unseen"), head, tag("tbody", map(_row, ordered))),
            class_="scroll",
            tabindex="0",
            role="region",
            aria_label="Storage servers",
        )
    lost = sum(not server.is_connected for server in servers)
    warning = notice("warn", tag("p", f"{lost} cannot be reached at the moment.")) if lost else None
    listed = [tag("h2", "Introducers"), tag("ul", [tag("li", line) for line in introducers])] if introducers else None
    return document("Servers", tag("h1", "Servers"), _lead(servers), warning, table, listed, here="/servers")


def _lead(servers: Sequence[ServerView]) -> Markup:
    space = sum(server.available_space or 0 for server in servers if server.is_connected)
    free = f", {size_text(space)} free" if space else ""
    return tag("p", f"{connected_text(servers)}{free}.", class_="lead")


def _row(server: ServerView) -> Markup:
    state = "good" if server.is_connected else "bad"
    word = "Connected" if server.is_connected else "Not connected"
    detail = tag("small", server.status) if server.status and server.status != word else None
    name = join(tag("bdi", server.nickname or "unnamed"), tag("small", tag("code", server.server_id)))
    return tag(
        "tr",
        tag("th", name, scope="row"),
        tag("td", tag("span", word, class_=f"state {state}"), detail),
        tag("td", duration_text(server.latency_s), class_="number"),
        tag("td", size_text(server.available_space), class_="number"),
        tag("td", time_text(server.last_received_at), class_="number"),
        tag("td", tag("small", server.version or "–")),
    )
