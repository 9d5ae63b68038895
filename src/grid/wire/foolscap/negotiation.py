"""Incoming Foolscap connections until they have said who they are, with the permits that they hold.

Foolscap gives each one two minutes to finish its negotiation, and then any time at all. A connection is a stranger's, whose
permit is the first to go, until it has named an object that is offered here; after that it is as recent as its last message.
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
"""Bytes that Foolscap allows a header; it refuses more."""


_watches: WeakKeyDictionary[Any, dict[str, ConnectWatch]] = WeakKeyDictionary()
"""By Tub: who watches its attempts to connect to each TubID."""


def watch_connections(tub: Any, tub_id: str, watch: ConnectWatch) -> None:
    """Have the watch hear of the Tub's connections to that one, in place of the watch before it."""
    _watches.setdefault(tub, {})[tub_id] = watch


class LimitedNegotiation(BulkNegotiation):
    """A negotiation, and after it a broker, with a permit if somebody else began it."""

    permit: Permit | None = None
    _crowded: Permit | None = None

    def chunk_size(self) -> int:
        """Bytes to encrypt at once: fewer, the more connections hold permits."""
        return largest_chunk() if self._crowded is None else chunk_size(self._crowded.crowd)

    def connectionMadeServer(self) -> None:
        """Wait for the peer to speak."""
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
        """Who watches this attempt, if it is ours."""
        return _watches.get(self.tub, {}).get(self.target.getTubID()) if self.isClient else None

    def dataReceived(self, chunk: bytes) -> None:
        """Take what a header may have, and a byte that is too many; once that was refused, hang up on more."""
        watch = self._watch
        if watch is not None:
            watch.end()
        if self.failureReason is not None:
            self.transport.abortConnection()
            return
        super().dataReceived(chunk[: HEADER_SIZE + 1 - len(self.buffer)])

    def switchToBanana(self, params: Any) -> None:
        """The negotiation has succeeded: the permit is the broker's from now on."""
        try:
            super().switchToBanana(params)
        finally:
            # Foolscap makes the broker in there, and notifies it of the loss of the connection instead of us.
            broker: Any = self.connectionLost.__self__
            if broker is not self and self.permit is not None:
                broker.hold_permit(self.permit)
                self.permit = None

    def negotiationFailed(self) -> None:
        """The negotiation has failed, or its connection was lost."""
        super().negotiationFailed()
        if self.permit is not None:
            self.permit.release()


def with_permit(protocol: Any, permit: Permit) -> Any:
    """The negotiation that Foolscap made, if it made one, with its permit."""
    if protocol is not None:
        protocol.permit = permit
    return protocol


class _LimitedFoolscapFactory(LimitedFactory):
    """A port that speaks nothing else."""

    def __init__(self, connection_limit: ConnectionLimit, foolscap: Any) -> None:
        super().__init__(connection_limit, foolscap)
        self._foolscap = foolscap

    def open(self, addr: Any, permit: Permit) -> Protocol:
        """A negotiation."""
        protocol: Protocol = with_permit(self._foolscap.buildProtocol(addr), permit)
        return protocol


@implementer(IStreamServerEndpoint)
class FoolscapEndpoint:
    """An endpoint to give to Foolscap in place of its own, whose connections hold permits."""

    def __init__(self, endpoint: Any, connection_limit: ConnectionLimit) -> None:
        self._endpoint = endpoint
        self._connection_limit = connection_limit

    def listen(self, factory: Any) -> Deferred[Any]:
        """Listen; the factory is Foolscap's."""
        listening: Deferred[Any] = self._endpoint.listen(_LimitedFoolscapFactory(self._connection_limit, factory))
        return listening.addCallback(deepen_backlog)
