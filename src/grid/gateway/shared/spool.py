"""Holds a body while it is read, once or several times: small ones in memory, others in an anonymous file.

Owns the file, which no other process can open and which disappears with this one. Its contents are encrypted with a key
that exists only in this process's memory, so nothing readable remains on the disk in any event. Bytes are written, and
shown to an observer such as a hash, on the pool, while more arrive.

All bodies of one gateway share a memory budget: when it is used up, each is written as it arrives, and read from the
client no faster than that.

Cost: memory: twice BATCH_SIZE each, and little more than SHARED_BYTES for all. CPU: one pool call per BATCH_SIZE, which
encrypts it; a read decrypts. Disk: each byte is written once.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Lock

from twisted.internet.defer import Deferred

from grid.crypto.aes import KEY_SIZE, CtrCipher
from grid.errors import DISK_FULL, GridError, NoSpaceError
from grid.ports import Buffer, CpuPool
from grid.runtime import Tasks

BATCH_SIZE = 2**20
"""Bytes written at once; a body up to this size stays in memory. [spec webapi 1.1]"""

RESERVED = 256 * 2**20
"""Free bytes of the disk that bodies leave to the node itself and to other programs."""

PART_SIZE = 2**18
"""Bytes encrypted and written at once."""

SHARED_BYTES = 48 * 2**20
"""Bytes in memory of all bodies; beyond them, each body writes as soon as it has LEAST_BATCH."""

LEAST_BATCH = 2**16

_MOST_PIECES = 1000
"""Pieces that the system accepts in one write; a batch rarely has more."""


class SpoolFolder:
    """Where bodies are spooled, and how much memory all of them use."""

    def __init__(self, path: Path, shared: int = SHARED_BYTES) -> None:
        """path: a directory on a disk with room.

        shared: bytes in memory beyond which bodies buffer as little as they can.
        """
        self.path = path
        self.held_size = 0
        self._shared = shared

    @property
    def is_crowded(self) -> bool:
        """Whether bodies use more memory than they should."""
        return self.held_size > self._shared


class Spool:
    """Takes bytes in order; they can be read after `finish`. A context manager: leaving it discards everything."""

    def __init__(self, folder: SpoolFolder, cpu: CpuPool, observe: Callable[[Buffer], None] | None = None) -> None:
        """observe: called with all bytes in order, on the pool, unless they stay in memory."""
        self._folder = folder
        self._cpu = cpu
        self._observe = observe
        self._pieces: list[bytes] = []
        self._waiting = 0
        self._size = 0
        self._file: UnnamedFile | None = None
        self._writing: Awaitable[None] | None = None

    def __enter__(self) -> Spool:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def size(self) -> int:
        """Bytes received."""
        return self._size

    async def expect(self, size: int | None) -> None:
        """Set the expected size, if known. NoSpaceError if the disk has no room for it."""
        if size is not None and size > BATCH_SIZE:
            await self._cpu.run(_require_room, self._folder.path, size)

    async def write(self, data: bytes) -> None:
        """Add bytes, which must not change afterwards. NoSpaceError if the disk is full."""
        self._pieces.append(data)
        self._waiting += len(data)
        self._size += len(data)
        self._folder.held_size += len(data)
        if self._waiting > self._batch_size or len(self._pieces) >= _MOST_PIECES:
            await self._flush()
            if self._folder.is_crowded:
                await self._settle()

    @property
    def _batch_size(self) -> int:
        return LEAST_BATCH if self._folder.is_crowded else BATCH_SIZE

    async def finish(self) -> None:
        """Mark the body as complete. NoSpaceError if the disk is full."""
        if self._file is None:
            self._pieces = [b"".join(self._pieces)]
            return
        await self._flush()
        await self._settle()

    async def read_at(self, offset: int, length: int) -> Buffer:
        """Return exactly `length` bytes from `offset`."""
        if self._file is None:
            return memoryview(self._pieces[0])[offset : offset + length]
        return await self._cpu.run(self._file.read, offset, length)

    def close(self) -> None:
        """Discard all bytes, once no operation uses them."""
        self._pieces.clear()
        self._folder.held_size -= self._waiting
        self._waiting = 0
        file, self._file = self._file, None
        if file is not None:
            Tasks().start(self._close(file))

    async def _flush(self) -> None:
        """Start writing the waiting pieces; returns while the write runs."""
        await self._settle()
        if self._waiting <= self._batch_size and self._file is None:
            # Join many small pieces, which still fit in memory.
            self._pieces = [b"".join(self._pieces)]
            return
        if self._file is None:
            self._file = UnnamedFile(self._folder.path)
        pieces, self._pieces = self._pieces, []
        size, self._waiting = self._waiting, 0
        if pieces:
            self._writing = Deferred.fromCoroutine(self._append(self._file, pieces, size))

    async def _append(self, file: UnnamedFile, pieces: list[bytes], size: int) -> None:
        try:
            await self._cpu.run(file.append, pieces, self._observe)
        finally:
            self._folder.held_size -= size

    async def _close(self, file: UnnamedFile) -> None:
        closing = self._cpu.run(file.close)
        with suppress(GridError):
            await self._settle()
        await closing

    async def _settle(self) -> None:
        writing, self._writing = self._writing, None
        if writing is not None:
            await writing


class UnnamedFile:
    """The file, opened at its first use. A lock keeps one thread from closing it while another uses it."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._key = os.urandom(KEY_SIZE)
        self._encryptor = CtrCipher(self._key)
        self._lock = Lock()
        self._descriptor: int | None = None
        self._is_closed = False

    def append(self, pieces: Sequence[Buffer], observe: Callable[[Buffer], None] | None) -> None:
        """Append the pieces, and show their bytes to the observer, in larger parts: each call gives up the interpreter's
        lock, and gets it back late while the event loop is busy.
        """
        with self._lock:
            _require_room(self._directory, sum(map(len, pieces)))
            buffer = bytearray(min(PART_SIZE, sum(map(len, pieces))))
            for part in in_parts(pieces, PART_SIZE):
                try:
                    self._write_encrypted(part, buffer)
                except OSError as error:
                    if error.errno in DISK_FULL:
                        raise _full() from error
                    raise GridError(f"the upload cannot be spooled: {error.strerror}") from error
                if observe is not None:
                    observe(part)

    def read(self, offset: int, length: int) -> bytes:
        """Return exactly `length` bytes from `offset`."""
        with self._lock:
            data = os.pread(self._require(), length, offset)
            while len(data) < length:
                more = os.pread(self._require(), length - len(data), offset + len(data))
                if not more:
                    raise GridError("the spooled upload is shorter than it was")
                data += more
            return CtrCipher(self._key, offset).crypt(data)

    def close(self) -> None:
        """Close the file and free its space."""
        with self._lock:
            self._is_closed = True
            if self._descriptor is not None:
                os.close(self._descriptor)
                self._descriptor = None

    def _require(self) -> int:
        if self._is_closed:
            raise GridError("the upload was abandoned")
        if self._descriptor is None:
            with tempfile.TemporaryFile(dir=self._directory, buffering=0) as file:
                self._descriptor = os.dup(file.fileno())
        return self._descriptor

    def _write_encrypted(self, part: Buffer, buffer: bytearray) -> None:
        """Encrypt the part into the buffer, and append that."""
        target = memoryview(buffer)[: len(part)]
        self._encryptor.crypt_into(part, target)
        self._write(target)

    def _write(self, data: memoryview) -> None:
        descriptor = self._require()
        while data:
            data = data[os.write(descriptor, data) :]


def in_parts(pieces: Iterable[Buffer], size: int) -> Iterator[Buffer]:
    """The same bytes in parts of exactly that many, except the last. Only parts of several pieces are copied."""
    waiting: list[memoryview] = []
    missing = size
    for piece in pieces:
        rest = memoryview(piece)
        while rest:
            taken, rest = rest[:missing], rest[missing:]
            waiting.append(taken)
            missing -= len(taken)
            if not missing:
                yield _join(waiting)
                waiting, missing = [], size
    if waiting:
        yield _join(waiting)


def _join(pieces: list[memoryview]) -> Buffer:
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def _require_room(directory: Path, size: int) -> None:
    """Raise NoSpaceError if `size` bytes would leave less than RESERVED."""
    try:
        found = os.statvfs(directory)
    except OSError as error:
        raise GridError(f"the upload cannot be spooled: {error.strerror}") from error
    if found.f_bavail * found.f_frsize - size < RESERVED:
        raise _full()


def _full() -> NoSpaceError:
    return NoSpaceError("the disk has no room to spool this upload")
