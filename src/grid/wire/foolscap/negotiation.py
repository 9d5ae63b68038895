"""Incoming Foolscap connections and their permits, until the clients have identified themselves.

Foolscap gives each one two minutes for its negotiation, and unlimited time after that. A connection counts as a stranger, whose
permit is the first to go, until it has named an object that is offered here. After that, its last message decides its rank.
"""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IStreamServerEndpoint
from twisted.internet.protocol import Protocol
from zope.interface import implementer

from grid.wire.connections.connect_watch import ConnectWatch
from grid.wire.connections.connection_limit import ConnectionLimit, Permit
from grid.wire.connections.limited_factory import LimitedFactory, deepen_backlog
from grid.wire.connections.sockets import chunk_size, largest_chunk
from grid.wire.foolscap.bulk import BulkNegotiation

HEADER_SIZE = 4096
"""Most bytes of a header: Foolscap refuses more."""


_watches: WeakKeyDictionary[Any, dict[str, ConnectWatch]] = WeakKeyDictionary()
"""By Tub: the watches of its attempts to connect, by TubID."""


def watch_connections(tub: Any, tub_id: str, watch: ConnectWatch) -> None:
    """Report the Tub's attempts to connect to that TubID to this watch, replacing an earlier one."""
    _watches.setdefault(tub, {})[tub_id] = watch


class LimitedNegotiation(BulkNegotiation):
    """A negotiation, and later its broker, that holds a permit if the other side began it."""

    permit: Permit | None = None
    _crowded: Permit | None = None

    def chunk_size(self) -> int:
        """Bytes to encrypt at once: the more connections hold permits, the fewer."""
        return largest_chunk() if self._crowded is None else chunk_size(self._crowded.crowd)

    def connectionMadeServer(self) -> None:
        """Wait for the peer to speak first."""
        if self.permit is not None:
            self._crowded = self.permit
            self.permit.hold(self.transport.abortConnection)
        super().connectionMadeServer()

    def connectionMadeClient(self) -> None:
        """Speak first."""
        watch = self._watch
        if watch is not None:
            watch.accepted()
        super().connectionMadeClient()

    @property
    def _watch(self) -> ConnectWatch | None:
        """The watch of this attempt, if we began it."""
        return _watches.get(self.tub, {}).get(self.target.getTubID()) if self.isClient else None

    def dataReceived(self, chunk: bytes) -> None:
        """Pass on at most a header's bytes and one more. If that was refused, hang up on further data."""
        watch = self._watch
        if watch is not None:
            watch.end()
        if self.failureReason is not None:
            self.transport.abortConnection()
            return
        super().dataReceived(chunk[: HEADER_SIZE + 1 - len(self.buffer)])

    def switchToBanana(self, params: Any) -> None:
        """Hand the permit to the broker, because the negotiation has succeeded."""
        try:
            super().switchToBanana(params)
        finally:
            # Foolscap creates the broker there, and reports the loss of the connection to it instead of to us.
            broker: Any = self.connectionLost.__self__
            if broker is not self and self.permit is not None:
                broker.hold_permit(self.permit)
                self.permit = None

    def negotiationFailed(self) -> None:
        """Release the permit: the negotiation failed, or its connection was lost."""
        super().negotiationFailed()
        if self.permit is not None:
            self.permit.release()


def with_permit(protocol: Any, permit: Permit) -> Any:
    """Give the negotiation that Foolscap made, if any, its permit."""
    if protocol is not None:
        protocol.permit = permit
    return protocol


class _LimitedFoolscapFactory(LimitedFactory):
    """The factory of a port that speaks only Foolscap."""

    def __init__(self, connection_limit: ConnectionLimit, foolscap: Any) -> None:
        super().__init__(connection_limit, foolscap)
        self._foolscap = foolscap

    def open(self, addr: Any, permit: Permit) -> Protocol:
        """A negotiation."""
        protocol: Protocol = with_permit(self._foolscap.buildProtocol(addr), permit)
        return protocol


@implementer(IStreamServerEndpoint)
class FoolscapEndpoint:
    """An endpoint for Foolscap that replaces its own. Its connections hold permits."""

    def __init__(self, endpoint: Any, connection_limit: ConnectionLimit) -> None:
        self._endpoint = endpoint
        self._connection_limit = connection_limit

    def listen(self, factory: Any) -> Deferred[Any]:
        """Listen with Foolscap's factory."""
        listening: Deferred[Any] = self._endpoint.listen(_LimitedFoolscapFactory(self._connection_limit, factory))
        return listening.addCallback(deepen_backlog)
