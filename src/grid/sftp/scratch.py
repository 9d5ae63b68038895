"""The contents of a file being written: new bytes, the remaining old contents, and zeros in between.

New bytes are appended to a log, first in memory and later in an encrypted anonymous file; a map tells which part of the
log is which part of the file. So no key stream is ever used twice, but bytes written twice take space twice. Old
contents are fetched when they are read, or when the file is stored.

The bytes of a file that is written in order are hashed when they are written to the disk.

A batch is written to the disk while the next one arrives; if that fails, every later call fails.

The owner ensures that changes do not overlap; reads may run in parallel. Cost: memory: twice BATCH_SIZE and the map.
Disk: each byte written.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Awaitable, Callable, Sequence
from operator import itemgetter

from grid.errors import DataTooLargeError, GridError
from grid.gateway.files.uploads import ArrivingKey
from grid.gateway.shared.spool import BATCH_SIZE, LEAST_BATCH, PART_SIZE, SpoolFolder, UnnamedFile, in_parts
from grid.gateway.shared.store_turns import Semaphore
from grid.immutable.put import INLINE_SIZE
from grid.ports import Buffer, CpuPool
from grid.runtime import Tasks
from grid.values import define, field, frozen

MOST_HOLE = 2**30
"""The largest hole, in bytes, that one request may create."""

MOST_PIECES = 100_000
"""Pieces of a file that are not adjacent in its log."""

MOST_PIECES_OF_ALL = 250_000
"""Pieces of all files of a door, beyond which each may have FEW_PIECES."""

FEW_PIECES = 64

PIECE_COST = 128
"""Bytes of memory that a write takes in addition to its data."""

SETTLE_SIZE = 2**20
"""Bytes of old contents fetched at once."""

_OLD = -1
"""Stands in for a position in the log: the bytes are in the old contents."""

_START: Callable[[tuple[int, int, int]], int] = itemgetter(0)
_STOP: Callable[[tuple[int, int, int]], int] = itemgetter(1)


@frozen
class OldContents:
    """A file's previous contents. fetch: returns exactly the bytes of an offset and length. close: ends all fetches."""

    size: int
    fetch: Callable[[int, int], Awaitable[Buffer]]
    close: Callable[[], None] = lambda: None


@define(eq=False)
class PieceRoom:
    """The pieces of all files of a door. taken: their number."""

    size: int = MOST_PIECES_OF_ALL
    taken: int = field(init=False, default=0)

    @property
    def limit(self) -> int:
        """How many pieces a file may have."""
        return MOST_PIECES if self.taken < self.size else FEW_PIECES


