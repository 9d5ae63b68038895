"""Answers on their way out: long byte strings that are never joined, or never held whole, and who holds room for them.

On the wire a string in parts is the same as any other.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any

from attrs import frozen
from foolscap.banana import int2b128
from foolscap.constraint import ByteStringConstraint
from foolscap.eventual import eventually
from foolscap.slicer import BaseSlicer
from foolscap.tokens import STRING, Violation
from twisted.internet.defer import Deferred

from grid.errors import PeerError
from grid.ports import Buffer
from grid.wire.budget.answer_budget import AnswerBudget
from grid.wire.budget.reservation import Outgoing, Reservation
from grid.wire.foolscap.remote_errors import answer

PART_SIZE = 2**20
"""Bytes of a string that are read at once, and held until they are sent."""

_JOINED_SIZE = 2**16
"""Bytes up to which pieces are joined."""

ReadPart = Callable[[Reservation, int, int], Awaitable[Buffer]]
"""That range of the string: offset and length, read within the reservation."""


serving: list[Outgoing] = []
"""The connections whose calls are being begun, the last one now: Foolscap does not tell remote methods. A broker puts
itself here while it calls one."""


def reserve(answers: AnswerBudget) -> Reservation:
    """A reservation over the connection whose call is being begun."""
    return answers.reserve(serving[-1] if serving else None)


@frozen(kw_only=True)
class HeldAnswer:
    """What a remote method answers, and the reservation to release once that is sent."""

    value: Any
    room: Reservation


class HeldRoom:
    """The reservations of answers that are written and not sent yet, in the order in which they were written."""

    def __init__(self) -> None:
        self._whole: deque[tuple[float, Reservation]] = deque()
        self._parts: list[tuple[Deferred[None], Reservation]] = []

    def hold(self, room: Reservation, position: float) -> None:
        """Hold it until the transport has sent that many bytes."""
        room.sending()
        self._whole.append((position, room))

    def release_up_to(self, position: float) -> None:
        """The transport has sent that many bytes."""
        while self._whole and self._whole[0][0] <= position:
            self._whole.popleft()[1].release()

    async def until_drained(self, room: Reservation) -> None:
        """Return when the transport has sent everything; never if the connection is lost before."""
        room.sending()
        drain: Deferred[None] = Deferred()
        self._parts.append((drain, room))
        await drain

    def drained(self) -> None:
        """The transport has sent everything: those who wait for that go on in later turns of the event loop."""
        parts, self._parts = self._parts, []
        for drain, _ in parts:
            eventually(drain.callback, None)

    def release_all(self) -> None:
        """The connection is lost."""
        for _, room in (*self._whole, *self._parts):
            room.release()
        self._whole.clear()
        self._parts.clear()


def held_answer(answers: AnswerBudget, work: Callable[[Reservation], Awaitable[Any]]) -> Deferred[Any]:
    """What the work makes within a reservation of its own, as `answer` gives it to Foolscap."""
    return answer(_held(reserve(answers), work))


async def _held(room: Reservation, work: Callable[[Reservation], Awaitable[Any]]) -> HeldAnswer:
    try:
        return HeldAnswer(value=await work(room), room=room)
    except BaseException:
        room.release()
        raise


class OutgoingBytes(BaseSlicer):
    """A byte string for Foolscap to send."""

    sendOpen = False  # noqa: N815 - the name is Foolscap's
    trackReferences = False  # noqa: N815

    def __init__(self, size: int) -> None:
        self.size = size

    def slice(self, streamable: bool, banana: Any) -> Iterator[Any]:
        """The string, token head first."""
        self.streamable = streamable
        int2b128(self.size, banana.transport.write)
        banana.transport.write(STRING)
        yield from self.write_body(banana)

    def write_body(self, banana: Any) -> Iterator[Any]:
        """Write exactly as many bytes as were announced; what it yields is waited for."""
        raise NotImplementedError

    def describe(self) -> str:
        """What stands in Foolscap's own messages."""
        return f"<{self.size} bytes>"


class JoinedBytes(OutgoingBytes):
    """Pieces that go out one after the other as one string."""

    def __init__(self, pieces: Sequence[Buffer]) -> None:
        super().__init__(sum(map(len, pieces)))
        self._pieces = list(pieces)

    def write_body(self, banana: Any) -> Iterator[Any]:
        """Write all pieces."""
        for piece in self._pieces:
            banana.transport.write(bytes(piece))
        self._pieces.clear()
        yield from ()


def outgoing_bytes(pieces: Sequence[Buffer]) -> bytes | JoinedBytes:
    """The pieces as one string to send: joined where that costs less than to send each."""
    return JoinedBytes(pieces) if sum(map(len, pieces)) > _JOINED_SIZE else b"".join(pieces)


class StreamedBytes(OutgoingBytes):
    """A string too long to be held: each part is read when the one before it is sent."""

    def __init__(self, size: int, room: Reservation, read: ReadPart) -> None:
        super().__init__(size)
        self._room = room
        self._read = read

    def write_body(self, banana: Any) -> Iterator[Any]:
        """Read and write part by part."""
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
    """The constraint of a byte string, which on its way out may be in parts."""

    def checkObject(self, obj: Any, inbound: bool) -> None:
        """Violation unless it is a byte string of the right size."""
        if inbound or not isinstance(obj, OutgoingBytes):
            super().checkObject(obj, inbound)
        elif not self.minLength <= obj.size <= (obj.size if self.maxLength is None else self.maxLength):
            raise Violation(f"a string of {obj.size} bytes")
