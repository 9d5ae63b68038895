"""One share during a read: which bytes are known, and what is proven. Pure; part of the read plan."""

from __future__ import annotations

import hmac
from collections.abc import Sequence

from grid.engine.batches import SegmentBatch
from grid.mutable.share.geometry import HASH_SIZE, Geometry
from grid.mutable.share.hash_rows import hash_ranges
from grid.mutable.share.prefix import checkstring_size
from grid.mutable.share.segment_run import ShareRun
from grid.mutable.share.versions import ShareLocation, Sighting
from grid.ports import Buffer, Range, ServerId, ShareNumber
from grid.values import define, field


@define(kw_only=True, eq=False)
class ChunkBatch(SegmentBatch):
    """A batch whose segments are all in one chunk of leaves: chunk_leaves leaves, starting with chunk_first."""

    chunk_first: int
    chunk_leaves: int


@define(kw_only=True, eq=False)
class HeldShare:
    """usable: not bad, not gone, not changed to another version. proven: the leaves of a chunk, by its first leaf.

    nodes, chain: as received, for chunks that are not proven yet. asked: chunks whose hashes are on their
    way; overdue: those of them that are late. proving: chunks whose hashes are being proven, which happens once.
    """

    sighting: Sighting
    geometry: Geometry
    usable: bool = True
    proven: dict[int, bytes] = field(factory=dict, repr=False)
    nodes: dict[int, dict[int, bytes]] = field(factory=dict, repr=False)
    chain: Buffer | None = field(default=None, repr=False)
    asked: set[int] = field(factory=set)
    overdue: set[int] = field(factory=set)
    proving: set[int] = field(factory=set)
    checkstring: bytes = field(init=False, repr=False)

    def __attrs_post_init__(self) -> None:
        """Set the bytes with which the share starts as long as it is of this version."""
        self.checkstring = self.sighting.prefix.checkstring
        self.chain = self.sighting.at_hand(self.sighting.table.chain)

    @property
    def server_id(self) -> ServerId:
        """The server that holds it."""
        return self.sighting.server_id

    @property
    def number(self) -> ShareNumber:
        """Its number."""
        return self.sighting.number

    @property
    def location(self) -> ShareLocation:
        """Where it is."""
        return self.sighting.location

    def is_current(self, front: Buffer) -> bool:
        """Whether a share with these first bytes is still of this version."""
        return hmac.compare_digest(bytes(front), self.checkstring)

    def run_range(self, batch: ChunkBatch) -> Range:
        """The range of the batch's blocks in the share."""
        return self.sighting.table.data[0] + self.geometry.run_offset(batch.first), batch.share_bytes

    def note_proving(self, batch: ChunkBatch) -> None:
        """Note that the batch's chunk is being proven, if it is not proven yet."""
        if batch.chunk_first not in self.proven:
            self.proving.add(batch.chunk_first)

    def note_proven(self, batch: ChunkBatch, leaves: bytes) -> None:
        """Keep the proven leaves of the batch's chunk, and drop their proof."""
        self.proven[batch.chunk_first] = leaves
        self.nodes.pop(batch.chunk_first, None)

    def is_overdue(self, batch: ChunkBatch) -> bool:
        """Whether the batch's blocks cannot be proven because hashes are late."""
        return batch.chunk_first in self.overdue and not self.hashes_at_hand(batch)

    def run_at_hand(self, batch: ChunkBatch) -> Buffer | None:
        """The batch's blocks, if they and their proof came with the map."""
        run = self.sighting.at_hand(self.run_range(batch))
        if run is None:
            return None
        if not self.hashes_at_hand(batch):
            ranges = self._hash_ranges(batch)
            pieces = [self.sighting.at_hand(wanted) for wanted in ranges]
            if any(piece is None for piece in pieces) or self.chain is None:
                return None
            self._keep_hashes(batch, ranges, [piece for piece in pieces if piece is not None])
        return run

    def hashes_at_hand(self, batch: ChunkBatch) -> bool:
        """Whether the bytes at hand suffice to prove the batch's blocks."""
        if batch.chunk_first in self.proven:
            return True
        return self.chain is not None and (self.geometry.leaf_count == 1 or batch.chunk_first in self.nodes)

    def ranges(self, batch: ChunkBatch, part: Range) -> list[Range]:
        """The ranges to request: the checkstring, that part of the batch's blocks, and whatever else their proof needs."""
        wanted = [(0, checkstring_size(self.geometry.version)), part]
        if batch.chunk_first in self.proven or batch.chunk_first in self.asked:
            return wanted
        if self.chain is None:
            wanted.append(self.sighting.table.chain)
        return [*wanted, *self._hash_ranges(batch)]

    def note_asked(self, batch: ChunkBatch) -> int | None:
        """Note that a request includes the hashes of the batch's chunk. Returns the chunk, or None if it needs none."""
        if batch.chunk_first in self.proven or batch.chunk_first in self.asked:
            return None
        self.asked.add(batch.chunk_first)
        return batch.chunk_first

    def take_hashes(self, batch: ChunkBatch, ranges: Sequence[Range], pieces: Sequence[Buffer]) -> None:
        """Keep the hashes in an answer to `ranges`."""
        self.asked.discard(batch.chunk_first)
        rest = list(zip(ranges[2:], pieces[2:], strict=True))
        if rest and rest[0][0] == self.sighting.table.chain:
            self.chain = rest.pop(0)[1]
        self._keep_hashes(batch, [wanted for wanted, _ in rest], [piece for _, piece in rest])

    def share_run(self, batch: ChunkBatch, run: Buffer) -> ShareRun:
        """The share's part of a run over the batch."""
        leaves = self.proven.get(batch.chunk_first)
        if leaves is not None:
            return ShareRun(blocks=run, leaves=leaves)
        return ShareRun(blocks=run, nodes=self.nodes.get(batch.chunk_first, {}), chain=self.chain or b"")

    def _hash_ranges(self, batch: ChunkBatch) -> Sequence[Range]:
        return hash_ranges(self.geometry, self.sighting.table, batch.chunk_first, batch.chunk_leaves)

    def _keep_hashes(self, batch: ChunkBatch, ranges: Sequence[Range], pieces: Sequence[Buffer]) -> None:
        """Cut the answer into nodes. The proof will show which of them are right."""
        start = self.sighting.table.block_tree[0]
        nodes: dict[int, bytes] = {}
        for (offset, _), piece in zip(ranges, pieces, strict=True):
            first = (offset - start) // HASH_SIZE
            data = bytes(piece)
            for index in range(len(data) // HASH_SIZE):
                nodes[first + index] = data[index * HASH_SIZE : (index + 1) * HASH_SIZE]
        self.nodes[batch.chunk_first] = nodes
