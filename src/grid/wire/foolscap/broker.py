"""Foolscap's broker with bounds on what a connection can make us hold, and no work per chunk inside a long string.

Schemas bound the strings and containers that they describe, but not what `any` lets in, nor sums; the bound
here holds for each message as a whole, and a peer which exceeds it is disconnected. A peer that asks and does
not read the answers is not listened to, and its requests are not carried out, until it has read them.
"""

from __future__ import annotations

import math
from collections import deque
from typing import Any

from foolscap.banana import b1282int, int2b128
from foolscap.broker import Broker, PBRootUnslicer
from foolscap.eventual import eventually
from foolscap.tokens import STRING, BananaError
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IPushProducer
from twisted.logger import Logger
from zope.interface import implementer

from grid.limits import MAX_CALLS_EACH, MAX_MESSAGE_OBJECTS, MAX_UNSENT, MAX_WIRE_MESSAGE, MESSAGE_OBJECT_BYTES
from grid.wire.budget.reservation import Reservation
from grid.wire.connections.connection_limit import Permit, Standing
from grid.wire.connections.sockets import acknowledged_size, set_wake_mark
from grid.wire.foolscap.call_load import CallLoad
from grid.wire.foolscap.outgoing import HeldAnswer, HeldRoom, serving
from grid.wire.foolscap.receive_buffer import ReceiveBuffer

log = Logger()

_PREFIX_SIZE = 65
_FEED_SIZE = 2**14
"""Bytes that are parsed before it is looked at how many calls were in them."""
_LONG_STRING = 4096
_COLLECTED_SIZE = 2**20
"""Bytes of a string from which on it is collected by itself."""
_RECORD_ROOM = 2**15
"""More bytes than one TLS record has."""
_WAKE_SIZE = 2**19
"""Bytes of a long string that are received at once, as far as the kernel's buffers hold them."""


class _Message:
    """The message that is being received: its bytes, and the containers in it."""

    __slots__ = ("objects", "size")

    def __init__(self) -> None:
        self.size = self.objects = 0


class _RootUnslicer(PBRootUnslicer):
    def receiveChild(self, token: Any, ready_deferred: Any) -> None:
        try:
            super().receiveChild(token, ready_deferred)
        finally:
            self.broker.message_ended()

    def reportViolation(self, failure: Any) -> Any:
        self.broker.message_ended()
        return super().reportViolation(failure)


