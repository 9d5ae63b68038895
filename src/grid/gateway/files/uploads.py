"""Storing what a request brings: a new file of the format it asks for, or new contents of a mutable one. [spec webapi 3, 4.7]

Owns which bodies stream and which are spooled first. A convergent key takes the whole file, so immutable files are
spooled, and hashed while they arrive; a new MDMF file streams through; what replaces contents is spooled, as another
writer may make it necessary to send it twice.

Cost: disk: the spool is written once and read once. Memory: an SDMF file whole, or what the engine has under way.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext

from attrs import field, frozen

from grid.caps import KnownCap
from grid.crypto.rsa import PrivateKey
from grid.directory.file_store import FileStore
from grid.errors import DataTooLargeError, GridError
from grid.gateway.files.convergence import ArrivingKey
from grid.gateway.http.file_format import FileFormat
from grid.gateway.http.semaphore import Turns
from grid.gateway.http.spool import Spool, SpoolFolder
from grid.immutable.put import INLINE_SIZE, KEY_CHUNK, LIT_SIZE
from grid.limits import MAX_SDMF_BODY
from grid.mutable.node import MutableFile
from grid.ports import Buffer

UPDATE_SIZE = 16 * 2**20
"""Bytes of a mutable file that are replaced at once, from memory."""

LARGE_SIZE = 2**20
"""Bytes from which a file takes a turn to be stored: its shares take 40 MiB, or 64, of memory meanwhile."""

LARGE_STORES = 4
"""Large files that are stored at once; the others are kept on the disk until it is their turn."""


PASSING_STORES = 2
"""Files that pass straight through at once. Their clients may be slow, so that they hold up nobody: others are spooled."""


class Stores:
    """Who stores what at the moment: turns of both kinds, shared by all requests."""

    def __init__(self) -> None:
        self.large = Turns(LARGE_STORES)
        self.passing = Turns(PASSING_STORES)
        self._alone: dict[bytes, tuple[Turns, int]] = {}

    @asynccontextmanager
    async def alone(self, key: bytes | None) -> AsyncIterator[None]:
        """Store nothing else with this key meanwhile: a server gives room for one share to one upload only."""
        if key is None:
            yield
            return
        turns, count = self._alone.get(key, (Turns(1), 0))
        self._alone[key] = turns, count + 1
        try:
            async with turns.one():
                yield
        finally:
            turns, count = self._alone.pop(key)
            if count > 1:
                self._alone[key] = turns, count - 1

    def turn(self, size: int) -> AbstractAsyncContextManager[None]:
        """A turn to store a file of that size which is all here."""
        return self.large.one() if size >= LARGE_SIZE else nullcontext()


@frozen(kw_only=True)
class NewFile:
    """How a new file is to be stored. key: of a mutable one, None for a new key."""

    format: FileFormat = "chk"
    key: PrivateKey | None = field(default=None, repr=False)


@frozen(kw_only=True)
class Arriving:
    """Bytes on their way here. size: how many will come, None if nobody said. chunks: waits for whoever takes them."""

    size: int | None
    chunks: AsyncIterator[bytes] = field(repr=False)


async def store_new(store: FileStore, folder: SpoolFolder, stores: Stores, new: NewFile, body: Arriving) -> KnownCap:
    """Store a new file of the bytes that arrive. The errors of the engines; DataTooLargeError for too large an SDMF."""
    if new.format == "sdmf":
        require_sdmf_size(body.size)
    elif new.format == "mdmf" and body.size is not None and stores.passing.is_free:
        async with stores.passing.one():
            passing = PassingSource(body.size, body.chunks)
            return await store.put_mutable(passing, format="mdmf", key=new.key)
    arriving = ArrivingKey(store.convergence, store.encoding, body.size) if new.format == "chk" else None
    with Spool(folder, store.runtime.cpu, arriving.update if arriving else None) as spool:
        await spool_body(spool, body, MAX_SDMF_BODY if new.format == "sdmf" else None)
        return await store_spooled(store, stores, new, spool, arriving)


async def store_spooled(
    store: FileStore, stores: Stores, new: NewFile, spool: Spool, arriving: ArrivingKey | None = None
) -> KnownCap:
    """Store a new file of bytes that were spooled. arriving: what the spool showed them to.

    Equal immutable files that come at once are stored one after the other: the later ones find it there.
    """
    if new.format == "sdmf":
        require_sdmf_size(spool.size)
    if new.format != "chk":
        async with stores.turn(spool.size):
            return await store.put_mutable(spool, format=new.format, key=new.key)
    key = (arriving.finish() if arriving else None) or await _key_of(store, spool)
    async with stores.alone(key), stores.turn(spool.size):
        return await store.put_immutable(spool, key=key)


async def _key_of(store: FileStore, spool: Spool) -> bytes | None:
    """The convergent key of what was spooled; None if it has none."""
    if spool.size <= LIT_SIZE:
        return None
    making = ArrivingKey(store.convergence, store.encoding, spool.size)
    for offset in range(0, spool.size, KEY_CHUNK):
        raw = await spool.read_at(offset, min(KEY_CHUNK, spool.size - offset))
        if len(raw) <= INLINE_SIZE:
            making.update(raw)
        else:
            await store.runtime.cpu.run(making.update, raw)
    return making.finish()


async def spool_body(spool: Spool, body: Arriving, most: int | None) -> None:
    """Keep all of the bytes; DataTooLargeError past `most`, NoSpaceError, before any is taken if the size is known."""
    await spool.expect(body.size)
    async for chunk in body.chunks:
        await spool.write(chunk)
        if most is not None and spool.size > most:
            require_sdmf_size(spool.size)
    await spool.finish()


def require_sdmf_size(size: int | None) -> None:
    """DataTooLargeError if an SDMF file of this size is not taken."""
    if size is not None and size > MAX_SDMF_BODY:
        raise DataTooLargeError(f"an SDMF file has at most {MAX_SDMF_BODY} bytes here; large files take format=mdmf")


async def replace_contents(file: MutableFile, stores: Stores, spool: Spool, offset: int | None) -> None:
    """Replace the contents of a mutable file by what was spooled, or the part of them from `offset` on.

    A long part is replaced piece by piece. HoleError if it would begin behind the end, before anything is written.
    """
    async with stores.turn(spool.size):
        await _replace_contents(file, spool, offset)


async def _replace_contents(file: MutableFile, spool: Spool, offset: int | None) -> None:
    if offset is None:
        await file.overwrite(spool)
        return
    done = 0
    while done < spool.size or not done:
        data = await spool.read_at(done, min(UPDATE_SIZE, spool.size - done))
        await file.update(offset + done, data)
        done += len(data)
        if not data:
            return


class PassingSource:
    """A body of known size that is read once, in order, while it arrives."""

    def __init__(self, size: int, chunks: AsyncIterator[bytes]) -> None:
        self._size = size
        self._chunks = chunks
        self._offset = 0
        self._left: Buffer = b""

    @property
    def size(self) -> int:
        """Bytes in all."""
        return self._size

    async def read_at(self, offset: int, length: int) -> Buffer:
        """The next bytes. GridError if they were asked for before, or if the body ends."""
        if offset != self._offset:
            raise GridError("the upload was passed on while it came, and cannot be sent a second time; upload it again")
        pieces, missing = [self._left], length - len(self._left)
        while missing > 0:
            piece = await anext(self._chunks, None)
            if piece is None:
                raise GridError("the upload ended before all of it came")
            pieces.append(piece)
            missing -= len(piece)
        self._offset += length
        if missing:
            last = memoryview(pieces.pop())
            pieces.append(last[: len(last) + missing])
            self._left = last[len(last) + missing :]
        else:
            self._left = b""
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)