class Scratch:
    """The contents, which also serve as a source to store."""

    def __init__(
        self,
        folder: SpoolFolder,
        cpu: CpuPool,
        room: PieceRoom,
        old: OldContents | None = None,
        key: ArrivingKey | None = None,
    ) -> None:
        """key: hashes all bytes on the pool, while the file is written in order."""
        self._key = key
        self._hashed = 0
        self._folder = folder
        self._cpu = cpu
        self._room = room
        self._old = old
        self._size = 0 if old is None else old.size
        self._map: list[tuple[int, int, int]] = [(0, old.size, _OLD)] if old is not None and old.size else []
        self._memory: list[tuple[int, Buffer]] = []
        self._log_size = self._spilling = 0
        self._file: UnnamedFile | None = None
        self._failure: BaseException | None = None
        self._spills = Semaphore(1)
        room.taken += len(self._map)

    @property
    def size(self) -> int:
        """Bytes of the file."""
        return self._size

    @property
    def written(self) -> list[tuple[int, int]]:
        """The changed ranges in order, as (start, stop)."""
        found: list[tuple[int, int]] = []
        for start, stop, position in self._map:
            if position == _OLD:
                continue
            if found and found[-1][1] == start:
                found[-1] = found[-1][0], stop
            else:
                found.append((start, stop))
        return found

    async def write(self, offset: int, data: Buffer) -> None:
        """Write bytes. NoSpaceError, perhaps of earlier ones; DataTooLargeError for a large hole or too many pieces."""
        refusal = self._refusal(offset, data)
        if refusal is not None:
            raise refusal
        await self._take(offset, data)

    def write_now(self, offset: int, data: Buffer) -> bool:
        """Write bytes if that requires no waiting and is not refused; return whether it did."""
        if self._is_behind or self._folder.is_crowded or self._refusal(offset, data) is not None:
            return False
        self._append(offset, data)
        return True

    def _refusal(self, offset: int, data: Buffer) -> BaseException | None:
        if self._failure is not None or not data:
            return self._failure
        if offset - self._size > MOST_HOLE:
            return DataTooLargeError(f"a file cannot grow by more than {MOST_HOLE} unwritten bytes at once")
        if len(self._map) >= self._room.limit:
            return DataTooLargeError("the file was written in too many pieces; close it, and write it in order")
        return None

    async def _take(self, offset: int, data: Buffer) -> None:
        """Append bytes once there is memory for them; if all files hold too much, return once they are on the disk."""
        while self._is_behind:
            await self._spilled()
        self._append(offset, data)
        if self._folder.is_crowded:
            await self._spilled()

    def _append(self, offset: int, data: Buffer) -> None:
        if not data:
            return
        position = self._log_size
        self._memory.append((position, data))
        self._log_size += len(data)
        self._folder.held_size += len(data) + PIECE_COST
        before = len(self._map)
        self._put(offset, offset + len(data), position)
        self._room.taken += len(self._map) - before
        self._size = max(self._size, offset + len(data))
        if self._is_batch_full and self._spills.is_free:
            Tasks().start(self._spill())

    @property
    def _is_batch_full(self) -> bool:
        limit = LEAST_BATCH if self._folder.is_crowded else BATCH_SIZE
        return self._held - self._spilling > limit

    @property
    def _is_behind(self) -> bool:
        """Whether a batch is complete while the one before is still being written."""
        return self._is_batch_full and not self._spills.is_free

    async def _spilled(self) -> None:
        """Wait until no batch is being written; raises the error of one that could not be."""
        async with self._spills.one():
            self._require_sound()

    def truncate(self, size: int) -> None:
        """Truncate the file, or extend it with zeros. DataTooLargeError."""
        self._require_sound()
        if size - self._size > MOST_HOLE:
            raise DataTooLargeError(f"a file cannot grow by more than {MOST_HOLE} unwritten bytes at once")
        last = bisect_left(self._map, size, key=_START)
        self._room.taken -= len(self._map) - last
        del self._map[last:]
        if self._map and self._map[-1][1] > size:
            start, _, position = self._map[-1]
            self._map[-1] = start, size, position
        self._size = size

    async def read_at(self, offset: int, length: int) -> Buffer:
        """Return exactly these bytes, as they are at the time of the call."""
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
        """Fetch the remaining old contents. Raises the errors of a read; NoSpaceError."""
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
            await self._take(start, data)
            offset = start + len(data)

    async def finish(self) -> ArrivingKey | None:
        """Hash the rest; return the key if it has seen exactly the file. Call `settle` first. NoSpaceError."""
        await self._spilled()
        if not self._is_in_order:
            self._key = None
        key = self._key
        if key is None:
            return None
        fresh = self._unhashed()
        if sum(map(len, fresh)) <= INLINE_SIZE:
            _hash(fresh, key)
        else:
            await self._cpu.run(_hash, fresh, key)
        return key

    @property
    def _is_in_order(self) -> bool:
        """Whether the log is the file."""
        return self._map == [(0, self._size, 0)] and self._log_size == self._size

    @property
    def _on_disk(self) -> int:
        """Bytes of the log that are no longer in memory."""
        return self._memory[0][0] if self._memory else self._log_size

    @property
    def _held(self) -> int:
        """Bytes of memory that the file takes."""
        return self._log_size - self._on_disk + PIECE_COST * len(self._memory)

    def _unhashed(self) -> list[Buffer]:
        """The bytes in memory that are to be hashed next, in order; they count as hashed."""
        fresh = [data for position, data in self._memory if position >= self._hashed]
        self._hashed = self._log_size
        return fresh

    def close(self) -> None:
        """Discard everything."""
        self._failure = self._failure or GridError("the file was closed")
        self._folder.held_size -= self._held
        self._memory.clear()
        self._room.taken -= len(self._map)
        self._map.clear()
        if self._old is not None:
            self._old.close()
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
        """Where the bytes are; None stands for zeros."""
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

    async def _spill(self) -> None:
        """Move what is in memory to the disk."""
        async with self._spills.one():
            try:
                await self._move()
            except BaseException as error:
                self._failure = self._failure or error  # Before the waiting calls go on.
                raise

    async def _move(self) -> None:
        if self._file is None:
            self._file = UnnamedFile(self._folder.path)
        pieces = [data for _, data in self._memory]
        held = self._spilling = self._held
        if not self._is_in_order:
            self._key = None
        fresh = [] if self._key is None else self._unhashed()
        await self._cpu.run(_spill, self._file, pieces, fresh, self._key)
        self._require_sound()
        del self._memory[: len(pieces)]
        self._spilling = 0
        self._folder.held_size -= held


def _spill(file: UnnamedFile, pieces: Sequence[Buffer], fresh: Sequence[Buffer], key: ArrivingKey | None) -> None:
    """Append pieces to the file, and hash the fresh ones, which are the last."""
    known = len(pieces) - len(fresh)
    if known:
        file.append(pieces[:known], None)
    if fresh:
        file.append(pieces[known:], None if key is None else key.update)


def _hash(pieces: Sequence[Buffer], key: ArrivingKey) -> None:
    for part in in_parts(pieces, PART_SIZE):
        key.update(part)


async def _wait(ending: Awaitable[object]) -> None:
    await ending
