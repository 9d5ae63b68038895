"""One HTTP request and its answer, as the server's handlers see them.

Holds at most one unread piece of the body, and nothing of the answer: what is written goes to the connection.
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
"""Bytes of a body that may wait for their reader before the socket is left alone."""

UNREAD_BYTES = 16 * 2**20
"""The same of all bodies together, where connections are many."""


def unread_limit(crowd: int) -> int:
    """Bytes of a body that may wait for their reader on each of that many connections."""
    return min(UNREAD_LIMIT, UNREAD_BYTES // max(1, crowd))


HeaderPairs = Iterable[tuple[bytes, bytes]]


class Connection(Outgoing, Protocol):
    """What an exchange asks of its connection."""

    @property
    def is_drained(self) -> bool:
        """Whether the socket has taken everything, and has room."""

    def send(self, pieces: Sequence[Buffer]) -> None:
        """Send bytes; nothing happens once the connection is lost."""

    async def drained(self) -> None:
        """Return when the socket has room; PeerGoneError."""

    def want_body(self) -> None:
        """The handler waits for the body."""

    def hold_back(self) -> None:
        """Take no more of the body from the socket until it is wanted."""

    def admit(self) -> None:
        """The request may be made by who made it."""

    def send_continue(self) -> None:
        """Ask a client that waits for permission to send its body."""

    def closes_after(self, exchange: Exchange) -> bool:
        """Whether this answer is the connection's last."""

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
        """Say that the client has shown that it may make this request."""
        self._channel.admit()

    @property
    def peer_address(self) -> str | None:
        """Where the client is, as far as that tells clients apart."""
        return self._channel.peer_address

    def hold_back(self) -> None:
        """There is no room for more of the body: leave it in the socket until the next `read_piece`."""
        self._channel.hold_back()

    @property
    def body_length(self) -> int | None:
        """Bytes of the body, if the client said so beforehand."""
        return self._body.length

    @property
    def awaited(self) -> int:
        """Bytes of the body that are sure to come."""
        return self._body.awaited

    @property
    def body_ended(self) -> bool:
        """Whether the whole body has been received (not: read)."""
        return self._body_ended

    async def read_piece(self, least: int) -> list[Buffer]:
        """The body's next bytes: at least that many, fewer only at its end, none after it. They are the caller's.

        PeerGoneError if the connection is lost before, FormatError if the body is framed wrongly.
        """
        while self._unread_size < least and not self._body_ended:
            if self._broken is not None:
                # One that was raised would hold the frames it went through, and they this.
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
        """Take bytes from the connection; what follows the body once it has ended. FormatError."""
        pieces, rest = self._body.decode(data)
        for piece in pieces:
            keep_piece(self._unread, piece)
            self._unread_size += len(piece)
        if rest is not None:
            self._body_ended = True
        self._wake()
        return rest

    def drop(self) -> int:
        """Forget what is unread; how much it was."""
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
        """Whether the reader should catch up before more is received. limit: bytes that may wait for it."""
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
        """The whole answer at once."""
        self.start(status, headers, sum(map(len, body)), body)

    def start(self, status: int, headers: HeaderPairs, length: int | None, body: Sequence[Buffer] = ()) -> None:
        """The head of an answer and perhaps some of its body; length None: in chunks."""
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
        """More of the body; `sent` says when the connection has room for the next."""
        size = sum(map(len, pieces))
        if size:
            framed = [pack_chunk_head(size), *pieces, CHUNK_END] if self.in_chunks else pieces
            self._channel.send(framed)

    def reserve(self, answers: AnswerBudget) -> Reservation:
        """A reservation for this answer."""
        return answers.reserve(self._channel)

    async def sent(self, room: Reservation) -> None:
        """Return when what was written, held by the reservation, is with the socket. PeerGoneError."""
        if not self._channel.is_drained:
            room.sending()
        await self._channel.drained()

    def finish(self) -> None:
        """The end of an answer begun by start."""
        if self.in_chunks:
            self._channel.send([LAST_CHUNK])

    def abort(self) -> None:
        """The answer cannot be completed: the client must see that it is cut short."""
        self._channel.abort()
