"""Incoming connections until they have said who they are: no more than a number of them at once.

Foolscap gives each one two minutes to finish its negotiation. Without a bound, whoever opens connections and says
nothing uses up the descriptors of a node, and nobody else gets in; with it, the oldest of them gives way.
"""

from __future__ import annotations

from typing import Any, ClassVar

from grid.limits import MAX_NEGOTIATIONS
from grid.wire.foolscap.bulk import BulkNegotiation

HEADER_SIZE = 4096
"""Octets that Foolscap allows a header; it refuses more."""


class BoundedNegotiation(BulkNegotiation):
    """A negotiation that is given up when it is the oldest of too many, in this process, that others began."""

    limit: ClassVar[int] = MAX_NEGOTIATIONS
    waiting: ClassVar[dict[BoundedNegotiation, None]] = {}

    def connectionMadeServer(self) -> None:
        """Wait for the peer to speak."""
        self.waiting[self] = None
        super().connectionMadeServer()
        if len(self.waiting) > self.limit:
            oldest = next(iter(self.waiting))
            del self.waiting[oldest]
            oldest.transport.abortConnection()

    def dataReceived(self, chunk: bytes) -> None:
        """Take what a header may have, and an octet that is too many; once that was refused, hang up on more."""
        if self.failureReason is not None:
            self.transport.abortConnection()
            return
        super().dataReceived(chunk[: HEADER_SIZE + 1 - len(self.buffer)])

    def switchToBanana(self, params: Any) -> None:
        """The negotiation has succeeded."""
        self.waiting.pop(self, None)
        super().switchToBanana(params)

    def negotiationFailed(self) -> None:
        """The negotiation has failed, or its connection was lost."""
        self.waiting.pop(self, None)
        super().negotiationFailed()
