"""The page of storage servers, and what they have room for. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from grid.gateway.pages.markup import Markup, duration_text, join, size_text, tag, time_text
from grid.gateway.pages.shell import document, nothing_here, notice
from grid.gateway.shared.node_view import ServerView
from grid.placement.space import as_files, lack_as_verb, space_of_disks, usable_space
from grid.plural import counted
from grid.wire.status import next_question

_REFRESH_S = 5
"""How often an open page asks how the servers are."""

SHORT_ID = 11
"""Characters of a server's id that tell it from all others."""

_URGENCY = {"bad": 0, "warn": 1, "good": 2}
"""The order of the servers, by the color of their states."""


def connected_text(servers: Sequence[ServerView]) -> str:
    """Say how many of the servers are connected."""
    connected = sum(server.is_connected for server in servers)
    return f"{connected} of {counted(len(servers), 'server')} connected"


def render_servers(
    servers: Sequence[ServerView], introducers: Sequence[str], needed: int = 1, total: int = 1, happy: int = 1
) -> str:
    """Render all known servers, those that need attention first. needed, total: shares of a new file. happy: servers it needs."""
    if not servers:
        table = nothing_here(
            "No server is known yet", "Servers appear here once an introducer announces them.", "server"
        )
    else:
        ordered = sorted(servers, key=lambda server: (_URGENCY[_state(server)[0]], server.nickname, server.server_id))
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
            id="all-servers",
            tabindex="0",
            role="region",
            aria_label="Storage servers",
        )
    listed = [tag("h2", "Introducers"), tag("ul", [tag("li", line) for line in introducers])] if introducers else None
    return document(
        "Servers",
        tag("h1", "Servers"),
        tag(
            "div",
            _lead(servers, needed, total, happy),
            _warnings(servers, happy),
            table,
            listed,
            id="servers",
            data_every=_REFRESH_S,
        ),
        here="/servers",
    )


def _warnings(servers: Sequence[ServerView], happy: int) -> list[Markup]:
    lost = sum(not server.is_connected and not server.is_connecting for server in servers)
    connected, with_room = sum(each.is_connected for each in servers), sum(each.has_room for each in servers)
    said = [f"{counted(lost, 'server')} cannot be reached right now."] if lost else []
    lacks = Counter(each.no_room for each in servers if each.no_room is not None)
    parts = [f"{counted(count, 'server')} {lack_as_verb(lack, is_plural=count > 1)}" for lack, count in lacks.items()]
    if len(parts) > 1:
        said.append(f"{' and '.join(parts)}: they take no new files.")
    elif parts:
        said.append(f"{parts[0]}, and {'takes' if lacks.total() == 1 else 'take'} no new files.")
    if connected < happy:
        there = f"{connected} {'is' if connected == 1 else 'are'} connected"
        said.append(f"Nothing new can be stored: each file needs {counted(happy, 'server')}, and {there}.")
    elif happy > with_room:
        said.append(
            f"Nothing new can be stored: each file needs room on {counted(happy, 'server')}, and {with_room} have it."
        )
    return [notice("warn", tag("p", " ".join(said)))] if said else []


def free_space(servers: Sequence[ServerView]) -> int:
    """Free bytes on the disks of connected servers. A disk shared by several servers counts once."""
    known = [(each.host, each.available_space) for each in servers if each.is_connected]
    return space_of_disks([(host, space) for host, space in known if space is not None])


def _lead(servers: Sequence[ServerView], needed: int, total: int, happy: int) -> Markup:
    space = space_text(servers, needed, total, happy)
    return tag("p", f"{connected_text(servers)}.", f" {space}." if space else None, class_="lead")


def space_text(servers: Sequence[ServerView], needed: int, total: int, happy: int) -> str:
    """Say how much is free on the disks, how much that is in files, and what limits it; "" if no server says it."""
    space = free_space(servers)
    if not space:
        return ""
    there = [each for each in servers if each.is_connected]
    if len(there) < happy:
        return f"{size_text(space)} free on their disks"
    usable = usable_space([(each.host, each.available_space) for each in there], happy)
    files = f"room for about {size_text(as_files(usable.size, needed, total))} of files with {needed}-of-{total}"
    limit = ""
    if usable.limit is not None:
        full = there[usable.limit]
        limit = f". Each file needs {counted(happy, 'server')}, and {full.nickname or full.server_id[:SHORT_ID]} will be full first"
    elif not usable.size:
        files, limit = "no room for new files", f". Each file needs room on {counted(happy, 'server')}"
    return f"{size_text(space)} free on their disks: {files}{limit}"


def _state(server: ServerView) -> tuple[str, str]:
    """The color and the word for a server."""
    if server.is_connected:
        return ("warn", server.no_room.capitalize()) if server.no_room is not None else ("good", "Connected")
    return ("warn", "Connecting") if server.is_connecting else ("bad", "Not connected")


def _row(server: ServerView) -> Markup:
    state, word = _state(server)
    said = server.status.removeprefix("Connected to ") if server.is_connected else server.status
    detail = tag("small", said) if said and said != word else None
    question = "" if server.is_connected or server.is_connecting else next_question(server.status)
    hint = tag("small", f"{question[:1].upper()}{question[1:]}") if question else None
    # The beginning is what `grid status` shows and logs begin with; the whole would take three lines.
    short = tag("code", server.server_id[:SHORT_ID], title=server.server_id)
    name = join(tag("bdi", server.nickname or "unnamed"), tag("small", short))
    return tag(
        "tr",
        tag("th", name, scope="row"),
        tag("td", tag("div", tag("span", word, class_=f"state {state}"), detail, hint), data_label="State"),
        tag(
            "td",
            duration_text(server.latency_s if server.is_connected else None),
            class_="number",
            data_label="Round trip",
        ),
        tag("td", size_text(server.available_space), class_="number", data_label="Free space"),
        tag("td", time_text(server.last_received_at), class_="number", data_label="Last heard"),
        tag("td", tag("small", server.version or "–"), data_label="Software"),
    )
