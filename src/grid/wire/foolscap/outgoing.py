"""Answers on their way out: long byte strings that are never joined or never held whole, and the reservations for them.

On the wire, a string in parts is the same as any other string.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any

from foolscap.banana import int2b128
from foolscap.constraint import ByteStringConstraint
from foolscap.eventual import eventually
from foolscap.slicer import BaseSlicer
from foolscap.tokens import STRING, Violation
from twisted.internet.defer import Deferred

from grid.errors import PeerError
from grid.ports import Buffer
from grid.values import frozen
from grid.wire.budget.answer_budget import AnswerBudget
from grid.wire.budget.reservation import Outgoing, Reservation
from grid.wire.foolscap.remote_errors import answer

PART_SIZE = 2**20
"""Bytes of a string to read at once; they are held until they are sent."""

_JOINED_SIZE = 2**16
"""Pieces up to this size are joined."""

ReadPart = Callable[[Reservation, int, int], Awaitable[Buffer]]
"""Reads that range of the string (offset and length) within the reservation."""


serving: list[Outgoing] = []
"""The connections whose calls are being started, the current one last: Foolscap does not pass it to remote methods. A broker adds
itself here while it calls one."""


def reserve(answers: AnswerBudget) -> Reservation:
    """A reservation over the connection whose call is being started."""
    return answers.reserve(serving[-1] if serving else None)


@frozen(kw_only=True)
class HeldAnswer:
    """The answer of a remote method, with the reservation to release once it is sent."""

    value: Any
    room: Reservation


class HeldRoom:
    """The reservations of answers that are written and not sent yet, in the order of writing."""

    def __init__(self) -> None:
        self._whole: deque[tuple[float, Reservation]] = deque()
        self._parts: list[tuple[Deferred[None], Reservation]] = []

    def hold(self, room: Reservation, position: float) -> None:
        """Hold the room until the transport has sent that many bytes."""
        room.sending()
        self._whole.append((position, room))

    def release_up_to(self, position: float) -> None:
        """Release the answers that end by that position, because the transport has sent them."""
        while self._whole and self._whole[0][0] <= position:
            self._whole.popleft()[1].release()

    async def until_drained(self, room: Reservation) -> None:
        """Return when the transport has sent everything; never if the connection is lost first."""
        room.sending()
        drain: Deferred[None] = Deferred()
        self._parts.append((drain, room))
        await drain

    def drained(self) -> None:
        """Note that the transport has sent everything. Waiting tasks continue in later turns of the event loop."""
        parts, self._parts = self._parts, []
        for drain, _ in parts:
            eventually(drain.callback, None)

    def release_all(self) -> None:
        """Release everything, because the connection is lost."""
        for _, room in (*self._whole, *self._parts):
            room.release()
        self._whole.clear()
        self._parts.clear()


def held_answer(answers: AnswerBudget, work: Callable[[Reservation], Awaitable[Any]]) -> Deferred[Any]:
    """Run the work within its own reservation, and return its result in the form that `answer` gives to Foolscap."""
    return answer(_held(reserve(answers), work))


async def _held(room: Reservation, work: Callable[[Reservation], Awaitable[Any]]) -> HeldAnswer:
    try:
        return HeldAnswer(value=await work(room), room=room)
    except BaseException:
        room.release()
        raise


class OutgoingBytes(BaseSlicer):
    """A byte string that Foolscap can send. `slice` calls `begin`, then writes exactly as many bytes as announced."""

    sendOpen = False  # noqa: N815 - the name is Foolscap's
    trackReferences = False  # noqa: N815

    def __init__(self, size: int) -> None:
        self.size = size

    def begin(self, streamable: bool, banana: Any) -> None:
        """Write the token's head."""
        self.streamable = streamable
        int2b128(self.size, banana.transport.write)
        banana.transport.write(STRING)

    def describe(self) -> str:
        """The description for Foolscap's own messages."""
        return f"<{self.size} bytes>"


class JoinedBytes(OutgoingBytes):
    """Pieces sent one after the other as one string."""

    def __init__(self, pieces: Sequence[Buffer]) -> None:
        super().__init__(sum(map(len, pieces)))
        self._pieces = list(pieces)

    def slice(self, streamable: bool, banana: Any) -> Iterator[Any]:
        """The head and all pieces, at once."""
        self.begin(streamable, banana)
        for piece in self._pieces:
            banana.transport.write(bytes(piece))
        self._pieces.clear()
        yield from ()


def outgoing_bytes(pieces: Sequence[Buffer]) -> bytes | JoinedBytes:
    """The pieces as one string to send, joined if that costs less than sending each."""
    return JoinedBytes(pieces) if sum(map(len, pieces)) > _JOINED_SIZE else b"".join(pieces)


class StreamedBytes(OutgoingBytes):
    """A string too long to hold: each part is read when the one before it has been sent."""

    def __init__(self, size: int, room: Reservation, read: ReadPart) -> None:
        super().__init__(size)
        self._room = room
        self._read = read

    def slice(self, streamable: bool, banana: Any) -> Iterator[Any]:
        """Read and write part after part. The caller waits for each Deferred it yields."""
        self.begin(streamable, banana)
        position = 0
        while position < self.size:
            parts: list[Buffer] = []
            length = min(PART_SIZE, self.size - position)
            yield Deferred.fromCoroutine(self._part(position, length)).addCallbacks(
                parts.append, lambda failure: self._give_up(banana, failure)
            )
            banana.transport.write(bytes(parts.pop()))
            position += length
            yield Deferred.fromCoroutine(banana.sent(self._room))
            self._room.empty()
        eventually(banana.settle)

    def _give_up(self, banana: Any, failure: Any) -> Any:
        self._room.release()
        return banana.abandon(failure)

    async def _part(self, offset: int, length: int) -> Buffer:
        part = await self._read(self._room, offset, length)
        if len(part) != length:
            raise PeerError("a share became shorter while it was read")
        return part


class BytesConstraint(ByteStringConstraint):
    """The constraint of a byte string that may be sent in parts."""

    def checkObject(self, obj: Any, inbound: bool) -> None:
        """Raise Violation unless the object is a byte string of a permitted size."""
        if inbound or not isinstance(obj, OutgoingBytes):
            super().checkObject(obj, inbound)
        elif not self.minLength <= obj.size <= (obj.size if self.maxLength is None else self.maxLength):
            raise Violation(f"a string of {obj.size} bytes")
