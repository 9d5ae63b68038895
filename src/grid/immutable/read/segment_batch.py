"""Batches of consecutive segments on their way from the servers to the consumer, and how a read is cut into them.

Pure. One message per server fetches a batch, and one call on the processor pool opens it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from grid.engine.batches import PART_BYTES, BatchQueue, SegmentBatch, TextRange, full_read_bytes, split_range
from grid.engine.choosing import Offer, choose
from grid.engine.flow_window import LEAST_BATCHES, NEVER, START_BYTES, FlowWindow, Mark
from grid.engine.hedging import HedgeBudget
from grid.engine.lateness import PendingRead
from grid.immutable.read.held_share import HeldShare, Peer
from grid.immutable.share.geometry import Geometry
from grid.immutable.share.requests import ReadShares
from grid.immutable.share.segment_run import run_sizes
from grid.immutable.share.verify import CHUNK_LEAVES, KEPT_CHUNKS
from grid.ports import Buffer, Range, ShareNumber
from grid.values import define, field


@define(kw_only=True, eq=False)
class BlockFetch:
    """The blocks of one share in one batch, requested as one or more ranges.

    replaceable: they are late enough that the batch takes another share instead, if there is one; those that come count still.
    """

    share: HeldShare
    ranges: list[Range]
    watches: dict[ReadShares, PendingRead[Peer]] = field(factory=dict)
    parts: dict[int, Buffer] = field(factory=dict)
    replaceable: bool = False

    def joined(self) -> Buffer | None:
        """All the blocks in one buffer, once every range has come."""
        if len(self.parts) < len(self.ranges):
            return None
        if len(self.ranges) == 1:
            return next(iter(self.parts.values()))
        return b"".join(self.parts[offset] for offset, _ in self.ranges)


@define(kw_only=True, eq=False)
class Batch(SegmentBatch):
    """A batch whose segments are all in one chunk of the hash trees.

    blocks: share number to (its source, its bytes). replaceable: share numbers of blocks whose hashes are late enough that
    the batch takes another share as well. deficit: how many shares it lacked that no known server has, at the last check.
    """

    blocks: dict[ShareNumber, tuple[HeldShare, Buffer]] = field(factory=dict, repr=False)
    fetches: dict[HeldShare, BlockFetch] = field(factory=dict, repr=False)
    replaceable: set[ShareNumber] = field(factory=set)
    asked: Mark = NEVER
    deficit: int = 0

    @property
    def chunk(self) -> int:
        """The chunk of the hash trees that contains its leaves."""
        return self.first // CHUNK_LEAVES

    def block_ranges(self, data_offset: int, geometry: Geometry) -> list[Range]:
        """Where the batch's blocks are in a share whose data section starts at data_offset."""
        return split_range((data_offset + geometry.block_offset(self.first), self.share_bytes), PART_BYTES)

    def forget(self, share: HeldShare) -> None:
        """Forget what came from this share."""
        self.fetches.pop(share, None)
        held = self.blocks.get(share.number)
        if held is not None and held[0] is share:
            del self.blocks[share.number]


class BatchCutter:
    """Cuts the segments of a read into batches: first one segment, so that the first byte comes soon, then more."""

    def __init__(self, geometry: Geometry, first: int, stop: int, most_bytes: int | None = None) -> None:
        """most_bytes: of the batches in flight, if fewer than usual: several smaller batches share them."""
        full = full_read_bytes(geometry.k)
        if most_bytes is not None:
            full = min(full, most_bytes // LEAST_BATCHES)
        self._full = max(1, round(full / geometry.segment_size))
        self._geometry = geometry
        self._next = first
        self._stop = stop
        self._ramp = 1
        self._cut_count = 0

    def may_cut(self, oldest: Batch | None) -> bool:
        """Whether there is another batch whose hashes fit in memory with those of the oldest batch in flight."""
        if self._next >= self._stop:
            return False
        return oldest is None or self._next // CHUNK_LEAVES - oldest.chunk < KEPT_CHUNKS

    def cut(self) -> Batch:
        """The next batch."""
        if self._cut_count >= 2:
            self._ramp = min(self._full, 2 * self._ramp)
        self._cut_count += 1
        first = self._next
        chunk_stop = (first // CHUNK_LEAVES + 1) * CHUNK_LEAVES
        count = min(self._ramp, self._stop - first, chunk_stop - first)
        self._next += count
        share_bytes, text_bytes = run_sizes(self._geometry, first, count)
        return Batch(first=first, count=count, share_bytes=share_bytes, text_bytes=text_bytes)


class BatchFeed:
    """Cuts a read into batches, and queues as many of them as the flow window permits."""

    def __init__(
        self,
        wanted: TextRange,
        k: int,
        queue: BatchQueue[Batch],
        start_bytes: int = START_BYTES,
        most_bytes: int | None = None,
    ) -> None:
        """start_bytes, most_bytes: as in FlowWindow."""
        self._wanted = wanted
        self._queue = queue
        self._window = FlowWindow(k, start_bytes, most_bytes)
        self._most_bytes = most_bytes
        self._cutter: BatchCutter | None = None

    def fill(self, geometry: Geometry, hedge: HedgeBudget, now: float) -> None:
        """Queue the batches that may be requested now. The first time, set the budget to what the whole read needs."""
        if self._cutter is None:
            first, stop = geometry.segment_range(self._wanted.offset, self._wanted.size)
            self._cutter = BatchCutter(geometry, first, stop, self._most_bytes)
            hedge.cover(geometry.k * run_sizes(geometry, first, stop - first)[0])
        in_flight = self._queue.text_bytes
        while self._cutter.may_cut(self._queue.head):
            if self._queue and in_flight >= self._window.window_bytes:
                break
            batch = self._cutter.cut()
            batch.asked = self._window.asked(now)
            in_flight += batch.text_bytes
            self._queue.append(batch)

    def came(self, batch: Batch, now: float) -> None:
        """Note that all blocks of a batch have come, and adjust the window to the rate."""
        self._window.came(batch.asked, batch.text_bytes, now)


def choose_shares(
    usable: Mapping[ShareNumber, Sequence[HeldShare]],
    *,
    wanted: int,
    k: int,
    size: int,
    segments: range,
    taken: Collection[ShareNumber],
    busy: Collection[HeldShare],
    familiar: Collection[HeldShare],
) -> list[HeldShare]:
    """At most `wanted` shares with distinct numbers, those expected soonest, none known to be bad in this batch.

    size: bytes to read from each. taken: share numbers that are not needed. busy: shares that are being read already.
    familiar: shares read before.
    """
    known = {share.peer.order for share in familiar}
    offers = [
        Offer(
            share,
            number,
            share.peer,
            share.peer.order,
            is_doubtful=share.peer.is_doubtful,
            is_false=bool(share.bad_segments),
            is_familiar=share.peer.order in known,
        )
        for number in sorted(usable)
        if number not in taken
        for share in usable[number]
        if share not in busy and share.bad_segments.isdisjoint(segments)
    ]
    return choose(offers, wanted=wanted, k=k, size=size)
