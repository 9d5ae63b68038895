"""Finds the handler of a path by its first segment. [spec webapi 2]"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from grid.gateway.faults import MethodNotAllowed, NotFound, NotImplementedHere
from grid.gateway.http.answers import AnyAnswer
from grid.gateway.http.exchange import Exchange
from grid.gateway.shared.traffic import KNOWN_METHODS

Handler = Callable[[Exchange], Awaitable[AnyAnswer]]


_MORE_METHODS = frozenset({("OPTIONS", ""), ("OPTIONS", "uploads"), ("PATCH", "uploads")})
"""Other methods, with their first segments. Load balancers send OPTIONS for the root to learn whether the gateway is alive."""


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
        """Run the handler; NotFound if there is none, NotImplementedHere for a method that no handler knows."""
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
