"""Contents of files in transit from and to the grid, between the transfer's event loop and the client's reactor."""

from __future__ import annotations

import asyncio
import hashlib
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from typing import Any

from attrs import evolve, field

from grid.caps import ChkCap, KnownCap, SliceCap
from grid.codec.buffers import unwiped
from grid.directory.file_store import FileStore
from grid.extents.ciphers import decrypt_slice
from grid.extents.pack_reader import LONGEST_RUN
from grid.immutable.write.put_plan import LIVE_BYTES, WRITE_BYTES
from grid.mutable.reading import newest_version
from grid.mutable.share.prefix import Prefix
from grid.node.config import ClientSettings
from grid.ports import Buffer, Sink
from grid.sinks import FrozenBytesSink
from grid.transfer.ends import PIECE_SIZE, Body, Entry, SourceChangedError
from grid.transfer.grid_session import GridSession
from grid.values import frozen

READ_SIZE = 4 * 2**20
"""Bytes of one read at least, unless its range ends: several segments, whose shares are fetched in parallel."""

READ_AHEAD = 6 * 2**20
"""Bytes that a read of a whole file has in flight: two files side by side take no more than the ranges of one did."""

SPAN_GAP = 16 * 2**10
"""Bytes of other files that are fetched along with slices on either side of them: a segment of a pack."""

KEPT_RUNS = 4
"""Ranges of packs that are kept for files which follow."""

PUT_MEMORY = 60 * 2**20
"""Bytes that a put of a large file holds: batches of plaintext, and shares that servers have not confirmed."""

SHARES_OF_A_BYTE = 4
"""Bytes of shares for each byte of a file, and the byte itself."""


def memory_of_put(size: int) -> int:
    """Bytes that the put of a file of this size holds at most."""
    return min(PUT_MEMORY, SHARES_OF_A_BYTE * size)


def edges_of_put(size: int, settings: ClientSettings) -> tuple[int, int]:
    """The same for its first batch, and after its source was read: a put has two batches of shares at a time, one that is being
    encoded and one on its way; at its beginning there is one, and at its end there is no more plaintext.
    """
    plaintext = WRITE_BYTES * settings.needed // settings.total
    whole = memory_of_put(size)
    return min(whole, WRITE_BYTES + plaintext), min(whole, LIVE_BYTES)


@frozen(kw_only=True)
class Adoptable:
    """A file that can be linked as it is. session: of the grid that stores it."""

    session: GridSession
    cap: KnownCap = field(repr=False)


@frozen
class SharedPacks:
    """A slice or a sequence, read by the store, so that files of one pack share what was fetched of it."""

    store: FileStore = field(repr=False)
    cap: KnownCap = field(repr=False)

    async def read(self, sink: Sink, offset: int, length: int) -> int:
        """Write bytes offset .. offset + length to the sink; return the byte count."""
        return await self.store.read(self.cap, sink, offset, length)


class Neighbors:
    """What was fetched of packs last, so that the next file of a pack costs no call to the client.

    Memory: KEPT_RUNS runs, which the store's reader usually keeps as well.
    """

    def __init__(self) -> None:
        self._runs: deque[tuple[ChkCap, int, memoryview]] = deque(maxlen=KEPT_RUNS)

    def find(self, cap: SliceCap) -> memoryview | None:
        """The ciphertext of a slice."""
        for pack, start, data in self._runs:
            begin = cap.offset - start
            if begin >= 0 and begin + cap.length <= len(data) and cap.pack == pack:
                return data[begin : begin + cap.length]
        return None

    def keep(self, pack: ChkCap, start: int, data: Buffer) -> None:
        """Keep a range of a pack that begins at `start`, in place of the one that was kept first."""
        self._runs.append((pack, start, memoryview(data)))


async def read_ciphertext(session: GridSession, store: FileStore, neighbors: Neighbors, cap: SliceCap) -> memoryview:
    """The ciphertext of a slice of at most LONGEST_RUN bytes; GridError."""
    found = neighbors.find(cap)
    if found is not None:
        return found
    start, data = await session.run(store.read_around(cap))
    neighbors.keep(cap.pack, start, data)
    begin = cap.offset - start
    return memoryview(data)[begin : begin + cap.length]


