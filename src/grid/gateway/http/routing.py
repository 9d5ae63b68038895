"""Which handler answers which path, by its first segment. [spec webapi 2]"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from grid.gateway.faults import MethodNotAllowed, NotFound, NotImplementedHere
from grid.gateway.http.answers import AnyAnswer
from grid.gateway.http.exchange import Exchange
from grid.gateway.shared.traffic import KNOWN_METHODS

Handler = Callable[[Exchange], Awaitable[AnyAnswer]]


class Routes:
    """Handlers by first segment; "" is the root."""

    def __init__(self) -> None:
        self._handlers: dict[str, Handler] = {}
        self._former: dict[str, Handler] = {}

    def add(self, handlers: Mapping[str, Handler]) -> None:
        """More of them; ValueError if two are for one segment."""
        for segment, handler in handlers.items():
            if segment in self._handlers:
                raise ValueError(f"two handlers for /{segment}")
            self._handlers[segment] = handler

    def add_former(self, handlers: Mapping[str, Handler]) -> None:
        """Handlers of addresses that pages once had and programs may have kept: no part of what is described."""
        self._former.update(handlers)

    @property
    def segments(self) -> frozenset[str]:
        """All first segments, but for those of former addresses."""
        return frozenset(self._handlers)

    async def dispatch(self, exchange: Exchange) -> AnyAnswer:
        """The handler's answer; NotFound if there is none, NotImplementedHere for a method that nothing knows."""
        segment = exchange.segments[0]
        # Load balancers ask for the options of the root to know whether the gateway is alive.
        if exchange.method not in KNOWN_METHODS and (exchange.method, segment) != ("OPTIONS", ""):
            raise NotImplementedHere("the method is not known here")
        handler = self._handlers.get(segment) or self._former.get(segment)
        if handler is None:
            raise NotFound("there is no such page", shape="page")
        return await handler(exchange)


def allow(exchange: Exchange, *methods: str) -> None:
    """MethodNotAllowed unless the method is one of these."""
    if exchange.method not in methods:
        raise MethodNotAllowed("this resource has other methods", headers=(("Allow", ", ".join(methods)),))
