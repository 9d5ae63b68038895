"""The bytes that a Foolscap connection has received and not parsed, without one copy per token.

Foolscap takes the first 65 bytes, uses those of a token and puts the rest back. In its own buffer, each of
these steps copies the whole first piece, which for quarter-megabyte chunks costs more than
the decryption. Here these steps only move an offset.

A long string of known length is collected in place, so that it is never in memory twice.

Cost: one copy per token. For a string of several pieces, one join, or one copy of each piece.
"""

from __future__ import annotations

from collections import deque
from io import BytesIO

_GROWTH = 2
"""Room for a long string is at most this many times the bytes that have come."""


class ReceiveBuffer:
    """A queue of bytes in pieces. It offers the methods of foolscap.stringchain.StringChain that the receiving side uses."""

    def __init__(self) -> None:
        self._pieces: deque[bytes] = deque()
        self._start = 0
        self._size = 0
        self._string: _Collected | None = None

    def __len__(self) -> int:
        return self._size

    def collect(self, head_size: int, string_size: int) -> None:
        """Collect a string of string_size bytes separately. It starts after head_size bytes, and little of it has come."""
        if self._string is None and self._size < head_size + string_size:
            head, begun = self.popleft(head_size), self.popleft(self._size)
            self.append(head)
            self._string = _Collected(string_size)
            self.append(begun)

    def append(self, data: bytes) -> None:
        """Append the bytes."""
        self._size += len(data)
        if self._string is not None:
            data = self._string.take(data)
        if data:
            (self._pieces if self._string is None else self._string.after).append(data)

    def appendleft(self, data: bytes) -> None:
        """Put the bytes back in front of the others; cheap if they have just been taken."""
        if not data:
            return
        self._size += len(data)
        if self._string is not None and not self._pieces:
            left = self._string.take_back(data)
            if left is None:
                self._dissolve(self._string)
            elif not left:
                return
            else:
                data = left
        if self._start >= len(data) and self._pieces[0].startswith(data, self._start - len(data)):
            self._start -= len(data)
            return
        if self._start:
            self._pieces[0] = self._pieces[0][self._start :]
            self._start = 0
        self._pieces.appendleft(data)

    def popleft(self, count: int) -> bytes:
        """Remove and return the first `count` bytes, or all if there are fewer."""
        if not self._size or count <= 0:
            return b""
        if self._string is not None:
            if not self._pieces and count == self._string.whole_size:
                return self._pop_string(self._string)
            if (start := self._pop_before_string(self._string, count)) is not None:
                return start
        first, end = self._pieces[0], self._start + count
        if end < len(first):
            taken = first[self._start : end]
            self._start = end
            self._size -= count
            return taken
        return self._pop_pieces(min(count, self._size))

    def peek(self, count: int) -> bytes:
        """The first `count` bytes of the first piece, without removing them."""
        return self._pieces[0][self._start : self._start + count] if self._pieces else b""

    def clear(self) -> None:
        """Drop everything."""
        self._pieces.clear()
        self._string = None
        self._start = self._size = 0

    def _pop_string(self, string: _Collected) -> bytes:
        self._string, self._pieces = None, string.after
        self._size -= string.size
        return string.value()

    def _pop_before_string(self, string: _Collected, count: int) -> bytes | None:
        """The bytes requested, if they end within the string; None if they do not reach it. What follows the string becomes a piece."""
        before = sum(map(len, self._pieces)) - self._start
        if count <= before:
            return None
        head = self._pop_pieces(before) if before else b""
        if count - before < string.left_size:
            self._size -= count - before
            return head + string.first(count - before)
        self._dissolve(string)
        return head + self.popleft(count - before)

    def _dissolve(self, string: _Collected) -> None:
        self._string = None
        self._pieces = deque(piece for piece in (string.rest(), *string.after) if piece)

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


class _Collected:
    """A string that is being collected, and the pieces that came after it.

    Its buffer doubles up to its size, so that announcing a long string reserves little, and little is copied again.
    BytesIO itself grows by an eighth, and would copy a string of 2 MB four times.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self.after: deque[bytes] = deque()
        self._bytes = BytesIO()
        self._room = 0
        self._start = 0

    @property
    def whole_size(self) -> int | None:
        """Its length, if all of it has come and none was taken."""
        return self.size if self._bytes.tell() == self.size and not self._start else None

    @property
    def left_size(self) -> int:
        """Bytes that have come and were not taken."""
        return self._bytes.tell() - self._start

    def take(self, data: bytes) -> bytes:
        """Add received data. Returns what lies beyond the string."""
        come = self._bytes.tell()
        size = min(len(data), self.size - come)
        if come + size > self._room:
            self._grow(come, come + size)
        self._bytes.write(data if size == len(data) else memoryview(data)[:size])
        return data[size:]

    def take_back(self, data: bytes) -> bytes | None:
        """Put bytes back in front of the others. Returns those that were never part of the string.

        Returns None if they are not the bytes that were taken.
        """
        size = min(len(data), self._start)
        with self._bytes.getbuffer() as view:
            if size < self._start or view[:size] != data[len(data) - size :]:
                return None
        self._start = 0
        return data[: len(data) - size]

    def first(self, count: int) -> bytes:
        """Remove and return the first `count` bytes."""
        with self._bytes.getbuffer() as view:
            taken = bytes(view[self._start : self._start + count])
        self._start += count
        return taken

    def rest(self) -> bytes:
        """What has come and was not taken."""
        with self._bytes.getbuffer() as view:
            return bytes(view[self._start : self._bytes.tell()])

    def value(self) -> bytes:
        """The whole string, without a copy."""
        return self._bytes.getvalue()

    def _grow(self, come: int, least: int) -> None:
        self._room = min(self.size, _GROWTH * least)
        self._bytes.seek(self._room - 1)
        self._bytes.write(b"\0")
        self._bytes.seek(come)
