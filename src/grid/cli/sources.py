"""What a put reads: a file of this machine, or stdin, kept meanwhile in a file that has no name.

Reads happen on the pool, never on the event loop.
"""

from __future__ import annotations

import errno
import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from grid.errors import ConfigError, GridError
from grid.node.files import make_private_directory
from grid.ports import Buffer, CpuPool

_SPOOL_CHUNK = 1024 * 1024


class FileSource:
    """An open file as a Source; its size, and changed_at (Unix time), are those of when it was opened."""

    def __init__(self, file: BinaryIO, cpu: CpuPool) -> None:
        self._descriptor = file.fileno()
        status = os.fstat(self._descriptor)
        self._size = status.st_size
        self.changed_at = status.st_mtime
        self._cpu = cpu

    @property
    def size(self) -> int:
        """Octets of the file."""
        return self._size

    async def read_at(self, offset: int, length: int) -> Buffer:
        """Exactly those octets; GridError if the file has become shorter."""
        return await self._cpu.run(self._read, offset, length)

    def _read(self, offset: int, length: int) -> Buffer:
        data = os.pread(self._descriptor, length, offset)
        if len(data) == length:
            return data
        parts = [data]
        missing = length - len(data)
        while missing:
            part = os.pread(self._descriptor, missing, offset + length - missing)
            if not part:
                raise GridError("the file became shorter while it was read; put it again when it no longer changes")
            parts.append(part)
            missing -= len(part)
        return b"".join(parts)


@contextmanager
def open_source(name: str, spool_directory: Path) -> Iterator[BinaryIO]:
    """The file called `name`, open for reading; `-`, and what is no regular file, is spooled first.

    OSError if it cannot be read; NoSpaceError is not raised, but OSError with ENOSPC, when the spool is full.
    """
    if name == "-":
        with os.fdopen(os.dup(0), "rb") as stdin, _spool(stdin, spool_directory) as spooled:
            yield spooled
        return
    if Path(name).is_dir():
        raise IsADirectoryError(errno.EISDIR, "Is a directory; `grid cp -r` and `grid backup` store one", name)
    with Path(name).open("rb") as file:
        if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            yield file
        else:
            with _spool(file, spool_directory) as spooled:
                yield spooled


@contextmanager
def _spool(stream: BinaryIO, directory: Path) -> Iterator[BinaryIO]:
    """All that the stream gives, in a file that only we can open and that is gone when we are."""
    try:
        make_private_directory(directory)
    except OSError as problem:
        raise ConfigError(f"{directory}: cannot be made: {problem.strerror}") from None
    with tempfile.TemporaryFile(dir=directory, buffering=0) as spooled:
        while chunk := stream.read(_SPOOL_CHUNK):
            view = memoryview(chunk)
            while view:
                view = view[spooled.write(view) :]
        yield spooled
