"""A pool whose calls wait until a test releases them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from twisted.internet.defer import Deferred, maybeDeferred

T = TypeVar("T")


class GatedPool:
    """Calls of the functions of those names (none: of all) wait for `release`; others run at once."""

    width = 4

    def __init__(self, *names: str) -> None:
        self._names = names
        self._gates: list[Deferred[Any]] = []

    @property
    def waiting_count(self) -> int:
        """Calls that wait."""
        return len(self._gates)

    def run(self, function: Callable[..., T], *arguments: object) -> Awaitable[T]:
        if self._names and function.__name__ not in self._names:
            outcome: Deferred[T] = maybeDeferred(function, *arguments)
            return outcome
        gate: Deferred[Any] = Deferred()
        self._gates.append(gate)
        return gate.addCallback(lambda _: function(*arguments))

    def release(self) -> None:
        """Run the call that has waited longest."""
        self._gates.pop(0).callback(None)

    def release_all(self) -> None:
        """Run every waiting call, and those that follow from it."""
        while self._gates:
            self.release()
