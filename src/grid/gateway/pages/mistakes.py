"""What a person is shown when a request is refused: what happened, what they typed, and the way back. Pure.

Never the name of an error's class, nor a guess about servers that what is known of them contradicts.
"""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen

from grid.gateway.pages.markup import Markup, tag
from grid.gateway.pages.shell import card, document, notice
from grid.gateway.shared.node_view import ServerView
from grid.plural import counted


@frozen(kw_only=True)
class Back:
    """Where to go on from a page that could not be shown."""

    label: str
    path: str


def render_mistake(
    status: int, message: str, *, servers: Sequence[ServerView], retry: Markup | None = None, back: Back | None = None
) -> str:
    """retry: the form again, with what was typed into it."""
    title = _TITLES.get(status, "That did not work")
    home = tag("a", "Home", class_="button quiet", href="/")
    back_link = tag("a", back.label, class_="button", href=back.path, data_close=True) if back is not None else None
    return document(
        title,
        tag("h1", title),
        notice("bad", tag("p", sentence(message))),
        card("Try again", retry) if retry is not None else None,
        _hint(status, servers),
        tag("p", back_link, " ", home),
    )


def sentence(message: str) -> str:
    """A message of the gateway as a sentence."""
    first, rest = message[:1], message[1:]
    # What begins with the name of an argument keeps it as it is.
    begins = first.upper() if not message.partition(" ")[0].endswith("=") else first
    return f"{begins}{rest}" if message.endswith((".", "?", "!")) else f"{begins}{rest}."


def _hint(status: int, servers: Sequence[ServerView]) -> Markup | None:
    if status in (410, 503):
        return servers_hint(servers)
    words = _HINTS.get(status)
    return tag("p", words) if words else None


def _all(count: int) -> str:
    return "The one known server is" if count == 1 else f"All {count} known servers are"


def servers_hint(servers: Sequence[ServerView]) -> Markup:
    """What the state of the servers says of something that cannot be read or stored."""
    away = sum(not server.is_connected for server in servers)
    link = tag("a", "See the servers", href="/servers")
    if away:
        words = f"{away} of {counted(len(servers), 'server')} cannot be reached; it may work once they are back. "
    elif servers:
        words = f"{_all(len(servers))} connected. If you pasted a capability, check that it is complete. "
    else:
        words = "No server is known yet. "
    return tag("p", words, link, ".")


_TITLES = {
    403: "Not allowed",
    404: "Not found",
    408: "Too slow",
    409: "Nothing was changed",
    410: "This cannot be read",
    413: "Too large",
    500: "Something went wrong",
    503: "Not enough servers",
    507: "The disk is full",
}

_HINTS = {
    404: "It may have been renamed, moved or deleted.",
    500: "See the log of the gateway.",
}
