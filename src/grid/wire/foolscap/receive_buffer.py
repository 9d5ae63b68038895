"""The octets that a Foolscap connection has received and not parsed, without a copy for each token.

Foolscap looks at the first 65 octets, takes what is a token's and puts the rest back; with its own buffer each of
these steps copies the whole piece that lies in front, which with strokes of a quarter megabyte costs more than
the decryption. Here they move a mark.

Cost: a token: a copy of it. A string of several pieces: one join.
"""

from __future__ import annotations

from collections import deque


class ReceiveBuffer:
    """A queue of octets in pieces; as much of foolscap.stringchain.StringChain as the receiving side uses."""

    def __init__(self) -> None:
        self._pieces: deque[bytes] = deque()
        self._start = 0
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def append(self, data: bytes) -> None:
        """Put the octets behind the others."""
        if data:
            self._pieces.append(data)
            self._size += len(data)

    def appendleft(self, data: bytes) -> None:
        """Put the octets before the others: back to where they were, if they have just been taken."""
        if not data:
            return
        self._size += len(data)
        if self._start >= len(data) and self._pieces[0].startswith(data, self._start - len(data)):
            self._start -= len(data)
            return
        if self._start:
            self._pieces[0] = self._pieces[0][self._start :]
            self._start = 0
        self._pieces.appendleft(data)

    def popleft(self, count: int) -> bytes:
        """The first `count` octets, or all if there are fewer; they are taken out."""
        if not self._size or count <= 0:
            return b""
        first, end = self._pieces[0], self._start + count
        if end < len(first):
            taken = first[self._start : end]
            self._start = end
            self._size -= count
            return taken
        return self._pop_pieces(min(count, self._size))

    def peek(self, count: int) -> bytes:
        """The first `count` octets of what came as one piece; they stay."""
        return self._pieces[0][self._start : self._start + count] if self._size else b""

    def clear(self) -> None:
        """Drop everything."""
        self._pieces.clear()
        self._start = self._size = 0

    def _pop_pieces(self, count: int) -> bytes:
        self._size -= count
        parts: list[bytes | memoryview] = []
        while count:
            piece = self._pieces[0]
            available = len(piece) - self._start
            if available > count:
                parts.append(memoryview(piece)[self._start : self._start + count])
                self._start += count
                break
            parts.append(memoryview(piece)[self._start :] if self._start else piece)
            self._pieces.popleft()
            self._start = 0
            count -= available
        return parts[0] if len(parts) == 1 and isinstance(parts[0], bytes) else b"".join(parts)