async def read_slices(
    session: GridSession, store: FileStore, neighbors: Neighbors, caps: Sequence[KnownCap | None]
) -> list[Buffer | None]:
    """The contents of slices of at most LONGEST_RUN bytes, None for whatever is none; GridError.

    Slices that lie side by side are fetched together, in whatever order they come.
    """
    slices = [cap for cap in caps if isinstance(cap, SliceCap) and neighbors.find(cap) is None]
    for span in _spans(slices):
        await read_ciphertext(session, store, neighbors, span)
    found: list[Buffer | None] = []
    for cap in caps:
        if isinstance(cap, SliceCap):
            found.append(decrypt_slice(cap.key, await read_ciphertext(session, store, neighbors, cap)))
        else:
            found.append(None)
    return found


def _spans(slices: Sequence[SliceCap]) -> Iterator[SliceCap]:
    """Yield slices that cover two or more of those given, with at most SPAN_GAP bytes between them; their keys decrypt nothing."""
    ordered = sorted(slices, key=lambda cap: (cap.pack.storage_index, cap.offset))
    while ordered:
        first = ordered[0]
        count, stop = 1, first.offset + first.length
        for cap in ordered[1:]:
            end = max(stop, cap.offset + cap.length)
            if cap.pack != first.pack or cap.offset > stop + SPAN_GAP or end - first.offset > LONGEST_RUN:
                break
            count, stop = count + 1, end
        if count > 1:
            yield evolve(first, length=stop - first.offset)
        ordered = ordered[count:]


class OpenedSlice:
    """A small file of a pack, at most LONGEST_RUN bytes."""

    def __init__(
        self, session: GridSession, store: FileStore, neighbors: Neighbors, entry: Entry, cap: SliceCap
    ) -> None:
        self._session, self._store, self._neighbors, self.entry, self._cap = session, store, neighbors, entry, cap
        self.shortcut: object = Adoptable(session=session, cap=cap)

    async def read(self, offset: int, length: int) -> AsyncIterator[Buffer]:
        """Yield the bytes of a range."""
        cap, stop = self._cap, min(offset + length, self._cap.size)
        if offset >= stop:
            return
        ciphertext = await read_ciphertext(self._session, self._store, self._neighbors, cap)
        yield decrypt_slice(cap.key, ciphertext[offset:stop], offset)

    async def require_unchanged(self) -> None:
        """Do nothing: every byte was verified against the capability."""

    async def close(self) -> None:
        """Do nothing: nothing is held open."""


class OpenedGridFile:
    """A file that is read in ranges; what one range learns makes the next one cheaper."""

    def __init__(self, session: GridSession, file: Any, entry: Entry, cap: KnownCap | None) -> None:  # noqa: ANN401
        self._session, self._file, self.entry = session, file, entry
        self.shortcut: object = None if cap is None else Adoptable(session=session, cap=cap)

    async def read(self, offset: int, length: int) -> AsyncIterator[Buffer]:
        """Yield the bytes of a range, a few segments at a time."""
        while length > 0:
            sink = FrozenBytesSink()
            await self._session.run(self._read(sink, offset, min(length, self._next_size(offset))))
            data = sink.take()
            if not data:
                return
            offset += len(data)
            length -= len(data)
            yield data

    def _next_size(self, offset: int) -> int:
        """Bytes to read at this place."""
        return READ_SIZE

    async def _read(self, sink: Sink, offset: int, length: int) -> None:
        await self._file.read(sink, offset, length)

    async def require_unchanged(self) -> None:
        """Do nothing: every byte was verified against the capability."""

    async def close(self) -> None:
        """Do nothing: nothing is held open."""


class OpenedImmutableFile(OpenedGridFile):
    """A file of which one read fetches ahead: its batches are large, and no segment is fetched twice.

    Nor do the reads of a range fetch one twice, because they end where segments do.
    """

    def _next_size(self, offset: int) -> int:
        """To the end of the segment in which READ_SIZE bytes would end."""
        size: int = self._file.segment_size
        return -(-(offset + READ_SIZE) // size) * size - offset

    async def stream(self, offset: int) -> AsyncIterator[Buffer]:
        """Yield all bytes from the offset on, as one read delivers them. Each is lent until the next one is asked for."""
        lent: asyncio.Queue[tuple[Buffer, asyncio.Event] | None] = asyncio.Queue()
        sink = _Lending(self._session, asyncio.get_running_loop(), lent)
        reading = asyncio.create_task(self._session.run(self._deliver(sink, offset)))
        reading.add_done_callback(lambda _: lent.put_nowait(None))
        try:
            while (batch := await lent.get()) is not None:
                data, returned = batch
                for begin in range(0, len(data), PIECE_SIZE):
                    yield memoryview(data)[begin : begin + PIECE_SIZE]
                returned.set()
            await reading
        finally:
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)

    async def _deliver(self, sink: Sink, offset: int) -> None:
        await self._file.read(sink, offset, most_bytes=READ_AHEAD)


