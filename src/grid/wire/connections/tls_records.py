"""TLS records of a pyOpenSSL connection without a socket, with the fewest copies that OpenSSL permits.

pyOpenSSL and the standard library's `ssl` copy what a socket received into a buffer of OpenSSL's, which copies each
record out again; and what is to be sent goes through a new byte string of the largest size each time. Beside the cipher of
a current OpenSSL, these copies took more than half of the time. Here OpenSSL reads the received bytes where they are, and
sealed records come out into one buffer that all connections share. pyOpenSSL brings its own OpenSSL, which is often newer, and
quicker by half, than the system's. This depends on pyOpenSSL's binding; the tests of this module verify it.
[docs/decisions/0516-records-without-copies.md]
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from OpenSSL import SSL
from OpenSSL._util import ffi, lib

from grid.ports import Buffer

CHUNK_SIZE = 2**19
"""Most bytes to encrypt at once, so that the records are still in the processor's caches when the socket gets them."""

_RECORD_ROOM = CHUNK_SIZE // 2**14 * 64 + 4096
"""What records add to a chunk: some 22 bytes each, and handshake messages."""

_ROOM = bytearray(CHUNK_SIZE + _RECORD_ROOM)
_ROOM_VIEW = memoryview(_ROOM)
_ROOM_START = ffi.from_buffer("char[]", _ROOM) + 0
"""Where sealed records come out, those of one connection at a time."""

_WANT_READ = 2
"""OpenSSL's code for an incomplete record."""

ENABLE_PARTIAL_WRITE = 0x1
"""OpenSSL's SSL_MODE_ENABLE_PARTIAL_WRITE, which pyOpenSSL sets but does not name; with it, each call seals one record only."""


class Room:
    """Memory into which records are decrypted."""

    def __init__(self, size: int) -> None:
        self.view = memoryview(bytearray(size))
        self.start: Any = ffi.from_buffer("char[]", self.view) + 0
        self.size = size


class TlsRecords:
    """What a connection received, and what it is to send."""

    def __init__(self, connection: SSL.Connection) -> None:
        self._connection: Any = connection
        self._stream: Any = self._connection._ssl
        self._sealed: Any = self._connection._from_ssl
        self._offered: Buffer | None = None

    def offer(self, data: Buffer) -> None:
        """Let OpenSSL read these bytes from where they are. Do so only when it has read those before: `read` returned 0."""
        source = lib.BIO_new_mem_buf(ffi.from_buffer(data), len(data))
        if source == ffi.NULL:
            raise MemoryError
        lib.BIO_set_mem_eof_return(source, -1)  # The end of the bytes is not the end of the stream.
        lib.SSL_set_bio(self._stream, source, self._sealed)
        self._connection._into_ssl = source  # OpenSSL has freed the one before.
        self._offered = data

    def read(self, room: Room, position: int) -> int:
        """Decrypt one record, or a part of it, into the room from that position. Returns how many bytes, 0 if none is complete.

        SSL.Error: the peer closed the stream (SSL.ZeroReturnError), or broke the protocol.
        """
        count: int = lib.SSL_read(self._stream, room.start + position, room.size - position)
        if count > 0:
            return count
        if lib.SSL_get_error(self._stream, count) != _WANT_READ:
            # The offered bytes stay: OpenSSL may not have read all of them.
            self._connection._raise_ssl_error(self._stream, count)
        self._offered = None
        return 0

    def seal(self, data: Buffer) -> None:
        """Encrypt the data, at most CHUNK_SIZE of it. SSL.WantReadError before the end of the handshake; SSL.Error."""
        count = lib.SSL_write(self._stream, ffi.from_buffer(data), len(data))
        if count != len(data):
            self._connection._raise_ssl_error(self._stream, count)

    def sealed(self) -> Iterator[memoryview]:
        """The records to send. Each view is borrowed until the next is asked for, or any connection is."""
        while (count := lib.BIO_read(self._sealed, _ROOM_START, len(_ROOM))) > 0:
            yield _ROOM_VIEW[:count]
