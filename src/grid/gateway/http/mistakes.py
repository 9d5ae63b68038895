"""The page that a person gets when a request is refused, with the form they sent. [spec webapi 1.6]

Programs get 1.20's line of text instead. A client that sends `Accept: text/html` counts as a browser.
"""

from __future__ import annotations

from grid.caps import UnknownChild
from grid.errors import FormatError, GridError
from grid.gateway.faults import HttpFault, NoSuchChild
from grid.gateway.http.answers import Answer, check_when_done, fault_answer, page
from grid.gateway.http.exchange import Exchange, own_path, parse_child
from grid.gateway.pages import forms
from grid.gateway.pages.links import SHARED, object_path
from grid.gateway.pages.markup import Markup
from grid.gateway.pages.mistakes import Back, render_mistake

_OBJECTS = frozenset({"uri", "cap"})


class Withheld(HttpFault):
    """A fault whose answer is ready: for a body that turns out, at its first byte, not to be sent."""

    def __init__(self, answer: Answer) -> None:
        super().__init__("withheld")
        self.status = answer.status
        self.answer = answer


def refusal(exchange: Exchange | None, fault: HttpFault) -> Answer:
    """The answer for a refused request. exchange: None if the request could not be read."""
    if isinstance(fault, Withheld):
        return fault.answer
    if exchange is None or not exchange.wants_page or fault.shape == "json":
        return fault_answer(fault)
    html = render_mistake(
        fault.status,
        fault.words,
        servers=exchange.gateway.client.servers(),
        retry=_form_again(exchange)
        if fault.status != 500 and not (exchange.is_visit and fault.status == 403)
        else None,
        back=_back(exchange, fault.depth if isinstance(fault, NoSuchChild) else 1),
        is_visit=exchange.is_visit,
    )
    return page(html, fault.status, fault.headers)


def _form_again(exchange: Exchange) -> Markup | None:
    """The form that was sent, filled in as before; None if it was not one of our pages' forms."""
    first, *rest = exchange.segments
    if first not in _OBJECTS:
        return None
    if not any(rest):
        return _unlinked_form(exchange)
    return _directory_form(exchange) if exchange.method == "POST" else None


def _unlinked_form(exchange: Exchange) -> Markup | None:
    arguments, t = exchange.arguments, exchange.arguments.t
    if exchange.method in ("GET", "HEAD"):
        cap, name = arguments.shown("uri") or "", arguments.shown("filename")
        return forms.open_form(cap) if name is None else forms.download_form(cap, name)
    chosen = arguments.shown("format") or ""
    if t == "mkdir":
        return forms.unlinked_mkdir_form(chosen)
    return forms.store_form(chosen) if t in ("", "upload") else None


def _directory_form(exchange: Exchange) -> Markup | None:
    path = own_path(exchange)

    def typed(name: str) -> str:
        return exchange.arguments.shown(name) or ""

    match exchange.arguments.t:
        case "upload":
            return forms.upload_form(path, typed("format"))
        case "mkdir":
            return forms.mkdir_form(path, typed("name"), typed("format"))
        case "uri":
            return forms.link_form(path, typed("name"), typed("uri"))
        case "rename":
            return forms.rename_form(path, typed("from_name"), typed("to_name"))
        case "relink":
            return forms.move_form(path, typed("from_name"), typed("to_dir"))
    return None


def _back(exchange: Exchange, depth: int) -> Back | None:
    """A link back to the form, or to the directory above an object that cannot be shown.

    depth: how many names of the address lead to nothing.
    """
    given = exchange.arguments.shown("when_done")
    if given:
        try:
            return Back(label="Back", path=check_when_done(given, exchange.origin))
        except FormatError:
            return None
    first, *rest = exchange.segments
    if first == SHARED and rest:
        # Relative to the address, since no page has the link's token in it.
        return Back(label="To what is shared", path="../" * (len(rest) - 2) or "./")
    if first not in _OBJECTS or not any(rest) or not _is_capability(rest[0]):
        return None
    if exchange.method == "POST":
        return Back(label="Back to the directory", path=own_path(exchange))
    names = [name for name in rest[1:] if name]
    if len(names) < depth:
        return None
    path = object_path(rest[0], names[: len(names) - depth], directory=True)
    return Back(label="Up to the directory", path=path)


def _is_capability(text: str) -> bool:
    try:
        return not isinstance(parse_child(text).target, UnknownChild)
    except GridError:
        return False
