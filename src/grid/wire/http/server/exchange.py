"""One HTTP request and its answer, as the server's handlers see them.

Holds at most one unread piece of the body, and nothing of the answer: written data goes to the connection.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from twisted.internet.defer import Deferred

from grid.ports import Buffer
from grid.wire.budget.answer_budget import AnswerBudget
from grid.wire.budget.reservation import Outgoing, Reservation
from grid.wire.http.format.messages import (
    CHUNK_END,
    LAST_CHUNK,
    BodyDecoder,
    RequestHead,
    keep_piece,
    pack_chunk_head,
    pack_head,
    pack_status_line,
)

UNREAD_LIMIT = 256 * 1024
"""Unread bytes of a body after which the socket is no longer read."""

UNREAD_BYTES = 16 * 2**20
"""The same for all bodies together, if there are many connections."""


def unread_limit(crowd: int) -> int:
    """Unread bytes that a body may have on each of that many connections."""
    return min(UNREAD_LIMIT, UNREAD_BYTES // max(1, crowd))


HeaderPairs = Iterable[tuple[bytes, bytes]]


class Connection(Outgoing, Protocol):
    """What an exchange requires of its connection."""

    @property
    def is_drained(self) -> bool:
        """Whether the socket has taken everything, and has room."""

    def send(self, pieces: Sequence[Buffer]) -> None:
        """Send bytes; does nothing once the connection is lost."""

    async def drained(self) -> None:
        """Return when the socket has room; PeerGoneError."""

    def want_body(self) -> None:
        """Note that the handler waits for the body."""

    def hold_back(self) -> None:
        """Read no more of the body from the socket until the handler wants it."""

    def admit(self) -> None:
        """Note that the client may make this request."""

    def send_continue(self) -> None:
        """Permit a client that waits for 100 Continue to send its body."""

    def closes_after(self, exchange: Exchange) -> bool:
        """Whether the connection closes after this answer."""

    def abort(self) -> None:
        """Close now."""


class Exchange:
    """One request and its answer, as a handler sees them."""

    def __init__(self, channel: Connection, head: RequestHead, body: BodyDecoder) -> None:
        self.head = head
        self._channel = channel
        self._body = body
        self._unread: list[Buffer] = []
        self._unread_size = 0
        self._body_ended = False
        self._reader: Deferred[None] | None = None
        self._broken: Exception | None = None
        self._expects_continue = b"100-continue" in head.headers.get(b"expect", ())
        self.answered = False
        self.in_chunks = False

    def admit(self) -> None:
        """Note that the client has shown that it may make this request."""
        self._channel.admit()

    @property
    def peer_address(self) -> str | None:
        """The client's address, if it tells clients apart."""
        return self._channel.peer_address

    def hold_back(self) -> None:
        """Leave the rest of the body in the socket until the next `read_piece`, because there is no room for it."""
        self._channel.hold_back()

    @property
    def body_length(self) -> int | None:
        """Bytes of the body, if known in advance."""
        return self._body.length

    @property
    def awaited(self) -> int:
        """Bytes of the body that are sure to come."""
        return self._body.awaited

    @property
    def body_ended(self) -> bool:
        """Whether the whole body has been received (not necessarily read)."""
        return self._body_ended

    async def read_piece(self, least: int) -> list[Buffer]:
        """The next bytes of the body: at least `least`, fewer only at its end, none after it. They belong to the caller.

        PeerGoneError if the connection is lost first, FormatError if the framing of the body is wrong.
        """
        while self._unread_size < least and not self._body_ended:
            if self._broken is not None:
                # A raised exception would refer to the frames it went through, and they to this object.
                raise type(self._broken)(*self._broken.args)
            if self._expects_continue:
                self._expects_continue = False
                self._channel.send_continue()
            self._reader = Deferred()
            self._channel.want_body()
            await self._reader
        pieces, self._unread, self._unread_size = self._unread, [], 0
        return pieces

    def feed(self, data: bytes) -> bytes | None:
        """Take bytes from the connection. Returns what follows the body once it has ended. FormatError."""
        pieces, rest = self._body.decode(data)
        for piece in pieces:
            keep_piece(self._unread, piece)
            self._unread_size += len(piece)
        if rest is not None:
            self._body_ended = True
        self._wake()
        return rest

    def drop(self) -> int:
        """Drop unread data. Returns its size."""
        size, self._unread, self._unread_size = self._unread_size, [], 0
        return size

    @property
    def awaits_body(self) -> bool:
        """Whether the handler waits for bytes from the client."""
        return self._reader is not None

    @property
    def is_broken(self) -> bool:
        """Whether the rest of the body will never come."""
        return self._broken is not None

    def is_full(self, limit: int) -> bool:
        """Whether the reader should catch up before more is received. limit: bytes that may wait."""
        return self._reader is None and self._unread_size >= limit

    def break_off(self, error: Exception) -> None:
        """No more of the body will come."""
        self._broken = error
        self._wake()

    def _wake(self) -> None:
        reader, self._reader = self._reader, None
        if reader is not None:
            reader.callback(None)

    def send(self, status: int, headers: HeaderPairs = (), body: Sequence[Buffer] = ()) -> None:
        """Send a complete answer."""
        self.start(status, headers, sum(map(len, body)), body)

    def start(self, status: int, headers: HeaderPairs, length: int | None, body: Sequence[Buffer] = ()) -> None:
        """Send the head of an answer, and optionally the start of its body. length None: chunked."""
        self.answered = True
        self.in_chunks = length is None
        if self.in_chunks:
            framing = [(b"Transfer-Encoding", b"chunked")]
        else:
            framing = [] if status == 204 else [(b"Content-Length", b"%d" % (length or 0))]
        if self._channel.closes_after(self):
            framing.append((b"Connection", b"close"))
        self._channel.send([pack_head(pack_status_line(status), (*headers, *framing)), *body])

    def write(self, pieces: Sequence[Buffer]) -> None:
        """Send more of the body. `sent` returns when the connection has room for the next part."""
        size = sum(map(len, pieces))
        if size:
            framed = [pack_chunk_head(size), *pieces, CHUNK_END] if self.in_chunks else pieces
            self._channel.send(framed)

    def reserve(self, answers: AnswerBudget) -> Reservation:
        """A reservation for this answer."""
        return answers.reserve(self._channel)

    async def sent(self, room: Reservation) -> None:
        """Return when the socket has taken what was written, held by the reservation. PeerGoneError."""
        if not self._channel.is_drained:
            room.sending()
        await self._channel.drained()

    def finish(self) -> None:
        """End an answer begun by start."""
        if self.in_chunks:
            self._channel.send([LAST_CHUNK])

    def abort(self) -> None:
        """Cut the answer off visibly, because it cannot be completed."""
        self._channel.abort()
