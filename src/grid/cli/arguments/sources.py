"""What a put reads: a file of this machine, or stdin, kept meanwhile in a file that has no name.

Reads happen on the pool, never on the event loop. What is kept meanwhile is encrypted with a key that is only in this
process's memory: nothing readable is left on the disk, whatever becomes of the process.
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
from grid.node.files import make_private_directory
from grid.ports import Buffer, CpuPool

_SPOOL_CHUNK = 1024 * 1024


class SpooledFile:
    """A file without a name, whose bytes are encrypted. A context manager: outside of it nothing is kept."""

    def __init__(self, directory: Path) -> None:
        """OSError if it cannot be made; ConfigError if the directory cannot be."""
        try:
            make_private_directory(directory)
        except OSError as problem:
            raise ConfigError(f"{directory}: cannot be made: {problem.strerror}") from None
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
        """Write more bytes; OSError."""
        view = memoryview(self._encryptor.crypt(data))
        while view:
            view = view[self._file.write(view) :]

    def decrypt(self, offset: int, data: Buffer) -> Buffer:
        """What was appended, of what lies at the offset of the file."""
        return CtrCipher(self._key, offset).crypt(data)


class SpoolSink:
    """A spooled file as a Sink. Writes happen on the pool."""

    def __init__(self, file: SpooledFile, cpu: CpuPool) -> None:
        self._file = file
        self._cpu = cpu

    async def write(self, data: Buffer) -> None:
        """Append all of the bytes; OSError."""
        await self._cpu.run(self._file.append, data)


class FileSource:
    """An open file as a Source; its size, and changed_at (Unix time), are those of when it was opened."""

    def __init__(self, file: BinaryIO | SpooledFile, cpu: CpuPool) -> None:
        self._spooled = file if isinstance(file, SpooledFile) else None
        self._descriptor = file.fileno()
        status = os.fstat(self._descriptor)
        self._size = status.st_size
        self.changed_at = status.st_mtime
        self._cpu = cpu

    @property
    def size(self) -> int:
        """Bytes of the file."""
        return self._size

    async def read_at(self, offset: int, length: int) -> Buffer:
        """Exactly those bytes; GridError if the file has become shorter."""
        return await self._cpu.run(self._read, offset, length)

    def _read(self, offset: int, length: int) -> Buffer:
        data = self._read_stored(offset, length)
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
def _spool(stream: BinaryIO, directory: Path) -> Iterator[SpooledFile]:
    """All that the stream gives, in a file that only we can open and that is gone when we are."""
    with SpooledFile(directory) as spooled:
        while chunk := stream.read(_SPOOL_CHUNK):
            spooled.append(chunk)
        yield spooled
