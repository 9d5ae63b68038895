"""Reads an immutable file: the driver of the get plan. [spec immutable 12]

An open file keeps what it has proven, so that a second range costs only its blocks.
"""

from __future__ import annotations

from grid.caps import ChkCap, ChkVerifyCap, LitCap, StorageIndex, require_usable
from grid.drive import drive
from grid.engine.batches import DEFAULT_MAX_SEGMENT_SIZE
from grid.engine.grid import Grid
from grid.immutable.perform import Performer
from grid.immutable.read.get_plan import GetPlan, GetResult
from grid.immutable.read.share_finder import ShareFinder
from grid.immutable.share.layout import guess
from grid.immutable.share.verify import FileVerifier
from grid.placement.order import permute
from grid.ports import Observer, Sink, StorageServer


class ImmutableFile:
    """An immutable file, open for reading any number of ranges, in sequence or concurrently.

    With a verify cap, reads return the ciphertext. CapError if no file can have the capability's numbers.
    """

    def __init__(
        self, cap: ChkCap | ChkVerifyCap | LitCap, grid: Grid, segment_size: int = DEFAULT_MAX_SEGMENT_SIZE
    ) -> None:
        """segment_size: the likely one, of which the capability says nothing. A wrong one costs round trips, and bytes."""
        self._cap = cap
        self._grid = grid
        self._servers: list[StorageServer] = []
        self._verifier: FileVerifier | None = None
        self._finder: ShareFinder | None = None
        if not isinstance(cap, LitCap):
            if cap.size > 0:
                require_usable(cap)
                self._guess = guess(cap.size, cap.needed, cap.total, segment_size)
            self._servers = permute(grid.servers, cap.storage_index)
            self._verifier = FileVerifier(cap.ueb_hash, cap.size, cap.needed, cap.total)

    @property
    def size(self) -> int:
        """Size of the file in bytes."""
        return len(self._cap.data) if isinstance(self._cap, LitCap) else self._cap.size

    @property
    def segment_size(self) -> int:
        """Bytes of each segment but the last; the likely number until a read has proven it. A literal file is one segment."""
        if self._verifier is None or not self._cap.size:
            return max(1, self.size)
        return (self._verifier.geometry or self._guess.geometry).segment_size

    @property
    def verifier(self) -> FileVerifier | None:
        """What is proven of the file; None for a literal file."""
        return self._verifier

    async def read(
        self,
        sink: Sink,
        offset: int = 0,
        length: int | None = None,
        observer: Observer | None = None,
        *,
        most_bytes: int | None = None,
    ) -> GetResult:
        """Write bytes offset .. offset + length to the sink, in order, all proven. length None: to the end; ranges are cut at the end.

        observer: for this read, instead of the grid's. most_bytes: of text in flight, and one batch more at most, if fewer than usual.
        NotEnoughSharesError, NoServersError, DamagedFileError; every byte written before the error is right.
        """
        if offset < 0 or (length is not None and length < 0):
            raise ValueError("the offset and the length of a range must not be negative")
        stop = self.size if length is None else min(self.size, offset + length)
        if offset >= stop:
            return GetResult(size=0, share_count=0, hedged_bytes=0)
        if isinstance(self._cap, LitCap):
            await sink.write(self._cap.data[offset:stop])
            return GetResult(size=stop - offset, share_count=0, hedged_bytes=0)
        observer = observer or self._grid.observer
        return await self._read_shares(self._cap, sink, offset, stop - offset, observer, most_bytes)

    async def _read_shares(
        self,
        cap: ChkCap | ChkVerifyCap,
        sink: Sink,
        offset: int,
        length: int,
        observer: Observer,
        most_bytes: int | None,
    ) -> GetResult:
        assert self._verifier is not None
        geometry = self._verifier.geometry or self._guess.geometry
        first_segment = offset // geometry.segment_size
        segment_count = (offset + length - 1) // geometry.segment_size - first_segment + 1
        # Later reads use what this one learns. While it runs, no other read uses its finder.
        finder, self._finder = self._finder, None
        if finder is not None:
            finder.peers.resume()
        else:
            ids = [server.identity.server_id for server in self._servers]
            finder = ShareFinder(ids, self._verifier, self._guess, first_segment, segment_count, self._grid.memory)
        key = cap.key if isinstance(cap, ChkCap) else None
        plan = GetPlan(
            finder, self._verifier, k=cap.needed, key=key, offset=offset, length=length, most_bytes=most_bytes
        )
        performer = Performer(self._servers, StorageIndex(cap.storage_index), self._grid.runtime, sink=sink)
        try:
            return await drive(plan, performer, self._grid.observed_by(observer))
        finally:
            finder.settle()
            self._finder = finder
