"""Reads many slices of one pack; what was read for one of them serves the others.

It owns how much of a pack is read at once. A single slice costs its own segments. Consecutive slices
are read in runs that double up to LONGEST_RUN, so that reading a pack from front to back fetches it once.

Memory: KEPT_BYTES for all packs of one reader together, and the runs in flight.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Callable

from twisted.internet.defer import Deferred

from grid.caps import ChkCap
from grid.errors import GridError
from grid.extents.pack_writer import SEGMENT_SIZE
from grid.ports import Buffer, Sink
from grid.values import define, field

ReadChk = Callable[[ChkCap, Sink, int, int, int], Awaitable[object]]
"""Writes a range of a CHK file to a sink, all of it proven: cap, sink, offset, length, likely size of its segments."""

SHORTEST_RUN = 64 * 2**10
LONGEST_RUN = 4 * 2**20
"""Most bytes read at once after consecutive slices."""

KEPT_BYTES = 16 * 2**20
"""Bytes of packs that are cached: a few runs for each of several readers that go through packs side by side."""

KEPT_RUNS = 512
"""Runs that are cached; for scattered slices, each is a few kilobytes."""

_GAP = 16 * 2**10
"""Bytes that may lie between two consecutive slices: another file, or unused bytes."""


class BoundedSink:
    """Collects what is written, up to a given size."""

    def __init__(self, size: int) -> None:
        self._most = size
        self.data = bytearray()

    @property
    def size(self) -> int:
        """Bytes collected."""
        return len(self.data)

    async def write(self, data: Buffer) -> None:
        """Take the bytes; GridError if they are more than requested."""
        if len(self.data) + len(data) > self._most:
            raise GridError("a read returned more bytes than requested")
        self.data += data


@define(eq=False)
class _Run:
    """Bytes start .. stop of a pack. data: once they have come. failed: they will not come."""

    pack: ChkCap
    start: int
    stop: int
    data: memoryview | None = field(default=None, repr=False)
    failed: bool = False
    waiters: list[Deferred[None]] = field(factory=list, repr=False)

    def settle(self) -> None:
        waiters, self.waiters = self.waiters, []
        for waiter in waiters:
            if not waiter.called:  # A task that continued earlier may have canceled it.
                waiter.callback(None)

    async def wait(self) -> None:
        """Return when it has come or failed."""
        if self.data is None and not self.failed:
            waiter: Deferred[None] = Deferred(lambda one: self.waiters.remove(one) if one in self.waiters else None)
            self.waiters.append(waiter)
            await waiter


class PackReader:
    """Reads ranges of packs. Any number of reads may run at once."""

    def __init__(self, read_chk: ReadChk) -> None:
        self._read_chk = read_chk
        self._packs: dict[ChkCap, list[_Run]] = {}
        self._kept: OrderedDict[int, _Run] = OrderedDict()
        self._kept_bytes = 0
        self.fetched_bytes = 0

    async def read(self, pack: ChkCap, offset: int, length: int) -> bytes | memoryview:
        """Bytes offset .. offset + length of a pack, at most LONGEST_RUN of them; raises the errors of reading it."""
        pieces: list[memoryview] = []
        position, stop = offset, offset + length
        exactly = False
        while position < stop:
            run = self._find(pack, position)
            if run is None:
                run = await self._fetch(pack, position, stop, exactly=exactly)
            else:
                await run.wait()
            if run.failed or run.data is None:
                # The run was longer than this request needs, or another reader canceled it.
                exactly = True
                continue
            end = min(run.stop, stop)
            pieces.append(run.data[position - run.start : end - run.start])
            position = end
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    async def read_around(self, pack: ChkCap, offset: int, length: int) -> tuple[int, bytes | memoryview]:
        """Like `read`, with everything that was fetched together with it: where it starts, and the bytes."""
        data = await self.read(pack, offset, length)
        run = self._find(pack, offset)
        if run is None or run.data is None or offset + length > run.stop:
            return offset, data
        return run.start, run.data

    def _find(self, pack: ChkCap, position: int) -> _Run | None:
        for run in self._packs.get(pack, ()):
            if run.start <= position < run.stop:
                if id(run) in self._kept:
                    self._kept.move_to_end(id(run))
                return run
        return None

    async def _fetch(self, pack: ChkCap, start: int, stop: int, *, exactly: bool) -> _Run:
        """A run from `start` on that has come, or that failed although it was longer than requested."""
        run = _Run(pack, start, stop if exactly else self._end_of_run(pack, start, stop))
        self._packs.setdefault(pack, []).append(run)
        sink = BoundedSink(run.stop - run.start)
        try:
            await self._read_chk(pack, sink, run.start, run.stop - run.start, SEGMENT_SIZE)
            if len(sink.data) != run.stop - run.start:
                raise GridError("a pack is shorter than expected")
        except BaseException as problem:
            run.failed = True
            self._forget(run)
            run.settle()
            if isinstance(problem, GridError) and run.stop > stop:
                return run
            raise
        run.data = memoryview(sink.data)
        self.fetched_bytes += len(sink.data)
        self._keep(run)
        run.settle()
        return run

    def _end_of_run(self, pack: ChkCap, start: int, stop: int) -> int:
        """How far to read: the longer the run read just before, the further."""
        runs = self._packs.get(pack, ())
        before = [run for run in runs if run.start < start <= run.stop + _GAP]
        if not before:
            return stop
        longest = max(run.stop - run.start for run in before)
        end = start + min(LONGEST_RUN, max(SHORTEST_RUN, 2 * longest))
        # What is cached or in flight is not read again.
        end = min([end, pack.size, *(run.start for run in runs if run.start > start)])
        return max(stop, end)

    def _keep(self, run: _Run) -> None:
        self._kept[id(run)] = run
        self._kept_bytes += run.stop - run.start
        while (self._kept_bytes > KEPT_BYTES or len(self._kept) > KEPT_RUNS) and len(self._kept) > 1:
            _, oldest = self._kept.popitem(last=False)
            self._kept_bytes -= oldest.stop - oldest.start
            self._forget(oldest)

    def _forget(self, run: _Run) -> None:
        runs = self._packs.get(run.pack, [])
        if run in runs:
            runs.remove(run)
        if not runs:
            self._packs.pop(run.pack, None)
