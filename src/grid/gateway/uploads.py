"""Storing what a request brings: a new file of the format it asks for, or new contents of a mutable one. [spec webapi 3, 4.7]

Owns which bodies stream and which are spooled first. A convergent key takes the whole file, so immutable files are
spooled, and hashed while they arrive; a new MDMF file streams through; what replaces contents is spooled, as another
writer may make it necessary to send it twice.

Cost: disk: the spool is written once and read once. Memory: an SDMF file whole, or what the engine has under way.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import nullcontext
from pathlib import Path

from attrs import field, frozen

from grid.caps import KnownCap
from grid.crypto.rsa import PrivateKey
from grid.directory.filestore import FileStore
from grid.errors import DataTooLargeError, GridError
from grid.gateway.convergent import ArrivingKey
from grid.gateway.fileformat import FileFormat
from grid.gateway.spool import Spool
from grid.gateway.turns import Turns
from grid.limits import MAX_SDMF_BODY
from grid.mutable.node import MutableFile
from grid.ports import Buffer

UPDATE_SIZE = 16 * 2**20
"""Octets of a mutable file that are replaced at once, from memory."""

LARGE_SIZE = 2**20
"""Octets from which a file takes a turn to be stored: its shares take up to 40 MiB of memory meanwhile."""

LARGE_STORES = 4
"""Large files that are stored at once; the others are kept on the disk until it is their turn."""


@frozen(kw_only=True)
class NewFile:
    """How a new file is to be stored. key: of a mutable one, None for a new key."""

    format: FileFormat = "chk"
    key: PrivateKey | None = field(default=None, repr=False)


@frozen(kw_only=True)
class Arriving:
    """Octets on their way here. size: how many will come, None if nobody said. chunks: waits for whoever takes them."""

    size: int | None
    chunks: AsyncIterator[bytes] = field(repr=False)


async def store_new(store: FileStore, spool_directory: Path, turns: Turns, new: NewFile, body: Arriving) -> KnownCap:
    """Store a new file of the octets that arrive. turns: LARGE_STORES of them, shared by all who store.

    The errors of the engines; DataTooLargeError for too large an SDMF file.
    """
    if new.format == "sdmf":
        require_sdmf_size(body.size)
    elif new.format == "mdmf" and body.size is not None and turns.is_free:
        async with turns.one():
            passing = PassingSource(body.size, body.chunks)
            return await store.put_mutable(passing, format="mdmf", key=new.key)
    arriving = ArrivingKey(store.convergence, store.encoding, body.size) if new.format == "chk" else None
    with Spool(spool_directory, store.runtime.cpu, arriving.update if arriving else None) as spool:
        await spool_body(spool, body, MAX_SDMF_BODY if new.format == "sdmf" else None)
        return await store_spooled(store, turns, new, spool, arriving)


async def store_spooled(
    store: FileStore, turns: Turns, new: NewFile, spool: Spool, arriving: ArrivingKey | None = None
) -> KnownCap:
    """Store a new file of octets that were spooled. arriving: what the spool showed them to."""
    async with turns.one() if spool.size >= LARGE_SIZE else nullcontext():
        return await _store_spooled(store, new, spool, arriving)


async def _store_spooled(store: FileStore, new: NewFile, spool: Spool, arriving: ArrivingKey | None) -> KnownCap:
    if new.format == "chk":
        return await store.put_immutable(spool, key=arriving.finish() if arriving else None)
    if new.format == "sdmf":
        require_sdmf_size(spool.size)
    return await store.put_mutable(spool, format=new.format, key=new.key)


async def spool_body(spool: Spool, body: Arriving, most: int | None) -> None:
    """Keep all of the octets; DataTooLargeError past `most`, NoSpaceError, before any is taken if the size is known."""
    await spool.expect(body.size)
    async for chunk in body.chunks:
        await spool.write(chunk)
        if most is not None and spool.size > most:
            require_sdmf_size(spool.size)
    await spool.finish()


def require_sdmf_size(size: int | None) -> None:
    """DataTooLargeError if an SDMF file of this size is not taken."""
    if size is not None and size > MAX_SDMF_BODY:
        raise DataTooLargeError(f"an SDMF file has at most {MAX_SDMF_BODY} octets here; large files take format=mdmf")


async def replace_contents(file: MutableFile, turns: Turns, spool: Spool, offset: int | None) -> None:
    """Replace the contents of a mutable file by what was spooled, or the part of them from `offset` on.

    A long part is replaced piece by piece. HoleError if it would begin behind the end, before anything is written.
    """
    async with turns.one() if spool.size >= LARGE_SIZE else nullcontext():
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
        """Octets in all."""
        return self._size

    async def read_at(self, offset: int, length: int) -> Buffer:
        """The next octets. GridError if they were asked for before, or if the body ends."""
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
