"""Immutable files of every kind, open for reading: the driver that connects packs and sequences to the engine."""

from __future__ import annotations

from collections import OrderedDict

from grid.caps import ChkCap, ChkVerifyCap, ExtentCap, LitCap, SequenceCap, SliceCap, require_usable
from grid.engine.batches import DEFAULT_MAX_SEGMENT_SIZE
from grid.engine.grid import Grid
from grid.errors import GridError
from grid.extents.reader import ExtentReader, Permit
from grid.immutable.get import ImmutableFile
from grid.immutable.read.get_plan import GetResult
from grid.ports import Observer, ServerId, Sink
from grid.sinks import CountingSink
from grid.values import field, frozen

KEPT_OPEN = 8
"""CHK files that stay open, so that the next range costs only its blocks. Each remembers the blocks of at most two segments."""

KEPT_S = 60.0
"""After this many seconds a file is reopened, because servers that were away may be back."""


@frozen
class _Open:
    file: ImmutableFile = field(repr=False)
    servers: frozenset[ServerId]
    opened_at: float


class OpenChkFiles:
    """The CHK files that contain slices and parts of sequences, and were read last."""

    def __init__(self, grid: Grid, permit: Permit | None = None) -> None:
        """permit: called before anything of a file is read; what it raises ends the read."""
        self.observer: Observer | None = None
        """Of reads that name none."""
        self._grid = grid
        self._permit = permit
        self._files: OrderedDict[ChkCap, _Open] = OrderedDict()

    async def read(
        self,
        cap: ChkCap,
        sink: Sink,
        offset: int,
        length: int,
        segment_size: int = DEFAULT_MAX_SEGMENT_SIZE,
        observer: Observer | None = None,
    ) -> None:
        """Like ImmutableFile.read, but a reused open file that fails before it delivered anything is opened again once.

        segment_size: the likely one.
        """
        if self._permit is not None:
            self._permit(cap)
        observer = observer or self.observer
        kept, is_new = self._open(cap, segment_size)
        counting = CountingSink(sink)
        try:
            await kept.file.read(counting, offset, length, observer)
            return
        except GridError:
            self._forget(cap, kept)
            if is_new or counting.written:
                raise
        except BaseException:
            self._forget(cap, kept)
            raise
        await self._open(cap, segment_size)[0].file.read(sink, offset, length, observer)

    def _open(self, cap: ChkCap, segment_size: int) -> tuple[_Open, bool]:
        """The open file, and whether it was opened just now."""
        ids = frozenset(server.identity.server_id for server in self._grid.servers)
        now = self._grid.runtime.clock.now()
        kept = self._files.get(cap)
        if kept is not None and kept.servers == ids and now - kept.opened_at < KEPT_S:
            self._files.move_to_end(cap)
            return kept, False
        kept = _Open(ImmutableFile(cap, self._grid, segment_size), ids, now)
        self._files[cap] = kept
        self._files.move_to_end(cap)
        if len(self._files) > KEPT_OPEN:
            self._files.popitem(last=False)
        return kept, True

    def _forget(self, cap: ChkCap, kept: _Open) -> None:
        if self._files.get(cap) is kept:
            del self._files[cap]


class ExtentFile:
    """A slice or a sequence, open for reading any number of ranges, in sequence or concurrently.

    CapError if no file can have the capability's numbers.
    """

    def __init__(self, cap: ExtentCap, grid: Grid) -> None:
        require_usable(cap)
        self._cap = cap
        self._chk_files = OpenChkFiles(grid)
        # Nothing here refers back to this object: what it read is freed with it, and not when garbage is collected.
        self._reader = ExtentReader(self._chk_files.read)

    @property
    def size(self) -> int:
        """Size of the file in bytes."""
        return self._cap.size

    async def read(
        self, sink: Sink, offset: int = 0, length: int | None = None, observer: Observer | None = None
    ) -> GetResult:
        """Like `ImmutableFile.read`; IntegrityError if the table of a sequence is invalid."""
        self._chk_files.observer = observer
        size = await self._reader.read(self._cap, sink, offset, length)
        return GetResult(size=size, share_count=0, hedged_bytes=0)


OpenImmutable = ImmutableFile | ExtentFile


def open_immutable(cap: ChkCap | ChkVerifyCap | LitCap | ExtentCap, grid: Grid) -> OpenImmutable:
    """An immutable file of any kind. CapError if no file can have the capability's numbers."""
    return ExtentFile(cap, grid) if isinstance(cap, SliceCap | SequenceCap) else ImmutableFile(cap, grid)