async def open_mutable_file(session: GridSession, store: FileStore, entry: Entry, cap: KnownCap) -> OpenedMutableFile:
    """Open a mutable file in its newest version, which is the entry's tag. Raises the errors of finding it."""
    version = await session.run(newest_version(cap, store.grid))
    return OpenedMutableFile(session, store, evolve(entry, size=version.size, tag=_tag_of(version)), cap)


class OpenedMutableFile(OpenedGridFile):
    """A file that others can change while it is read."""

    def __init__(self, session: GridSession, store: FileStore, entry: Entry, cap: KnownCap) -> None:
        super().__init__(session, store.open_mutable(cap), entry, None)
        self._grid, self._cap = store.grid, cap

    async def require_unchanged(self) -> None:
        """Compare the newest version with the one that was opened. SourceChangedError; raises the errors of finding it."""
        if _tag_of(await self._session.run(newest_version(self._cap, self._grid))) != self.entry.tag:
            raise SourceChangedError(f"{self.entry.name} changed while it was read")


def _tag_of(version: Prefix) -> str:
    return f"{version.seqnum}-{version.root_hash.hex()}"


class _Lending:
    """Passes what the reactor's thread writes to asyncio's. A write ends once the buffer is returned."""

    def __init__(
        self,
        session: GridSession,
        loop: asyncio.AbstractEventLoop,
        lent: asyncio.Queue[tuple[Buffer, asyncio.Event] | None],
    ) -> None:
        self._session, self._loop, self._lent = session, loop, lent

    async def write(self, data: Buffer) -> None:
        """Lend the bytes. Runs on the reactor."""
        await self._session.ask(self._loop, self._lend(data))

    async def _lend(self, data: Buffer) -> None:
        returned = asyncio.Event()
        self._lent.put_nowait((data, returned))
        await returned.wait()


class BodySource:
    """A body as the source of a put: read in order, and from the start again if the put restarts, or has hashed it for the key.

    All readings must be of the same bytes, because one key encrypts them. The last bytes are passed on only if they were, so no
    share is completed otherwise. [decision 505]
    """

    def __init__(
        self,
        session: GridSession,
        body: Body,
        loop: asyncio.AbstractEventLoop,
        examine: Callable[[int, Buffer], None],
    ) -> None:
        """examine: called with every range before it is passed on; it may raise to refuse it."""
        self._session, self._body, self._loop, self._examine = session, body, loop, examine
        self._stream: AsyncIterator[Buffer] | None = None
        self._position = 0
        self._rest = memoryview(b"")
        self._digest = b""

    @property
    def size(self) -> int:
        """Total bytes."""
        return self._body.size

    async def read_at(self, offset: int, length: int) -> Buffer:
        """Return the bytes of a range. Runs on the reactor."""
        return await self._session.ask(self._loop, self._next(offset, min(length, self.size - offset)))

    async def _next(self, offset: int, length: int) -> memoryview:
        """Copy each byte once: the rest of a piece waits in it, for a stream is asked for another one only when it is used up."""
        if self._stream is None or offset != self._position:
            await self.close()
            self._stream, self._position = self._body.stream(offset), offset
        if offset:
            await self._body.memory.rest()
        data, filled = unwiped(length), 0
        while filled < length:
            if not self._rest:
                self._rest = memoryview(await anext(self._stream))
            count = min(length - filled, len(self._rest))
            data[filled : filled + count] = self._rest[:count]
            self._rest, filled = self._rest[count:], filled + count
        if not self._rest:
            self._rest = memoryview(b"")
        self._position += length
        if self._position == self.size:
            self._body.memory.ended()
            await self._require_same()
        self._examine(offset, data)
        return data

    async def _require_same(self) -> None:
        """Raise SourceChangedError if the source changed while it was read, or since it was read before."""
        await self._body.require_unchanged()
        digest = hashlib.sha256(self._body.digests(0, self.size)).digest()
        if self._digest not in (b"", digest):
            raise SourceChangedError("the source is not what was read of it before")
        self._digest = digest

    async def close(self) -> None:
        """Close the stream."""
        stream, self._stream, self._rest = self._stream, None, memoryview(b"")
        if stream is not None:
            close: Any = getattr(stream, "aclose", None)
            if close is not None:
                await close()
