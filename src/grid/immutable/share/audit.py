"""Verifies every byte of one share on one server: the part of a check that reads.

Synchronous: it names what to read or compute next, and takes the answers. It trusts only the capability, and
keeps no block longer than it takes to hash it. [spec immutable 15]

Cost: round trips: three, plus one per AUDIT_BYTES of blocks. Memory: AUDIT_BYTES and the share's two hash trees.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable, Sequence
from enum import Enum
from functools import partial
from itertools import pairwise
from typing import assert_never

from grid import limits
from grid.codec.merkle import build_tree, padded_leaf_count
from grid.crypto.hashing import hash_blocks
from grid.engine.requests import Compute, why_lacking
from grid.errors import DamagedFileError, FormatError, GridError, IntegrityError, UnknownVersionError
from grid.immutable.share.geometry import Geometry
from grid.immutable.share.layout import (
    MAX_HEADER_SIZE,
    ShareLayout,
    chain_order,
    parse_chain,
    parse_header,
    parse_ueb_length,
)
from grid.immutable.share.requests import ReadShares
from grid.immutable.share.verify import FileVerifier
from grid.ports import Buffer, Range, ServerId, ShareNumber
from grid.values import field, frozen

AUDIT_BYTES = 2 * 2**20
"""Bytes of blocks read and hashed at a time, so that each answer is fast even on a slow line."""

TREE_PART = 8 * 2**20
"""Bytes of a hash tree read in one range."""

TREE_PARTS = 2
"""Such ranges per message."""


class Verdict(Enum):
    """The result for a share: valid, corrupt, of an unknown version, or on a server that failed."""

    GOOD = "good"
    CORRUPT = "corrupt"
    INCOMPATIBLE = "incompatible"
    UNREADABLE = "unreadable"


class _Step(Enum):
    HEADER = "header"
    PROOFS = "proofs"
    TREES = "trees"
    BLOCKS = "blocks"
    DONE = "done"


@frozen(kw_only=True)
class TreeJob:
    """The two serialized trees of a share, and the roots they must have. leaf_count: leaves without padding."""

    leaf_count: int
    trees: Sequence[Buffer] = field(repr=False)
    roots: Sequence[bytes] = field(repr=False)


@frozen(kw_only=True)
class BlockJob:
    """Consecutive blocks of one share and their proven hashes."""

    geometry: Geometry
    first_segment: int
    segment_count: int
    data: Buffer = field(repr=False)
    leaves: bytes = field(repr=False)


def check_trees(job: TreeJob) -> str | None:
    """Compare every stored node, padding and inner nodes included, with what the leaves give. Returns the problem, or None."""
    for tree, root, name in zip(job.trees, job.roots, ("crypttext", "block"), strict=True):
        first_leaf = 32 * (padded_leaf_count(job.leaf_count) - 1)
        right = build_tree(memoryview(tree)[first_leaf : first_leaf + 32 * job.leaf_count])
        if not hmac.compare_digest(right[:32], root) or right != tree:
            return f"the {name} hash tree does not match its proven root"
    return None


def check_blocks(job: BlockJob) -> str | None:
    """Compare every block with its proven hash. Returns the problem, or None."""
    view, start, blocks = memoryview(job.data), 0, []
    for index in range(job.segment_count):
        stop = start + job.geometry.block_length(job.first_segment + index)
        blocks.append(view[start:stop])
        start = stop
    hashes = hash_blocks(blocks)
    for index in range(job.segment_count):
        leaf = slice(32 * index, 32 * index + 32)
        if not hmac.compare_digest(hashes[leaf], job.leaves[leaf]):
            return f"the block of segment {job.first_segment + index} does not match its hash"
    return None


class ShareAudit:
    """Verifies one share."""

    def __init__(self, server_id: ServerId, number: ShareNumber, verifier: FileVerifier) -> None:
        self.server_id = server_id
        self.number = number
        self.verdict: Verdict | None = None
        self.reason = ""
        self._verifier = verifier
        self._step = _Step.HEADER
        self._layout: ShareLayout | None = None
        self._ranges: list[Range] = []
        self._trees: list[Buffer] = []
        self._tree_ranges: list[Range] = []
        self._block_leaves = b""
        self._segment = 0
        self._batch_count = 0
        self._job: Callable[[], str | None] | None = None

    def next_request(self) -> ReadShares | Compute:
        """What to do next. Call it once after each answer while there is no verdict."""
        if self._job is not None:
            return Compute(job=self._job, size=0)
        self._ranges = self._plan_ranges()
        size = sum(length for _, length in self._ranges)
        return ReadShares(
            server_id=self.server_id, wants={self.number: self._ranges}, size=size, share_numbers=(self.number,)
        )

    def read(self, pieces: Sequence[Buffer] | None) -> None:
        """Take the bytes of the requested ranges; None: the server no longer has the share; none: its disk cannot read it.

        DamagedFileError: the file itself is damaged, on every server.
        """
        if pieces is None or len(pieces) != len(self._ranges):
            self._end(Verdict.CORRUPT, str(why_lacking(pieces)))
            return
        try:
            self._take(pieces)
        except DamagedFileError:
            raise
        except UnknownVersionError as error:
            self._end(Verdict.INCOMPATIBLE, str(error))
        except (IntegrityError, FormatError) as error:
            self._end(Verdict.CORRUPT, str(error))

    def computed(self, wrong: str | None) -> None:
        """Take a job's result."""
        self._job = None
        if wrong is not None:
            self._end(Verdict.CORRUPT, wrong)
        elif self._step is _Step.TREES:
            self._step = _Step.BLOCKS
        elif self._segment == self._geometry.segment_count:
            self._end(Verdict.GOOD, "")

    def failed(self, error: GridError) -> None:
        """Note that the server failed."""
        self._end(Verdict.UNREADABLE, str(error))

    @property
    def size(self) -> int:
        """Bytes of blocks; 0 until the file's segment size is proven."""
        return 0 if self._verifier.geometry is None else self._verifier.geometry.data_size

    @property
    def bytes_done(self) -> int:
        """Bytes of blocks that need no more reading; all of them once there is a verdict."""
        geometry = self._verifier.geometry
        if geometry is None:
            return 0
        return geometry.block_offset(geometry.segment_count if self.verdict is not None else self._segment)

    @property
    def _geometry(self) -> Geometry:
        assert self._verifier.geometry is not None
        return self._verifier.geometry

    def _end(self, verdict: Verdict, reason: str) -> None:
        self.verdict, self.reason = verdict, reason
        self._step, self._job, self._block_leaves, self._trees = _Step.DONE, None, b"", []

    def _plan_ranges(self) -> list[Range]:
        match self._step:
            case _Step.HEADER:
                return [(0, MAX_HEADER_SIZE)]
            case _Step.PROOFS:
                assert self._layout is not None
                ueb_room = self._layout.length_field_size + limits.MAX_UEB_SIZE
                return [(self._layout.chain_offset, self._layout.chain_size), (self._layout.ueb_offset, ueb_room)]
            case _Step.TREES:
                return self._tree_ranges[len(self._trees) :][:TREE_PARTS]
            case _Step.BLOCKS:
                return [self._plan_blocks()]
            case _Step.DONE:
                raise AssertionError("a share with a verdict needs nothing more")
            case never:
                assert_never(never)

    def _plan_blocks(self) -> Range:
        assert self._layout is not None
        geometry = self._geometry
        self._batch_count = min(max(1, AUDIT_BYTES // geometry.block_size), geometry.segment_count - self._segment)
        start = geometry.block_offset(self._segment)
        stop = geometry.block_offset(self._segment + self._batch_count)
        return self._layout.data_offset + start, stop - start

    def _take(self, pieces: Sequence[Buffer]) -> None:
        match self._step:
            case _Step.HEADER:
                self._layout = parse_header(pieces[0])
                self._step = _Step.PROOFS
            case _Step.PROOFS:
                self._take_proofs(pieces[0], pieces[1])
                self._step = _Step.TREES
            case _Step.TREES:
                self._take_trees(pieces)
            case _Step.BLOCKS:
                self._take_blocks(pieces[0])
            case _Step.DONE:
                pass
            case never:
                assert_never(never)

    def _take_proofs(self, chain: Buffer, tail: Buffer) -> None:
        assert self._layout is not None
        layout = self._layout
        length = parse_ueb_length(layout, tail)
        field_size = layout.length_field_size
        if len(tail) < field_size + length:
            raise FormatError("the extension block is cut short")
        try:
            geometry = self._verifier.accept_ueb(memoryview(tail)[field_size : field_size + length])
        except FormatError as error:
            # These bytes are proven but malformed: the uploader's fault, not the server's.
            raise DamagedFileError(str(error)) from error
        if len(chain) != layout.chain_size:
            raise FormatError("the share is cut short")
        self._verifier.accept_chain(self.number, chain)
        # A proof may lack nodes that are above padding leaves only, but a sound share has them.
        if sorted(parse_chain(chain)) != sorted(chain_order(self.number, geometry.n)):
            raise IntegrityError("the share hash chain has the wrong nodes")
        trees = [layout.plaintext_tree_offset, layout.crypttext_tree_offset, layout.block_tree_offset]
        sizes = [stop - start for start, stop in pairwise([*trees, layout.chain_offset])]
        if sizes != [geometry.tree_size] * 3:
            raise FormatError("the hash trees of the share have the wrong size")
        self._tree_ranges = [
            (offset, min(TREE_PART, tree + geometry.tree_size - offset))
            for tree in trees[1:]
            for offset in range(tree, tree + geometry.tree_size, TREE_PART)
        ]

    def _take_trees(self, pieces: Sequence[Buffer]) -> None:
        if [len(piece) for piece in pieces] != [length for _, length in self._ranges]:
            raise FormatError("the share is cut short")
        self._trees += pieces
        if len(self._trees) < len(self._tree_ranges):
            return
        half = len(self._trees) // 2
        crypttext, block = b"".join(self._trees[:half]), b"".join(self._trees[half:])
        self._trees = []
        assert self._verifier.ueb is not None
        count = self._geometry.segment_count
        first_leaf = 32 * (padded_leaf_count(count) - 1)
        self._block_leaves = block[first_leaf : first_leaf + 32 * count]
        roots = (self._verifier.ueb.crypttext_root_hash, self._verifier.block_root(self.number))
        self._job = partial(check_trees, TreeJob(leaf_count=count, trees=(crypttext, block), roots=roots))

    def _take_blocks(self, data: Buffer) -> None:
        if len(data) != self._ranges[0][1]:
            raise FormatError("the share is cut short")
        first, count = self._segment, self._batch_count
        job = BlockJob(
            geometry=self._geometry,
            first_segment=first,
            segment_count=count,
            data=data,
            leaves=self._block_leaves[32 * first : 32 * (first + count)],
        )
        self._job = partial(check_blocks, job)
        self._segment += count
