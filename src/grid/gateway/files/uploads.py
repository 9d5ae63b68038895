"""Stores the bodies of requests, and computes their convergent keys while they arrive. [spec immutable 3]

A key depends on the segment size, and so on the size of the file. If the size is unknown, the file is assumed to be
long; if it turns out short, its key is computed again afterwards, which is cheap.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

from grid.caps import KnownCap
from grid.crypto.rsa import PrivateKey
from grid.engine.grid import Encoding
from grid.errors import DataTooLargeError, GridError
from grid.gateway.history.recorded_store import RecordedStore
from grid.gateway.http.arguments import FileFormat
from grid.gateway.shared.spool import BATCH_SIZE, Spool, SpoolFolder
from grid.gateway.shared.store_turns import Stores
from grid.immutable.put import INLINE_SIZE, KEY_CHUNK, LIT_SIZE
from grid.immutable.share.encode import convergent_hasher
from grid.immutable.share.geometry import Geometry
from grid.immutable.write.small_file import whole_share_size
from grid.limits import MAX_SDMF_BODY
from grid.mutable.node import MutableFile
from grid.mutable.sources import MemorySource
from grid.ports import Buffer, Source
from grid.values import field, frozen


class ArrivingKey:
    """Hashes a body as it arrives. Calls must not overlap; any thread may make them."""

    def __init__(self, secret: bytes, encoding: Encoding, size: int | None) -> None:
        """secret: the convergence secret. size: bytes expected, None if unknown."""
        self._encoding = encoding
        self._geometry = self._of_size(max(encoding.max_segment_size if size is None else size, LIT_SIZE + 1))
        self._hasher = convergent_hasher(secret, self._geometry)
        self._size = 0

    def update(self, data: Buffer) -> None:
        """Hash the next bytes, in order."""
        self._hasher.update(data)
        self._size += len(data)

    def finish(self) -> bytes | None:
        """The key of the whole body; None if its size was not the expected one, which makes the key invalid."""
        if self._size <= LIT_SIZE or self._of_size(self._size).segment_size != self._geometry.segment_size:
            return None
        return self._hasher.digest(16)

    def _of_size(self, size: int) -> Geometry:
        encoding = self._encoding
        return Geometry.of_file(size, encoding.k, encoding.n, encoding.max_segment_size)


UPDATE_SIZE = 16 * 2**20
"""Bytes of a mutable file that are buffered and replaced at once."""


@frozen(kw_only=True)
class NewFile:
    """How to store a new file. key: of a mutable file, None for a fresh key.

    unique: whether an immutable file gets a random key.
    """

    format: FileFormat = "chk"
    unique: bool = False
    key: PrivateKey | None = field(default=None, repr=False)


@frozen(kw_only=True)
class Arriving:
    """A body that is arriving. size: expected bytes, None if unknown. chunks: arrive as fast as they are taken."""

    size: int | None
    chunks: AsyncIterator[bytes] = field(repr=False)


async def store_new(
    store: RecordedStore, folder: SpoolFolder, stores: Stores, new: NewFile, body: Arriving
) -> KnownCap:
    """Store the arriving bytes as a new file.

    Raises the engines' errors, and DataTooLargeError for an SDMF file over the limit.
    """
    if new.format == "sdmf":
        require_sdmf_size(body.size)
    elif new.format == "mdmf" and body.size is not None and stores.passing.is_free:
        async with stores.passing.one():
            passing = PassingSource(body.size, body.chunks)
            return await store.put_mutable(passing, format="mdmf", key=new.key)
    elif _is_unique(store, new) and body.size is not None and body.size > BATCH_SIZE and stores.passing.is_free:
        async with stores.passing.one():
            return await _put_passing(store, PassingSource(body.size, body.chunks))
    arriving = arriving_key(store, body.size) if new.format == "chk" and not new.unique else None
    with Spool(folder, store.runtime.cpu, arriving.update if arriving else None) as spool:
        await spool_body(spool, body, MAX_SDMF_BODY if new.format == "sdmf" else None)
        return await store_spooled(store, stores, new, spool, arriving)


async def store_spooled(
    store: RecordedStore, stores: Stores, new: NewFile, spool: Source, arriving: ArrivingKey | None = None
) -> KnownCap:
    """Store spooled bytes as a new file. arriving: the hasher that saw the bytes while they were spooled.

    Equal immutable files that arrive together are stored one after the other, and the later ones find the first one's
    shares.
    """
    if new.format == "sdmf":
        require_sdmf_size(spool.size)
    if new.format != "chk":
        async with stores.turn(spool.size):
            return await store.put_mutable(spool, format=new.format, key=new.key)
    if _is_unique(store, new):
        async with stores.turn(spool.size):
            return await store.put_unique(spool)
    key = (arriving.finish() if arriving else None) or await _key_of(store, spool)
    async with stores.alone(key), stores.turn(spool.size):
        return await store.put_immutable(spool, key=key)


async def _put_passing(store: RecordedStore, passing: PassingSource) -> KnownCap:
    """Store a file under a random key while it arrives: its first segment is sent before the last one is here."""
    size, encoding = passing.size, store.grid.encoding
    geometry = Geometry.of_file(size, encoding.k, encoding.n, encoding.max_segment_size)
    if whole_share_size(geometry) is None:
        return await store.put_unique(passing)
    # A small file is sent as a whole, and again in segments if servers refuse.
    return await store.put_unique(MemorySource(await passing.read_at(0, size)))


def _is_unique(store: RecordedStore, new: NewFile) -> bool:
    """Whether the file gets a random key, which is known before its contents are."""
    return new.format == "chk" and (new.unique or store.grid.convergence is None)


def arriving_key(store: RecordedStore, size: int | None) -> ArrivingKey | None:
    """A hasher for a body of this size, or of unknown size; None if equal files get keys of their own."""
    convergence = store.grid.convergence
    return None if convergence is None else ArrivingKey(convergence, store.grid.encoding, size)


async def _key_of(store: RecordedStore, spool: Source) -> bytes | None:
    """The convergent key of the spooled bytes; None if they have none."""
    making = arriving_key(store, spool.size)
    if spool.size <= LIT_SIZE or making is None:
        return None
    for offset in range(0, spool.size, KEY_CHUNK):
        raw = await spool.read_at(offset, min(KEY_CHUNK, spool.size - offset))
        if len(raw) <= INLINE_SIZE:
            making.update(raw)
        else:
            await store.runtime.cpu.run(making.update, raw)
    return making.finish()


async def spool_body(spool: Spool, body: Arriving, most: int | None) -> None:
    """Spool all bytes. DataTooLargeError past `most`; NoSpaceError, before any byte is taken if the size is known."""
    await spool.expect(body.size)
    async for chunk in body.chunks:
        await spool.write(chunk)
        if most is not None and spool.size > most:
            require_sdmf_size(spool.size)
    await spool.finish()


def require_sdmf_size(size: int | None) -> None:
    """Raise DataTooLargeError if an SDMF file of this size is over the limit."""
    if size is not None and size > MAX_SDMF_BODY:
        raise DataTooLargeError(f"an SDMF file has at most {MAX_SDMF_BODY} bytes here; large files take format=mdmf")


async def replace_contents(file: MutableFile, stores: Stores, spool: Spool, offset: int | None) -> None:
    """Replace the contents of a mutable file with the spooled bytes, or only its part from `offset` on.

    A long part is replaced piece by piece. HoleError, before anything is written, if it would begin past the file's
    end.
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
        """Total bytes."""
        return self._size

    async def read_at(self, offset: int, length: int) -> Buffer:
        """The next bytes. GridError if they were already read or if the body ends early."""
        if offset != self._offset:
            raise GridError("the upload cannot be sent a second time; upload the file again")
        pieces, missing = [self._left], length - len(self._left)
        while missing > 0:
            piece = await anext(self._chunks, None)
            if piece is None:
                raise GridError("the upload ended before it was complete")
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
