"""The body of a request as a run of bytes to take from the front, in any amounts."""

from __future__ import annotations

from collections import deque

from grid.errors import FormatError
from grid.ports import Buffer
from grid.wire.http.server.exchange import Exchange


class ByteSource:
    """Reads an exchange's body; what it holds is at most one piece more than was asked for."""

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange
        self._held: deque[Buffer] = deque()
        self._held_size = 0

    async def take_exactly(self, size: int) -> bytes:
        """The next size bytes joined; FormatError if the body ends before."""
        pieces = await self.take(size)
        if sum(map(len, pieces)) < size:
            raise FormatError("a request's body that ends too early")
        return b"".join(pieces)

    async def take(self, size: int) -> list[Buffer]:
        """The next size bytes, fewer only at the body's end."""
        while self._held_size < size:
            pieces = await self._exchange.read_piece(size - self._held_size)
            if not pieces:
                break
            self._held.extend(pieces)
            self._held_size += sum(map(len, pieces))
        taken: list[Buffer] = []
        while size and self._held:
            piece = self._held.popleft()
            if len(piece) > size:
                view = memoryview(piece)
                self._held.appendleft(view[size:])
                piece = view[:size]
            taken.append(piece)
            size -= len(piece)
            self._held_size -= len(piece)
        return taken