@implementer(IPushProducer)
class BoundedBroker(Broker):
    """One connection: no message longer than MAX_WIRE_MESSAGE bytes, not much more than MAX_UNSENT waiting to go."""

    unslicerClass = _RootUnslicer  # noqa: N815 - the name is Foolscap's
    _permit: Permit | None = None

    def hold_permit(self, permit: Permit) -> None:
        """The connection holds that permit until it is lost."""
        self._permit = permit

    def remote_getReferenceByName(self, name: bytes) -> Any:
        """The object of that name: who knows one is no stranger."""
        found = super().remote_getReferenceByName(name)
        if self._permit is not None:
            self._permit.stand(Standing.IDLE)
        return found

    def connectionLost(self, why: Any) -> None:
        """The connection is gone."""
        if self._permit is not None:
            self._permit.release()
        super().connectionLost(why)

    def initReceive(self) -> None:
        """Start with no message."""
        super().initReceive()
        self.buffer = ReceiveBuffer()
        self._message = _Message()
        self._received_size = 0
        self._awaited_size = 0
        self._wake_mark = 1
        self._unfed: deque[bytes] = deque()
        self._is_feeding = False
        self._load = CallLoad(None, self._listen, self.give_up)

    def initSend(self) -> None:
        """Start with nothing to send."""
        super().initSend()
        self._unsent_size = 0
        self._is_clogged = False
        self._is_full = False
        self._held = HeldRoom()
        self.layer: Any = None

    def connectionMade(self) -> None:
        """Begin; the transport says when it has more than it can send, and when it has sent all."""
        self._load = CallLoad(
            getattr(self.tub, "server_memory", None), self._listen, self.give_up, lambda: self.peer_address
        )
        self.transport.registerProducer(self, True)
        super().connectionMade()

    def pauseProducing(self) -> None:
        """The transport cannot keep up: from now on count what waits."""
        self._is_clogged = True

    def resumeProducing(self) -> None:
        """The transport has sent everything."""
        self._is_clogged = False
        self._unsent_size = 0
        self._release_sent()
        self._held.drained()
        if self._is_full:
            self._is_full = False
            self._resume()
            eventually(self.doNextCall)

    def sent_up_to(self, position: int) -> None:
        """The transport has sent that many bytes, counted from the beginning."""
        self._release_sent(position)

    def _release_sent(self, position: float = math.inf) -> None:
        """Release what is held of answers that end there, or before."""
        if not self.rootSlicer.sendQueue:
            self._held.release_up_to(position)

    async def sent(self, room: Reservation) -> None:
        """Return when what was written, held by the reservation, is sent; never if the connection is lost."""
        if self.disconnected:
            room.release()
            await Deferred[None]()
        elif self._is_clogged:
            await self._held.until_drained(room)

    def settle(self) -> None:
        """Release what was held because of an answer that took its time."""
        if not self._is_clogged:
            self._release_sent()

    def abandon(self, why: Any) -> Deferred[None]:
        """The answer that is being sent cannot be completed: the peer must see that. It never fires."""
        log.warn("an answer was cut short: {reason}", reason=why.getErrorMessage())
        self.give_up()
        return Deferred()

    def _hold(self, room: Reservation) -> None:
        """Release the reservation when what was written so far is sent."""
        if self.disconnected or not (self._is_clogged or self.rootSlicer.sendQueue):
            room.release()
            return
        self._held.hold(room, math.inf if self.layer is None else self.layer.written_size)

    @property
    def is_gone(self) -> bool:
        """Whether the connection is lost."""
        return bool(self.disconnected)

    @property
    def peer_address(self) -> str | None:
        """Where the client is, if its connection holds a permit."""
        return None if self._permit is None else self._permit.address

    @property
    def received_size(self) -> int:
        """Bytes that the peer has received, or at least the socket has taken."""
        size = acknowledged_size(self.transport)
        return size if size is not None else 0 if self.layer is None else int(self.layer.fed_size)

    def give_up(self) -> None:
        """Close now: the peer takes, or sends, too slowly."""
        if self.transport is not None:
            self.transport.abortConnection()

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

    def _listen(self, is_listening: bool) -> None:
        if is_listening:
            self._resume()
        else:
            self.transport.pauseProducing()

    def _resume(self) -> None:
        """Take what is here already, and then more from the socket, unless something speaks against it."""
        if not self._is_full and self._load.is_listening and not self.disconnected:
            self.transport.resumeProducing()
            if self._unfed:
                eventually(self.dataReceived, b"")

    def scheduleCall(self, delivery: Any, ready_deferred: Any) -> None:
        """A call has come."""
        self._load.call_came(delivery)
        super().scheduleCall(delivery, ready_deferred)

    def _callFinished(self, res: Any, delivery: Any) -> None:
        """Send the answer; what it holds is held until it is sent."""
        held = isinstance(res, HeldAnswer)
        if self.disconnected:
            if held:
                res.room.release()
            self._ended(delivery)
            return
        try:
            super()._callFinished(res.value if held else res, delivery)
        finally:
            if held:
                self._hold(res.room)
            self._ended(delivery)

    def _ended(self, delivery: Any) -> None:
        self._load.call_ended(delivery)
        if self.inboundDeliveryQueue:
            eventually(self.doNextCall)

    def callFailed(self, f: Any, reqID: int, delivery: Any = None) -> None:  # noqa: N803 - the name is Foolscap's
        """Send the error."""
        self._ended(delivery)
        super().callFailed(f, reqID, delivery)

    def doNextCall(self) -> None:
        """Carry out the next request, unless too much waits to be sent, or too many are being carried out."""
        if not self._is_full and self._load.call_count - len(self.inboundDeliveryQueue) < MAX_CALLS_EACH:
            super().doNextCall()

    def _doCall(self, delivery: Any) -> Any:
        """Carry a request out, and let go of its arguments.

        What has parsed them refers to itself, and would keep a write's megabytes until garbage is collected; so would what
        it notes of containers, to which the rest of the message might have referred.
        """
        serving.append(self)
        try:
            return super()._doCall(delivery)
        finally:
            serving.pop()
            parsed = delivery.allargs
            parsed.args, parsed.kwargs = [], {}
            for scope in (parsed, parsed.parent):
                scope.references.clear()

    def finish(self, why: Any) -> None:
        """The connection is lost: nothing that was to be sent is held any longer."""
        super().finish(why)
        self._load.close()
        self._unfed.clear()
        self._held.release_all()

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
        self._message.size = self._message.objects = 0
        self._load.message_ended()
        if self._permit is not None and self._permit.standing is not Standing.STRANGER:
            self._permit.stand(self._permit.standing)

    def handleOpen(self, openCount: int, objectCount: int, indexToken: Any) -> None:  # noqa: N803 - Foolscap's names
        """A container begins; BananaError if its message has too many."""
        self._message.objects += 1
        if self._message.objects > MAX_MESSAGE_OBJECTS:
            raise BananaError("a message of more parts than the limit")
        super().handleOpen(openCount, objectCount, indexToken)

    def handleData(self, chunk: bytes) -> None:
        """Take what has come; BananaError (the end of the connection) if the message outgrows its bound.

        Once the connection is given up nobody waits for the rest of an answer, and what comes still is ignored.
        """
        if not self.disconnected:
            self._received_size += len(chunk)
            self._unfed.append(chunk)
            self._feed()

    def _feed(self) -> None:
        """Parse what is here, but not many more calls than may be under way at once."""
        if self._is_feeding:
            return
        self._is_feeding = True
        try:
            while self._unfed and self._load.is_listening and not self.disconnected:
                chunk = self._unfed.popleft()
                room = max(_FEED_SIZE, self._awaited_size - len(self.buffer))
                if len(chunk) > room:
                    self._unfed.appendleft(chunk[room:])
                    chunk = chunk[:room]
                self._parse(chunk)
        finally:
            self._is_feeding = False

    def _parse(self, chunk: bytes) -> None:
        self._message.size += len(chunk)
        if self._message.size > MAX_WIRE_MESSAGE:
            raise BananaError("a message longer than the limit")
        if len(self.buffer) + len(chunk) < self._awaited_size:
            self.buffer.append(chunk)
        else:
            super().handleData(chunk)
            self._awaited_size = self._size_of_string_at_head()
        if (
            self.buffer or self.inOpen or len(self.receiveStack) > 1
        ):  # Not the message's size: what keeps a connection alive counts there too.
            self._load.message_began(self._received_size)
        missing = max(0, self._awaited_size - len(self.buffer))
        self._wait_for(missing - sum(map(len, self._unfed)))
        self._load.message_holds(
            self._message.size + missing + MESSAGE_OBJECT_BYTES * self._message.objects, self._received_size
        )

    def _wait_for(self, missing: int) -> None:
        """Be woken when much of a long string has come, rather than for each of its packets.

        missing: bytes of it that are yet to come; at least as many more will come, encrypted or not, except those
        of one record which may be here and not decrypted.
        """
        mark = min(_WAKE_SIZE, missing - _RECORD_ROOM)
        mark = mark if mark >= _RECORD_ROOM else 1
        if mark != self._wake_mark:
            self._wake_mark = mark
            set_wake_mark(self.transport, mark)

    def _size_of_string_at_head(self) -> int:
        """Bytes that must be in the buffer before there is anything to do; 0 if that is not known."""
        prefix = self.buffer.peek(_PREFIX_SIZE)
        for position, byte in enumerate(prefix):
            if byte >= 0x80:
                is_string = prefix[position : position + 1] == STRING
                if not is_string:
                    return 0
                size = int(b1282int(prefix[:position]))
                if size >= _COLLECTED_SIZE:
                    self.buffer.collect(position + 1, size)
                return position + 1 + size
        return 0
