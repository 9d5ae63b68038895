"""Finds the handler of a path by its first segment. [spec webapi 2]

Owns what a read-only gateway answers to visitors: what their capabilities lead to, and nothing of the node. A visitor is
everyone but a browser on this machine that `grid web` opened. That a request comes from this machine is not enough: other
users have browsers here too, and a proxy passes on everybody's requests.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from grid.gateway.faults import Forbidden, MethodNotAllowed, NotFound, NotImplementedHere
from grid.gateway.http.answers import AnyAnswer
from grid.gateway.http.exchange import Exchange
from grid.gateway.http.forms import URLENCODED
from grid.gateway.pages.links import SHARED
from grid.gateway.shared.traffic import KNOWN_METHODS

Handler = Callable[[Exchange], Awaitable[AnyAnswer]]


_MORE_METHODS = frozenset({("OPTIONS", ""), ("OPTIONS", "uploads"), ("PATCH", "uploads")})
"""Other methods, with their first segments. Load balancers send OPTIONS for the root to learn whether the gateway is alive."""

_OBJECTS = frozenset({"uri", "cap"})
_SHOWN = _OBJECTS | {"", "assets", "file", "named", "healthz", "readyz", "tahoe.css", "css", "icon.png", "favicon.ico", "img"}  # fmt: skip
"""First segments that visitors may read."""

_GUARDED = frozenset({"home", "private", SHARED})
"""First segments whose handlers check the sender themselves: the way in for browsers that `grid web` opens, the log, and
share links.
"""

_CHANGING_VIEWS = frozenset({"rename-form"})
"""The values of `t` with which GET offers a change, and does nothing else."""

_READS = frozenset({"GET", "HEAD", "OPTIONS"})


class Routes:
    """Handlers by first segment; "" is the root."""

    def __init__(self) -> None:
        self._handlers: dict[str, Handler] = {}
        self._former: dict[str, Handler] = {}

    def add(self, handlers: Mapping[str, Handler]) -> None:
        """Add handlers; ValueError if a segment already has one."""
        for segment, handler in handlers.items():
            if segment in self._handlers:
                raise ValueError(f"two handlers for /{segment}")
            self._handlers[segment] = handler

    def add_former(self, handlers: Mapping[str, Handler]) -> None:
        """Add handlers of former addresses, which programs may still use and which the API description omits."""
        self._former.update(handlers)

    @property
    def segments(self) -> frozenset[str]:
        """All first segments except those of former addresses."""
        return frozenset(self._handlers)

    async def dispatch(self, exchange: Exchange) -> AnyAnswer:
        """Run the handler; NotFound if there is none, NotImplementedHere for a method that no handler knows, Forbidden
        if it is not for visitors.
        """
        refuse_visitors(exchange)
        segment = exchange.segments[0]
        if exchange.method not in KNOWN_METHODS and (exchange.method, segment) not in _MORE_METHODS:
            raise NotImplementedHere("the method is not known here")
        handler = self._handlers.get(segment) or self._former.get(segment)
        if handler is None:
            raise NotFound("there is no such page", shape="page")
        return await handler(exchange)


def allow(exchange: Exchange, *methods: str) -> None:
    """Raise MethodNotAllowed unless the method is one of these."""
    if exchange.method not in methods:
        raise MethodNotAllowed("this resource does not support that method", headers=(("Allow", ", ".join(methods)),))


def refuse_visitors(exchange: Exchange) -> None:
    """Raise Forbidden if a visitor asks a read-only gateway for more than reading files and directories."""
    first = exchange.segments[0]
    if first in _GUARDED or not exchange.is_visit:
        return
    t = exchange.arguments.t
    if first not in _SHOWN or (first == "" and t):
        raise Forbidden(f"this gateway shows visitors files and directories only; {_WAY_IN}")
    is_reading = exchange.method in _READS and not (first in _OBJECTS and t in _CHANGING_VIEWS)
    if not is_reading and not _is_archive(exchange):
        raise Forbidden(
            f"this gateway is read-only for visitors: they cannot store, change or check anything through it; {_WAY_IN}"
        )


_WAY_IN = "if it is yours, run `grid web` on its machine"


def _is_archive(exchange: Exchange) -> bool:
    """Whether a form asks for several entries as an archive. Its query decides: a form's fields never override one."""
    if exchange.method != "POST" or exchange.segments[0] not in _OBJECTS or exchange.arguments.t != "zip":
        return False
    # Of this type, a form holds no file that would be kept on disk.
    return exchange.body.content_type.partition(";")[0].strip().lower() == URLENCODED
