"""The factory under a listening port: every connection gets a permit or is closed at once."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, TypeVar

from twisted.internet.protocol import Factory, Protocol

from grid.wire.connections.connection_limit import ConnectionLimit, Permit

BACKLOG = 1024
"""Connections that the system accepts in advance. Beyond the usual 50 it drops new ones, honest or not, and their
clients try again after a second."""

T = TypeVar("T")


def deepen_backlog(port: T) -> T:
    """Deepen the backlog of a listening port, for bursts of connections. Returns the port."""
    handle = getattr(port, "socket", None)
    if handle is not None and getattr(port, "backlog", BACKLOG) < BACKLOG:
        handle.listen(BACKLOG)
    return port


class LimitedFactory(Factory, ABC):
    """A factory whose protocols hold permits. A protocol calls `hold` to say how to end it, and `release` when it has ended."""

    noisy = False

    def __init__(self, connection_limit: ConnectionLimit, inner: Any = None) -> None:
        """inner: a factory that starts and stops with this one."""
        self._connection_limit = connection_limit
        self._inner = inner

    def doStart(self) -> None:
        """Start both."""
        super().doStart()  # type: ignore[no-untyped-call]
        if self._inner is not None:
            self._inner.doStart()

    def doStop(self) -> None:
        """Stop both."""
        if self._inner is not None:
            self._inner.doStop()
        super().doStop()  # type: ignore[no-untyped-call]

    def buildProtocol(self, addr: Any) -> Protocol | None:
        """The protocol of a connection; None closes it."""
        permit = self._connection_limit.acquire(getattr(addr, "host", None))
        return None if permit is None else self.open(addr, permit)

    @abstractmethod
    def open(self, addr: Any, permit: Permit) -> Protocol | None:
        """The protocol of a connection that holds its permit."""
