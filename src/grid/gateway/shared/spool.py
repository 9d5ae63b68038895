"""A body kept until it was read as often as it takes: in memory while it is small, then in a file without a name.

Owns the file, which nobody else can open and which is gone when the process is. What is written to it is encrypted with a key that
is only in this process's memory: nothing readable is left on the disk, whatever becomes of the process. Bytes are written,
and shown to an observer such as a hash, on the pool, while more arrive.

All bodies of one gateway share the memory that they wait in: when it is taken, each is written as it comes, and read no
faster than that.

Cost: memory: twice BATCH_SIZE each, and little more than SHARED_BYTES for all. CPU: one pool call per BATCH_SIZE, which encrypts it; a read decrypts. Disk: each byte is
written once.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Awaitable, Callable
from contextlib import suppress
from errno import EDQUOT, ENOSPC
from pathlib import Path
from threading import Lock

from twisted.internet.defer import Deferred

from grid.crypto.aes import KEY_SIZE, CtrCipher
from grid.errors import GridError, NoSpaceError
from grid.ports import Buffer, CpuPool
from grid.runtime import Tasks

BATCH_SIZE = 2**20
"""Bytes that are written at once; a body that is no larger stays in memory. [spec webapi 1.1]"""

RESERVED = 256 * 2**20
"""Bytes of the disk that no body takes: the node itself, and servers beside it, need some."""

PART_SIZE = 2**18
"""Bytes that are encrypted and written at once."""

SHARED_BYTES = 48 * 2**20
"""Bytes in memory of all bodies together, from which on each writes what it has as soon as that is LEAST_BATCH."""

LEAST_BATCH = 2**16

_MOST_PIECES = 1000
"""Pieces that the system takes in one write, and somewhat more than a batch ever has."""


class SpoolFolder:
    """Where bodies are kept, and how much of all of them together is in memory."""

    def __init__(self, path: Path, shared: int = SHARED_BYTES) -> None:
        """path: a directory on a disk with room. shared: bytes in memory from which on bodies take as little as they can."""
        self.path = path
        self.held_size = 0
        self._shared = shared

    @property
    def is_crowded(self) -> bool:
        """Whether bodies take more memory than they should."""
        return self.held_size > self._shared


class Spool:
    """Bytes come in, in order; after `finish` they can be read. A context manager: outside of it nothing is kept."""

    def __init__(self, folder: SpoolFolder, cpu: CpuPool, observe: Callable[[Buffer], None] | None = None) -> None:
        """observe: is shown all bytes in order, on the pool, unless they stay in memory."""
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
        """Bytes that came."""
        return self._size

    async def expect(self, size: int | None) -> None:
        """Note how many bytes will come, if known. NoSpaceError if there is no room for them."""
        if size is not None and size > BATCH_SIZE:
            await self._cpu.run(_require_room, self._folder.path, size)

    async def write(self, data: bytes) -> None:
        """More bytes, which are kept and must not change. NoSpaceError if the disk is full."""
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
        """All bytes came. NoSpaceError if the disk is full."""
        if self._file is None:
            self._pieces = [b"".join(self._pieces)]
            return
        await self._flush()
        await self._settle()

    async def read_at(self, offset: int, length: int) -> Buffer:
        """Exactly those bytes."""
        if self._file is None:
            return memoryview(self._pieces[0])[offset : offset + length]
        return await self._cpu.run(self._file.read, offset, length)

    def close(self) -> None:
        """Forget all bytes, once nothing is being done with them any more."""
        self._pieces.clear()
        self._folder.held_size -= self._waiting
        self._waiting = 0
        file, self._file = self._file, None
        if file is not None:
            Tasks().start(self._close(file))

    async def _flush(self) -> None:
        """Have what waits written; returns while it is."""
        await self._settle()
        if self._waiting <= self._batch_size and self._file is None:
            # Many small pieces: still little enough to be kept here.
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
    """The file, opened at its first use. Threads take turns, so that it is never closed under one of them."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._key = os.urandom(KEY_SIZE)
        self._encryptor = CtrCipher(self._key)
        self._lock = Lock()
        self._descriptor: int | None = None
        self._is_closed = False

    def append(self, pieces: list[bytes], observe: Callable[[Buffer], None] | None) -> None:
        """Write the pieces at the end, and show them to the observer."""
        with self._lock:
            _require_room(self._directory, sum(map(len, pieces)))
            try:
                self._write_encrypted(pieces)
            except OSError as error:
                if error.errno in (ENOSPC, EDQUOT):
                    raise _full() from error
                raise GridError(f"the upload cannot be spooled: {error.strerror}") from error
        if observe is not None:
            for piece in pieces:
                observe(piece)

    def read(self, offset: int, length: int) -> bytes:
        """Exactly those bytes."""
        with self._lock:
            data = os.pread(self._require(), length, offset)
            while len(data) < length:
                more = os.pread(self._require(), length - len(data), offset + len(data))
                if not more:
                    raise GridError("the spooled upload is shorter than it was")
                data += more
            return CtrCipher(self._key, offset).crypt(data)

    def close(self) -> None:
        """Give the file and its room back."""
        with self._lock:
            self._is_closed = True
            if self._descriptor is not None:
                os.close(self._descriptor)
                self._descriptor = None

    def _require(self) -> int:
        if self._is_closed:
            raise GridError("the upload was given up")
        if self._descriptor is None:
            with tempfile.TemporaryFile(dir=self._directory, buffering=0) as file:
                self._descriptor = os.dup(file.fileno())
        return self._descriptor

    def _write_encrypted(self, pieces: list[bytes]) -> None:
        """Encrypt a part at a time into one buffer, so that nothing of a whole batch is there twice."""
        buffer = bytearray(min(PART_SIZE, max(map(len, pieces), default=0)))
        for piece in pieces:
            for start in range(0, len(piece), PART_SIZE):
                part = memoryview(piece)[start : start + PART_SIZE]
                target = memoryview(buffer)[: len(part)]
                self._encryptor.crypt_into(part, target)
                self._write([target])

    def _write(self, pieces: list[Buffer]) -> None:
        descriptor = self._require()
        left = [piece for piece in pieces if len(piece)]
        while left:
            written = os.writev(descriptor, left)
            while left and written >= len(left[0]):
                written -= len(left.pop(0))
            if written:
                left[0] = memoryview(left[0])[written:]


def _require_room(directory: Path, size: int) -> None:
    """NoSpaceError if `size` bytes would leave less than RESERVED."""
    try:
        found = os.statvfs(directory)
    except OSError as error:
        raise GridError(f"the upload cannot be spooled: {error.strerror}") from error
    if found.f_bavail * found.f_frsize - size < RESERVED:
        raise _full()


def _full() -> NoSpaceError:
    return NoSpaceError("the disk has no room to spool this upload")
