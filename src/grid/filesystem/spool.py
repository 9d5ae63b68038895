"""Holds a file that is being written until it is stored: a small one in memory, another in an anonymous file on disk.

What is on the disk is encrypted with a key that exists only in this process's memory, as in the gateway's spool.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from grid.errors import GridError
from grid.filesystem.descriptions import os_error
from grid.gateway.shared.spool import BATCH_SIZE, UnnamedFile
from grid.ports import Buffer

SPOOLED_IN_MEMORY = 8 * 2**20
"""Bytes of a file that are kept in memory before the disk is used."""


class Spool:
    """A binary file that takes bytes at its end, and can be read anywhere. path: named in errors."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._file: UnnamedFile | None = None
        self._file_size = 0
        self._waiting = bytearray()
        self._position = 0

    def __enter__(self) -> Spool:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def write(self, data: Buffer) -> int:
        """Append bytes, and return their number. OSError if the disk is full."""
        self._waiting += data
        if len(self._waiting) > (SPOOLED_IN_MEMORY if self._file is None else BATCH_SIZE):
            self._spill()
        self._position = self._size
        return len(data)

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Set where to read next: from the start or, with SEEK_END, from the end."""
        self._position = offset + (self._size if whence == os.SEEK_END else 0)
        return self._position

    def tell(self) -> int:
        """The offset of the next byte to read; after a write, the size."""
        return self._position

    def read(self, length: int) -> bytes:
        """At most that many bytes; fewer at the end."""
        start = self._position
        self._position = max(start, min(start + length, self._size))
        on_disk = max(0, min(self._position, self._file_size) - start)
        data = b""
        if on_disk:
            assert self._file is not None
            data = self._file.read(start, on_disk)
        begin = max(0, start - self._file_size)
        return data + self._waiting[begin : max(0, self._position - self._file_size)]

    def close(self) -> None:
        """Discard everything."""
        self._waiting.clear()
        if self._file is not None:
            self._file.close()

    @property
    def _size(self) -> int:
        return self._file_size + len(self._waiting)

    def _spill(self) -> None:
        if self._file is None:
            self._file = UnnamedFile(Path(tempfile.gettempdir()))
        try:
            self._file.append([bytes(self._waiting)], None)
        except GridError as error:
            raise os_error(error, self._path) from error
        self._file_size += len(self._waiting)
        self._waiting.clear()
