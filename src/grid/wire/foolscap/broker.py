"""Foolscap's broker with limits on what a connection can make us hold, and without work per chunk inside a long string.

Schemas limit the strings and containers that they describe, but neither what `any` admits nor sums. The limit
here applies to each message as a whole, and a peer that exceeds it is disconnected. A peer that sends requests and does
not read the answers is not read from, and its requests are not carried out, until it has read them.
"""

from __future__ import annotations

import math
from collections import deque
from typing import Any

from foolscap.banana import b1282int
from foolscap.broker import PBRootUnslicer
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
from grid.wire.foolscap.tokens import TokenBroker

log = Logger()

_PREFIX_SIZE = 65
_FEED_SIZE = 2**14
"""Bytes to parse before counting the calls in them."""
_COLLECTED_SIZE = 2**20
"""A string of at least this many bytes is collected separately."""
_RECORD_ROOM = 2**15
"""More bytes than one TLS record has."""
_WAKE_SIZE = 2**19
"""Bytes of a long string to receive at once, as far as the kernel's buffers hold them."""


class _Message:
    """The message being received: its bytes, and the containers in it."""

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
class BoundedBroker(TokenBroker):
    """One connection: no message exceeds MAX_WIRE_MESSAGE bytes, and not much more than MAX_UNSENT bytes wait to be sent."""

    unslicerClass = _RootUnslicer  # noqa: N815 - the name is Foolscap's
    _permit: Permit | None = None

    def hold_permit(self, permit: Permit) -> None:
        """Hold that permit until the connection is lost."""
        self._permit = permit

    def remote_getReferenceByName(self, name: bytes) -> Any:
        """Look up an object by name. A client that knows a name is no stranger."""
        found = super().remote_getReferenceByName(name)
        if self._permit is not None:
            self._permit.stand(Standing.IDLE)
        return found

    def connectionLost(self, why: Any) -> None:
        """Handle the loss of the connection."""
        if self._permit is not None:
            self._permit.release()
        super().connectionLost(why)

    def initReceive(self) -> None:
        """Start without a message."""
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
        """Start, and ask the transport to report when it is full and when it has sent everything."""
        self._load = CallLoad(
            getattr(self.tub, "server_memory", None), self._listen, self.give_up, lambda: self.peer_address
        )
        self.transport.registerProducer(self, True)
        super().connectionMade()

    def pauseProducing(self) -> None:
        """Count what waits from now on, because the transport is full."""
        self._is_clogged = True

    def resumeProducing(self) -> None:
        """Resume: the transport has sent everything."""
        self._is_clogged = False
        self._unsent_size = 0
        self._release_sent()
        self._held.drained()
        if self._is_full:
            self._is_full = False
            self._resume()
            eventually(self.doNextCall)

    def sent_up_to(self, position: int) -> None:
        """Note that the transport has sent this many bytes, counted from the start."""
        self._release_sent(position)

    def _release_sent(self, position: float = math.inf) -> None:
        """Release what is held for answers that end by that position."""
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
        """Release what was held because an answer took its time."""
        if not self._is_clogged:
            self._release_sent()

    def abandon(self, why: Any) -> Deferred[None]:
        """Cut the connection, because the answer being sent cannot be completed and the peer must notice. Never fires."""
        log.warn("an answer was cut short: {reason}", reason=why.getErrorMessage())
        self.give_up()
        return Deferred()

    def _hold(self, room: Reservation) -> None:
        """Release the reservation when everything written so far is sent."""
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
        """The client's address, if its connection holds a permit."""
        return None if self._permit is None else self._permit.address

    @property
    def received_size(self) -> int:
        """Bytes that the peer has received, or at least the socket has taken."""
        size = acknowledged_size(self.transport)
        return size if size is not None else 0 if self.layer is None else int(self.layer.fed_size)

    def give_up(self) -> None:
        """Close now, because the peer reads or sends too slowly."""
        if self.transport is not None:
            self.transport.abortConnection()

    def stopProducing(self) -> None:
        """Do nothing: connectionLost follows."""

    def sendToken(self, token: Any) -> None:
        """Send a token. If too much waits then, stop reading until it is sent."""
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
        """Parse what is here already, then read more from the socket, unless there is a reason not to."""
        if not self._is_full and self._load.is_listening and not self.disconnected:
            self.transport.resumeProducing()
            if self._unfed:
                eventually(self.dataReceived, b"")

    def scheduleCall(self, delivery: Any, ready_deferred: Any) -> None:
        """Take in a complete call."""
        self._load.call_came(delivery)
        super().scheduleCall(delivery, ready_deferred)

    def _callFinished(self, res: Any, delivery: Any) -> None:
        """Send the answer. What it holds is held until it is sent."""
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
        """Carry out the next request, unless too much waits to be sent or too many are running."""
        if not self._is_full and self._load.call_count - len(self.inboundDeliveryQueue) < MAX_CALLS_EACH:
            super().doNextCall()

    def _doCall(self, delivery: Any) -> Any:
        """Carry out a request, and release its arguments.

        The parser of the arguments refers to itself, and would keep a write's megabytes until a garbage collection. So would
        its table of containers, to which the rest of the message might have referred.
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
        """Handle the loss: release everything that was to be sent."""
        super().finish(why)
        self._load.close()
        self._unfed.clear()
        self._held.release_all()

    def _let_go(self) -> None:
        # A transport with a producer would wait for the producer before it closes.
        if self.transport is not None:
            self.transport.unregisterProducer()

    def shutdown(self, why: Any, fireDisconnectWatchers: bool = True) -> None:  # noqa: N803 - the name is Foolscap's
        """End the connection."""
        super().shutdown(why, fireDisconnectWatchers)
        self._let_go()

    def sendError(self, msg: Any) -> None:
        """Send the reason to the peer, and end the connection."""
        super().sendError(msg)
        self._let_go()

    def sendFailed(self, f: Any) -> None:
        """End the connection after a message that could not be sent."""
        super().sendFailed(f)
        self._let_go()

    def handleError(self, msg: Any) -> None:
        """End the connection, because the peer reported an error."""
        super().handleError(msg)
        self._let_go()

    def message_ended(self) -> None:
        """Note that a whole message was received or refused."""
        self._message.size = self._message.objects = 0
        self._load.message_ended()
        if self._permit is not None and self._permit.standing is not Standing.STRANGER:
            self._permit.stand(self._permit.standing)

    def handleOpen(self, openCount: int, objectCount: int, indexToken: Any) -> None:  # noqa: N803 - Foolscap's names
        """Begin a container; BananaError if its message has too many."""
        self._message.objects += 1
        if self._message.objects > MAX_MESSAGE_OBJECTS:
            raise BananaError("a message of more parts than the limit")
        super().handleOpen(openCount, objectCount, indexToken)

    def handleData(self, chunk: bytes) -> None:
        """Take received data; BananaError, which ends the connection, if the message exceeds its limit.

        Once the connection is ending, nobody waits for the rest of an answer, and further data is ignored.
        """
        if not self.disconnected:
            self._received_size += len(chunk)
            self._unfed.append(chunk)
            self._feed()

    def _feed(self) -> None:
        """Parse what is here, but not many more calls than may run at once."""
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
        ):  # Not the message's size: keep-alive messages count there too.
            self._load.message_began(self._received_size)
        missing = max(0, self._awaited_size - len(self.buffer))
        self._wait_for(missing - sum(map(len, self._unfed)))
        self._load.message_holds(
            self._message.size + missing + MESSAGE_OBJECT_BYTES * self._message.objects, self._received_size
        )

    def _wait_for(self, missing: int) -> None:
        """Wait until much of a long string has come, instead of waking for each of its packets.

        missing: bytes of it that are still to come. At least as many will come, encrypted or not, except those
        of one record which may be here and not decrypted.
        """
        mark = min(_WAKE_SIZE, missing - _RECORD_ROOM)
        mark = mark if mark >= _RECORD_ROOM else 1
        if mark != self._wake_mark:
            self._wake_mark = mark
            set_wake_mark(self.transport, mark)

    def _size_of_string_at_head(self) -> int:
        """Bytes that must be in the buffer before there is anything to do; 0 if unknown."""
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
