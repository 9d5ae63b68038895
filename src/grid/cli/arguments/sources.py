"""Sources of a put: local files, and stdin, which is spooled to an anonymous file.

All reads happen on the pool, never on the event loop. Spooled data is encrypted with a key that exists only in this
process's memory, so nothing readable remains on the disk in any event.
"""

from __future__ import annotations

import errno
import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

from grid.crypto.aes import KEY_SIZE, CtrCipher
from grid.errors import ConfigError, GridError
from grid.node.files import Rereads, make_private_directory
from grid.ports import Buffer, CpuPool

_SPOOL_CHUNK = 1024 * 1024


class SpooledFile:
    """An encrypted anonymous file. A context manager: leaving it discards everything."""

    def __init__(self, directory: Path) -> None:
        """Create the file. ConfigError if the directory cannot be created, OSError if the file cannot."""
        try:
            make_private_directory(directory)
        except OSError as problem:
            raise ConfigError(f"{directory}: cannot be created: {problem.strerror}") from None
        self._file = cast(BinaryIO, tempfile.TemporaryFile(dir=directory, buffering=0))  # noqa: SIM115
        self._key = os.urandom(KEY_SIZE)
        self._encryptor = CtrCipher(self._key)

    def __enter__(self) -> SpooledFile:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def fileno(self) -> int:
        """The descriptor."""
        return self._file.fileno()

    def append(self, data: Buffer) -> None:
        """Append bytes; OSError."""
        view = memoryview(self._encryptor.crypt(data))
        while view:
            view = view[self._file.write(view) :]

    def decrypt(self, offset: int, data: Buffer) -> Buffer:
        """Decrypt bytes read from this offset of the file."""
        return CtrCipher(self._key, offset).crypt(data)


class SpoolSink:
    """A sink that appends to a spooled file. Writes happen on the pool."""

    def __init__(self, file: SpooledFile, cpu: CpuPool) -> None:
        self._file = file
        self._cpu = cpu

    async def write(self, data: Buffer) -> None:
        """Append all bytes; OSError."""
        await self._cpu.run(self._file.append, data)


class FileSource:
    """An open file as a Source. Its size and changed_at (Unix time) are fixed when it is opened."""

    def __init__(self, file: BinaryIO | SpooledFile, cpu: CpuPool) -> None:
        self._spooled = file if isinstance(file, SpooledFile) else None
        self._descriptor = file.fileno()
        status = os.fstat(self._descriptor)
        self._size = status.st_size
        self.changed_at = status.st_mtime
        self._rereads = Rereads(self._descriptor) if self._spooled is None else None
        self._cpu = cpu

    @property
    def size(self) -> int:
        """Bytes of the file."""
        return self._size

    async def read_at(self, offset: int, length: int) -> Buffer:
        """Return exactly these bytes; GridError if the file has become shorter, or changed before the end of a second reading."""
        return await self._cpu.run(self._read, offset, length)

    def _read(self, offset: int, length: int) -> Buffer:
        data = self._read_stored(offset, length)
        if self._rereads is not None:
            self._rereads.note(offset, length)
        return data if self._spooled is None else self._spooled.decrypt(offset, data)

    def _read_stored(self, offset: int, length: int) -> Buffer:
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
def open_source(name: str, spool_directory: Path) -> Iterator[BinaryIO | SpooledFile]:
    """Open the file `name` for reading; `-` and anything that is not a regular file is spooled first.

    OSError if it cannot be read, or if the spool is full (ENOSPC; never NoSpaceError).
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
def _spool(stream: BinaryIO, directory: Path) -> Iterator[SpooledFile]:
    """Copy the stream to an anonymous file, which disappears with this process."""
    with SpooledFile(directory) as spooled:
        while chunk := stream.read(_SPOOL_CHUNK):
            spooled.append(chunk)
        yield spooled
