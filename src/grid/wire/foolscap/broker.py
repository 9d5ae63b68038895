"""Foolscap's broker with a bound on every message, and without work per chunk inside a long string.

Schemas bound the strings and containers that they describe, but not what `any` lets in, nor sums; the bound
here holds for each message as a whole, and a peer which exceeds it is disconnected.
"""

from __future__ import annotations

from typing import Any

from foolscap.banana import b1282int
from foolscap.broker import Broker, PBRootUnslicer
from foolscap.tokens import STRING, BananaError

from grid.limits import MAX_WIRE_MESSAGE

_PREFIX_SIZE = 65


class _RootUnslicer(PBRootUnslicer):
    def receiveChild(self, token: Any, ready_deferred: Any) -> None:
        self.broker.message_ended()
        super().receiveChild(token, ready_deferred)

    def reportViolation(self, failure: Any) -> Any:
        self.broker.message_ended()
        return super().reportViolation(failure)


class BoundedBroker(Broker):
    """One connection, on which no message may be longer than MAX_WIRE_MESSAGE octets."""

    unslicerClass = _RootUnslicer  # noqa: N815 - the name is Foolscap's

    def initReceive(self) -> None:
        """Start with no message."""
        super().initReceive()
        self._message_size = 0
        self._awaited_size = 0

    def message_ended(self) -> None:
        """A whole message has been received, or refused."""
        self._message_size = 0

    def handleData(self, chunk: bytes) -> None:
        """Take what has come; BananaError (the end of the connection) if the message outgrows its bound."""
        self._message_size += len(chunk)
        if self._message_size > MAX_WIRE_MESSAGE:
            raise BananaError("a message longer than any that is accepted here")
        if len(self.buffer) + len(chunk) < self._awaited_size:
            self.buffer.append(chunk)
            return
        super().handleData(chunk)
        self._awaited_size = self._size_of_string_at_head()

    def _size_of_string_at_head(self) -> int:
        """Octets that must be in the buffer before there is anything to do; 0 if that is not known."""
        if not len(self.buffer):
            return 0
        prefix = self.buffer.popleft(_PREFIX_SIZE)
        self.buffer.appendleft(prefix)
        for position, octet in enumerate(prefix):
            if octet >= 0x80:
                is_string = prefix[position : position + 1] == STRING
                return position + 1 + b1282int(prefix[:position]) if is_string else 0
        return 0
