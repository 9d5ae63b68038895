"""Foolscap's broker with bounds on what a connection can make us hold, and no work per chunk inside a long string.

Schemas bound the strings and containers that they describe, but not what `any` lets in, nor sums; the bound
here holds for each message as a whole, and a peer which exceeds it is disconnected. A peer that asks and does
not read the answers is not listened to, and its requests are not carried out, until it has read them.
"""

from __future__ import annotations

from typing import Any

from foolscap.banana import b1282int, int2b128
from foolscap.broker import Broker, PBRootUnslicer
from foolscap.eventual import eventually
from foolscap.tokens import STRING, BananaError
from twisted.internet.interfaces import IPushProducer
from zope.interface import implementer

from grid.limits import MAX_UNSENT, MAX_WIRE_MESSAGE
from grid.wire.foolscap.receive_buffer import ReceiveBuffer
from grid.wire.places import Place, Standing
from grid.wire.wakemark import set_wake_mark

_PREFIX_SIZE = 65
_LONG_STRING = 4096
_RECORD_ROOM = 2**15
"""More octets than one TLS record has."""
_WAKE_SIZE = 2**19
"""Octets of a long string that are received at once, as far as the kernel's buffers hold them."""


class _RootUnslicer(PBRootUnslicer):
    def receiveChild(self, token: Any, ready_deferred: Any) -> None:
        self.broker.message_ended()
        super().receiveChild(token, ready_deferred)

    def reportViolation(self, failure: Any) -> Any:
        self.broker.message_ended()
        return super().reportViolation(failure)


@implementer(IPushProducer)
class BoundedBroker(Broker):
    """One connection: no message longer than MAX_WIRE_MESSAGE octets, not much more than MAX_UNSENT waiting to go."""

    unslicerClass = _RootUnslicer  # noqa: N815 - the name is Foolscap's
    _place: Place | None = None

    def hold_place(self, place: Place) -> None:
        """The connection holds that place until it is lost."""
        self._place = place

    def remote_getReferenceByName(self, name: bytes) -> Any:
        """The object of that name: who knows one is no stranger."""
        found = super().remote_getReferenceByName(name)
        if self._place is not None:
            self._place.stand(Standing.IDLE)
        return found

    def connectionLost(self, why: Any) -> None:
        """The connection is gone."""
        if self._place is not None:
            self._place.leave()
        super().connectionLost(why)

    def initReceive(self) -> None:
        """Start with no message."""
        super().initReceive()
        self.buffer = ReceiveBuffer()
        self._message_size = 0
        self._awaited_size = 0
        self._wake_mark = 1

    def initSend(self) -> None:
        """Start with nothing to send."""
        super().initSend()
        self._unsent_size = 0
        self._is_clogged = False
        self._is_full = False

    def connectionMade(self) -> None:
        """Begin; the transport says when it has more than it can send, and when it has sent all."""
        self.transport.registerProducer(self, True)
        super().connectionMade()

    def pauseProducing(self) -> None:
        """The transport cannot keep up: from now on count what waits."""
        self._is_clogged = True

    def resumeProducing(self) -> None:
        """The transport has sent everything."""
        self._is_clogged = False
        self._unsent_size = 0
        if self._is_full:
            self._is_full = False
            self.transport.resumeProducing()
            eventually(self.doNextCall)

    def stopProducing(self) -> None:
        """The transport is gone; connectionLost says so as well."""

    def sendToken(self, token: Any) -> None:
        """Send a token; if too much waits then, stop listening until it is sent."""
        if isinstance(token, bytes) and len(token) > _LONG_STRING:
            # What Foolscap sends for it, without looking a megabyte up in a table of abbreviations.
            int2b128(len(token), self.transport.write)
            self.transport.write(STRING)
            self.transport.write(token)
        else:
            super().sendToken(token)
        if self._is_clogged and isinstance(token, bytes):
            self._unsent_size += len(token)
            if self._unsent_size > MAX_UNSENT and not self._is_full:
                self._is_full = True
                self.transport.pauseProducing()

    def doNextCall(self) -> None:
        """Carry out the next request, unless too much waits to be sent."""
        if not self._is_full:
            super().doNextCall()

    def _doCall(self, delivery: Any) -> Any:
        """Carry a request out, and let go of its arguments.

        What has parsed them refers to itself, and would keep a write's megabytes until garbage is collected; so would what
        it notes of containers, to which the rest of the message might have referred.
        """
        try:
            return super()._doCall(delivery)
        finally:
            parsed = delivery.allargs
            parsed.args, parsed.kwargs = [], {}
            for scope in (parsed, parsed.parent):
                scope.references.clear()

    def _let_go(self) -> None:
        # A transport with a producer would wait for it before it closes.
        if self.transport is not None:
            self.transport.unregisterProducer()

    def shutdown(self, why: Any, fireDisconnectWatchers: bool = True) -> None:  # noqa: N803 - the name is Foolscap's
        """End the connection."""
        super().shutdown(why, fireDisconnectWatchers)
        self._let_go()

    def sendError(self, msg: Any) -> None:
        """Tell the peer why, and end the connection."""
        super().sendError(msg)
        self._let_go()

    def sendFailed(self, f: Any) -> None:
        """End the connection after a message that could not be sent."""
        super().sendFailed(f)
        self._let_go()

    def handleError(self, msg: Any) -> None:
        """End the connection because the peer said so."""
        super().handleError(msg)
        self._let_go()

    def message_ended(self) -> None:
        """A whole message has been received, or refused."""
        self._message_size = 0
        if self._place is not None and self._place.standing is not Standing.STRANGER:
            self._place.stand(self._place.standing)

    def handleData(self, chunk: bytes) -> None:
        """Take what has come; BananaError (the end of the connection) if the message outgrows its bound.

        Once the connection is given up nobody waits for the rest of an answer, and what comes still is ignored.
        """
        if self.disconnected:
            return
        self._message_size += len(chunk)
        if self._message_size > MAX_WIRE_MESSAGE:
            raise BananaError("a message longer than any that is accepted here")
        if len(self.buffer) + len(chunk) < self._awaited_size:
            self.buffer.append(chunk)
        else:
            super().handleData(chunk)
            self._awaited_size = self._size_of_string_at_head()
        self._wait_for(self._awaited_size - len(self.buffer))

    def _wait_for(self, missing: int) -> None:
        """Be woken when much of a long string has come, rather than for each of its packets.

        missing: octets of it that are yet to come; so many more at least will come, encrypted or not, but for those
        of one record which may be here and not decrypted.
        """
        mark = min(_WAKE_SIZE, missing - _RECORD_ROOM)
        mark = mark if mark >= _RECORD_ROOM else 1
        if mark != self._wake_mark:
            self._wake_mark = mark
            set_wake_mark(self.transport, mark)

    def _size_of_string_at_head(self) -> int:
        """Octets that must be in the buffer before there is anything to do; 0 if that is not known."""
        prefix = self.buffer.peek(_PREFIX_SIZE)
        for position, octet in enumerate(prefix):
            if octet >= 0x80:
                is_string = prefix[position : position + 1] == STRING
                return position + 1 + b1282int(prefix[:position]) if is_string else 0
        return 0
