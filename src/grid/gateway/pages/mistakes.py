"""The page shown when a request is refused: what happened, what the person typed, and a way back. Pure.

It never names an error's class, and never guesses about servers against what is known of them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from grid.gateway.pages.markup import Markup, join, tag
from grid.gateway.pages.shell import card, document, notice
from grid.gateway.shared.node_view import ServerView
from grid.plural import counted
from grid.values import frozen


@frozen(kw_only=True)
class Back:
    """A link onward from a page that could not be shown."""

    label: str
    path: str


def render_mistake(
    status: int,
    message: str,
    *,
    servers: Sequence[ServerView],
    retry: Markup | None = None,
    back: Back | None = None,
    is_visit: bool = False,
) -> str:
    """retry: the form again, with the earlier input. is_visit: see `document`."""
    title = _TITLES.get(status, "That did not work")
    home = tag("a", "Home", class_="button quiet", href="/")
    back_link = tag("a", back.label, class_="button", href=back.path, data_close=True) if back is not None else None
    return document(
        title,
        tag("h1", title),
        notice("bad", tag("p", _with_commands(sentence(message)))),
        card("Try again", retry) if retry is not None else None,
        _hint(status, servers, has_back=back is not None, is_visit=is_visit),
        tag("div", back_link, home, class_="buttons"),
        is_visit=is_visit,
    )


def sentence(message: str) -> str:
    """Turn a message of the gateway into a sentence."""
    first, rest = message[:1], message[1:]
    # A message that begins with an argument's name keeps its case.
    begins = first.upper() if not message.partition(" ")[0].endswith("=") else first
    return f"{begins}{rest}" if message.endswith((".", "?", "!")) else f"{begins}{rest}."


def _with_commands(message: str) -> list[Markup]:
    """The message, with the commands in it set as such."""
    return [join(part) if at % 2 == 0 else tag("code", part) for at, part in enumerate(_COMMAND.split(message))]


def _hint(status: int, servers: Sequence[ServerView], *, has_back: bool, is_visit: bool) -> Markup | None:
    if status in (410, 503):
        return servers_hint(servers, is_visit=is_visit)
    words = _HINTS.get(status)
    if status == 404 and has_back:
        words = f"{words} {_HINT_ASK if is_visit else _HINT_LOOK}"
    return tag("p", words) if words else None


def _all(count: int) -> str:
    return "The only known server is" if count == 1 else f"All {count} known servers are"


def servers_hint(servers: Sequence[ServerView], *, is_visit: bool = False) -> Markup:
    """Explain, from the state of the servers, why something cannot be read or stored. is_visit: see `document`."""
    away = sum(not server.is_connected for server in servers)
    if is_visit:
        return tag("p", _HINT_AWAY if away or not servers else _HINT_CAPABILITY)
    link = tag("a", "See the servers", href="/servers")
    if away:
        words = f"{away} of {counted(len(servers), 'server')} cannot be reached; try again later. "
    elif servers:
        words = f"{_all(len(servers))} connected. {_HINT_CAPABILITY} "
    else:
        words = "No server is known yet. "
    return tag("p", words, link, ".")


_COMMAND = re.compile("`(grid [^`]+)`")

_HINT_AWAY = "Some servers cannot be reached; try again later."
_HINT_LOOK = "Look for it in the directory, or check the address."
_HINT_ASK = "Look for it in what is shared, or ask the person who sent you the link."
_HINT_CAPABILITY = "If you pasted a capability, check that it is complete."


_TITLES = {
    403: "Not allowed",
    404: "Not found",
    408: "Timed out",
    409: "Nothing was changed",
    410: "This cannot be read",
    413: "Too large",
    500: "Something went wrong",
    503: "Not enough servers",
    507: "The disk is full",
}

_HINTS = {
    404: "It may have been renamed, moved or deleted.",
    500: "See the gateway's log.",
}
