"""The data waiting to be sent over one connection, passed to the socket in chunks as it accepts them.

A chunk is encrypted, and its ciphertext held, only when the socket has room. So a long answer is on its way to its
reader while the rest is not encrypted yet, and a reader that stops costs one chunk of ciphertext.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from grid.ports import Buffer
from grid.wire.connections.sockets import clients_chunk
from grid.wire.http.format.tls import send_pieces


class Outbox:
    """The unsent pieces, in order. They are borrowed until they are sent."""

    def __init__(self, transport: Any, chunk_size: Callable[[], int] = clients_chunk) -> None:
        """chunk_size: bytes to pass to the transport at once."""
        self._transport = transport
        self._chunk_size = chunk_size
        self._unsent: deque[Buffer] = deque()
        self._unsent_size = 0
        self._has_room = True
        self._is_sending = False
        self._drain: Deferred[None] | None = None
        self.given_size = 0

    @property
    def is_empty(self) -> bool:
        """Whether the socket has taken everything, and has room."""
        return self._has_room and not self._unsent

    @property
    def has_unsent(self) -> bool:
        """Whether some data has not been passed to the socket at all."""
        return bool(self._unsent)

    def push(self, pieces: Sequence[Buffer]) -> None:
        """Send these pieces after all others."""
        self._unsent.extend(pieces)
        self._unsent_size += sum(map(len, pieces))
        self._send()

    def pause(self) -> None:
        """Note that the socket is full."""
        self._has_room = False

    def resume(self) -> None:
        """Note that the socket has room."""
        self._has_room = True
        self._send()

    async def until_empty(self) -> None:
        """Return when `release` is called; at once if nothing waits."""
        if not self.is_empty:
            self._drain = Deferred()
            await self._drain

    def release(self, error: Exception | None = None) -> None:
        """Wake the waiting task, with the error if there is one."""
        drain, self._drain = self._drain, None
        if drain is not None:
            drain.callback(None if error is None else Failure(error))

    def clear(self) -> None:
        """Send nothing more."""
        self._unsent.clear()
        self._unsent_size = 0

    def _send(self) -> None:
        if self._is_sending:
            return  # The socket had room at once, so the loop below continues.
        self._is_sending = True
        while self._unsent and self._has_room:
            send_pieces(self._transport, self._take_chunk())
        self._is_sending = False

    def _take_chunk(self) -> list[Buffer]:
        chunk: list[Buffer] = []
        size, most = 0, self._chunk_size()
        if self._unsent_size <= most:
            chunk += self._unsent
            self.given_size += self._unsent_size
            self.clear()
            return chunk
        while self._unsent and size < most:
            piece = self._unsent.popleft()
            room = most - size
            if len(piece) > room:
                view = memoryview(piece)
                self._unsent.appendleft(view[room:])
                piece = view[:room]
            chunk.append(piece)
            size += len(piece)
        self.given_size += size
        self._unsent_size -= size
        return chunk
