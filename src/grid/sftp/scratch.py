"""Contents of a file that is being written: what came, what is left of the old contents, and zeros between.

What comes is appended to a log, in memory while it is little, then in an encrypted file without a name; a map says which part of
the log is which part of the file. So nothing is encrypted twice with one key stream, and what was written twice takes room twice.
Old contents are fetched when they are read, or when the file is stored.

One change at a time, which the owner sees to; reads beside it. Cost: memory: BATCH_SIZE and the map. Disk: each byte written.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Awaitable, Callable
from operator import itemgetter

from attrs import define, field, frozen

from grid.errors import DataTooLargeError, GridError
from grid.gateway.shared.spool import BATCH_SIZE, LEAST_BATCH, SpoolFolder, UnnamedFile
from grid.ports import Buffer, CpuPool
from grid.runtime import Tasks

MOST_HOLE = 2**30
"""Bytes that nobody wrote, which a file may get at once."""

MOST_PIECES = 100_000
"""Parts of a file that lie apart in its log."""

MOST_PIECES_OF_ALL = 250_000
"""Of all files of a door, from which on each has FEW_PIECES."""

FEW_PIECES = 64

PIECE_COST = 128
"""Bytes of memory that a write takes beside its own."""

SETTLE_SIZE = 2**20
"""Bytes of old contents that are fetched at once."""

_OLD = -1
"""In the place of a position in the log: the old contents have it."""

_START: Callable[[tuple[int, int, int]], int] = itemgetter(0)
_STOP: Callable[[tuple[int, int, int]], int] = itemgetter(1)


@frozen
class OldContents:
    """What a file had before. fetch: exactly the bytes of an offset and a length."""

    size: int
    fetch: Callable[[int, int], Awaitable[Buffer]]


@define(eq=False)
class PieceRoom:
    """The pieces of all files of a door. taken: how many there are."""

    size: int = MOST_PIECES_OF_ALL
    taken: int = field(init=False, default=0)

    @property
    def limit(self) -> int:
        """How many a file may have."""
        return MOST_PIECES if self.taken < self.size else FEW_PIECES


class Scratch:
    """The contents, also as a source of bytes to store."""

    def __init__(self, folder: SpoolFolder, cpu: CpuPool, room: PieceRoom, old: OldContents | None = None) -> None:
        self._folder = folder
        self._cpu = cpu
        self._room = room
        self._old = old
        self._size = 0 if old is None else old.size
        self._map: list[tuple[int, int, int]] = [(0, old.size, _OLD)] if old is not None and old.size else []
        self._memory: list[tuple[int, bytes]] = []
        self._log_size = self._on_disk = self._held = 0
        self._file: UnnamedFile | None = None
        self._failure: GridError | None = None
        room.taken += len(self._map)

    @property
    def size(self) -> int:
        """Bytes of the file."""
        return self._size

    @property
    def written(self) -> list[tuple[int, int]]:
        """The parts that are not as they were, in order: from where to where."""
        found: list[tuple[int, int]] = []
        for start, stop, position in self._map:
            if position == _OLD:
                continue
            if found and found[-1][1] == start:
                found[-1] = found[-1][0], stop
            else:
                found.append((start, stop))
        return found

    async def write(self, offset: int, data: bytes) -> None:
        """Put the bytes there. NoSpaceError; DataTooLargeError for a hole, or a file in too many pieces."""
        self._require_sound()
        if not data:
            return
        if offset - self._size > MOST_HOLE:
            raise DataTooLargeError(f"a file cannot grow by more than {MOST_HOLE} bytes that nobody wrote")
        if len(self._map) >= self._room.limit:
            raise DataTooLargeError("the file was written in too many pieces; close it, and write it in order")
        await self._append(offset, data)

    async def _append(self, offset: int, data: bytes) -> None:
        position = self._log_size
        self._memory.append((position, data))
        self._log_size += len(data)
        self._hold(len(data) + PIECE_COST)
        before = len(self._map)
        self._put(offset, offset + len(data), position)
        self._room.taken += len(self._map) - before
        self._size = max(self._size, offset + len(data))
        if self._held > (LEAST_BATCH if self._folder.is_crowded else BATCH_SIZE):
            await self._flush()

    def truncate(self, size: int) -> None:
        """Cut the file there, or add zeros up to there. DataTooLargeError."""
        self._require_sound()
        if size - self._size > MOST_HOLE:
            raise DataTooLargeError(f"a file cannot grow by more than {MOST_HOLE} bytes that nobody wrote")
        last = bisect_left(self._map, size, key=_START)
        self._room.taken -= len(self._map) - last
        del self._map[last:]
        if self._map and self._map[-1][1] > size:
            start, _, position = self._map[-1]
            self._map[-1] = start, size, position
        self._size = size

    async def read_at(self, offset: int, length: int) -> Buffer:
        """Exactly those bytes, as they are when this is called."""
        self._require_sound()
        pieces: list[Buffer] = []
        for start, stop, position in self._plan(offset, offset + length):
            if position is None:
                pieces.append(bytes(stop - start))
            elif position == _OLD:
                assert self._old is not None
                pieces.append(await self._old.fetch(start, stop - start))
            else:
                pieces.extend(await self._read_log(position, stop - start))
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    async def settle(self) -> None:
        """Fetch what is left of the old contents, so that it is here. The errors of a read; NoSpaceError."""
        offset = 0
        while True:
            index = bisect_right(self._map, offset, key=_STOP)
            while index < len(self._map) and self._map[index][2] != _OLD:
                index += 1
            if index == len(self._map):
                return
            assert self._old is not None
            start, stop, _ = self._map[index]
            data = bytes(await self._old.fetch(start, min(SETTLE_SIZE, stop - start)))
            self._require_sound()
            await self._append(start, data)
            offset = start + len(data)

    def close(self) -> None:
        """Forget everything."""
        self._failure = self._failure or GridError("the file was closed")
        self._hold(-self._held)
        self._on_disk = self._log_size
        self._memory.clear()
        self._room.taken -= len(self._map)
        self._map.clear()
        file, self._file = self._file, None
        if file is not None:
            Tasks().start(_wait(self._cpu.run(file.close)))

    def _require_sound(self) -> None:
        if self._failure is not None:
            raise self._failure

    def _put(self, start: int, stop: int, position: int) -> None:
        first = bisect_right(self._map, start, key=_STOP)
        last = bisect_left(self._map, stop, key=_START)
        replaced = self._map[first:last]
        new: list[tuple[int, int, int]] = []
        if replaced and replaced[0][0] < start:
            new.append((replaced[0][0], start, replaced[0][2]))
        elif first and self._map[first - 1][1] == start:
            first -= 1
            new.append(self._map[first])
        if new and new[-1][2] != _OLD and new[-1][2] + start - new[-1][0] == position:
            new[-1] = new[-1][0], stop, new[-1][2]
        else:
            new.append((start, stop, position))
        if replaced and replaced[-1][1] > stop:
            begin, end, at = replaced[-1]
            new.append((stop, end, _OLD if at == _OLD else at + stop - begin))
        self._map[first:last] = new

    def _plan(self, offset: int, stop: int) -> list[tuple[int, int, int | None]]:
        """Where the bytes are: None for zeros."""
        found: list[tuple[int, int, int | None]] = []
        index = bisect_right(self._map, offset, key=_STOP)
        while offset < stop:
            if index == len(self._map) or self._map[index][0] >= stop:
                found.append((offset, stop, None))
                break
            start, end, position = self._map[index]
            if start > offset:
                found.append((offset, start, None))
                offset = start
            end = min(end, stop)
            found.append((offset, end, _OLD if position == _OLD else position + offset - start))
            offset = end
            index += 1
        return found

    async def _read_log(self, position: int, length: int) -> list[Buffer]:
        pieces: list[Buffer] = []
        stop = position + length
        while position < stop:
            if position < self._on_disk:
                assert self._file is not None
                end = min(stop, self._on_disk)
                pieces.append(await self._cpu.run(self._file.read, position, end - position))
                self._require_sound()
            else:
                start, data = self._memory[bisect_right(self._memory, position, key=itemgetter(0)) - 1]
                end = min(stop, start + len(data))
                pieces.append(memoryview(data)[position - start : end - start])
            position = end
        return pieces

    async def _flush(self) -> None:
        if self._file is None:
            self._file = UnnamedFile(self._folder.path)
        pieces = [data for _, data in self._memory]
        try:
            await self._cpu.run(self._file.append, pieces, None)
        except GridError as error:
            self._failure = self._failure or error
            raise
        self._require_sound()
        del self._memory[: len(pieces)]
        self._on_disk += sum(map(len, pieces))
        self._hold(-self._held)

    def _hold(self, size: int) -> None:
        """Count bytes that are in memory."""
        self._held += size
        self._folder.held_size += size


async def _wait(ending: Awaitable[object]) -> None:
    await ending
