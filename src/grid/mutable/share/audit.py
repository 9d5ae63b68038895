"""Verifies one share byte by byte, and proves its number. [spec mutable 14, 18]

Pure. Jobs are safe on pool threads, and touch only their arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from functools import partial

from grid.codec.merkle import build_tree, prove_leaf, sibling_chain
from grid.crypto.hashing import BLOCK_TAG, LeafHasher
from grid.crypto.rsa import PublicKey
from grid.engine.batches import split_range
from grid.engine.requests import UNREAD
from grid.errors import FormatError, IntegrityError
from grid.mutable.share.geometry import HASH_SIZE, Geometry
from grid.mutable.share.keys import FileKeys
from grid.mutable.share.layout import pack_header, plan_table
from grid.mutable.share.offset_table import ShareTable, parse_chain
from grid.mutable.share.prefix import Prefix
from grid.mutable.share.segment_run import block_spans
from grid.mutable.share.versions import Sighting
from grid.ports import Buffer, Range
from grid.values import define, field

READ_BYTES = 4 * 2**20
"""Bytes of a share read at once."""

_block_hasher = LeafHasher(BLOCK_TAG)


class Verdict(Enum):
    """The result for a share."""

    GOOD = "good"
    CORRUPT = "corrupt"
    UNREAD = "unread"


@define
class _Hashes:
    """The hashes of one share: its stored chain and tree, and the leaves computed from its blocks."""

    chain: bytes = b""
    tree: list[bytes] = field(factory=list)
    leaves: list[bytes] = field(factory=list)


class ShareAudit:
    """Reads a share's fields, then its blocks, then its hash tree, and compares.

    Until there is a verdict: call next_job or, if there is none, next_ranges; then pass the answer.
    """

    def __init__(self, sighting: Sighting, prefix: Prefix, public_key: PublicKey | None, keys: FileKeys) -> None:
        self.sighting = sighting
        self.verdict: Verdict | None = None
        self.reason = ""
        self.private_key = b""
        self._prefix = prefix
        self._public_key = public_key
        self._keys = keys
        self._job: Callable[[], object] | None = None
        self._steps = self._plan_steps(sighting.table)
        self.size = sum(length for _, ranges, _ in self._steps for _, length in ranges)
        self._read_bytes = 0
        self._hashes = _Hashes()
        self._parts: list[Buffer] = []

    @property
    def bytes_done(self) -> int:
        """Bytes of the share that need no more reading; all of them once there is a verdict."""
        return self.size if self.verdict is not None else self._read_bytes

    def next_job(self) -> Callable[[], object] | None:
        """The next pool job, whose result goes to take_computed; None if there is none."""
        job, self._job = self._job, None
        return job

    def next_ranges(self) -> Sequence[Range]:
        """The next ranges to read, whose pieces go to take_read."""
        return self._steps[0][1]

    @property
    def reads_fields(self) -> bool:
        """Whether the next ranges are the share's fields rather than its blocks or hashes."""
        return self._steps[0][0] == "fields"

    def take_read(self, pieces: Sequence[Buffer] | None) -> None:
        """Take the pieces read; None: the share is gone; none: its disk cannot read it."""
        kind, ranges, run = self._steps.pop(0)
        self._read_bytes += sum(length for _, length in ranges)
        if pieces is None or len(pieces) != len(ranges):
            self.verdict = Verdict.UNREAD
            if pieces is not None and not pieces:
                self._condemn(UNREAD)
            return
        if any(len(piece) != length for piece, (_, length) in zip(pieces, ranges, strict=True)):
            self._condemn("the share is cut short")
        elif kind == "fields":
            self._take_fields([bytes(piece) for piece in pieces])
        elif kind == "part":
            self._parts.append(pieces[0])
        elif kind == "blocks":
            data = b"".join([*self._parts, pieces[0]]) if self._parts else pieces[0]
            self._parts.clear()
            self._job = partial(hash_blocks, self._prefix.geometry, *run, data)
        else:
            self._hashes.tree.append(bytes(pieces[0]))
            if not self._steps:
                self._job = self._final_job()

    def take_computed(self, result: object) -> None:
        """Take the result of a job: a row of leaves, or what is wrong (an empty text: nothing)."""
        if isinstance(result, bytes):
            self._hashes.leaves.append(result)
        elif result:
            self._condemn(str(result))
        else:
            self.verdict = Verdict.GOOD

    def _plan_steps(self, table: ShareTable) -> list[tuple[str, list[Range], tuple[int, int]]]:
        geometry = self._prefix.geometry
        header = len(pack_header(self._prefix, table))
        fields = [(0, header), table.public_key, table.signature, table.chain, table.private_key]
        steps: list[tuple[str, list[Range], tuple[int, int]]] = [("fields", fields, (0, 0))]
        per_read = max(1, READ_BYTES // max(1, geometry.stride))
        for first in range(0, geometry.segment_count, per_read):
            count = min(per_read, geometry.segment_count - first)
            size, _ = geometry.run_sizes(first, count)
            *parts, last = split_range((table.data[0] + geometry.run_offset(first), size), READ_BYTES)
            steps += [("part", [part], (first, count)) for part in parts]
            steps.append(("blocks", [last], (first, count)))
        return steps + [("tree", [part], (0, 0)) for part in split_range(table.block_tree, READ_BYTES)]

    def _take_fields(self, pieces: Sequence[bytes]) -> None:
        header, public_key, signature, chain, private_key = pieces
        if header[: len(self._prefix.checkstring)] != self._prefix.checkstring:
            self.verdict = Verdict.UNREAD  # It is of another version by now.
            return
        self._hashes.chain, self.private_key = chain, private_key
        expected = plan_table(self._prefix.geometry, len(public_key), len(private_key))
        if header != pack_header(self._prefix, expected):
            self._condemn("the offsets are not those of the version")
            return
        assert self._public_key is not None
        try:
            if public_key != self._public_key.der:
                raise IntegrityError("the public key is not that of the file")
            self._public_key.verify(signature, self._prefix.pack())
            if self._keys.write_key is not None:
                self._keys.accept_private_key(private_key)
        except (FormatError, IntegrityError) as error:
            self._condemn(str(error))

    def _final_job(self) -> Callable[[], object]:
        return partial(
            judge_hashes,
            self._prefix,
            self.sighting.number,
            self._hashes.chain,
            b"".join(self._hashes.leaves),
            b"".join(self._hashes.tree),
        )

    def _condemn(self, reason: str) -> None:
        self.verdict, self.reason = Verdict.CORRUPT, reason


def hash_blocks(geometry: Geometry, first: int, count: int, run: Buffer) -> bytes:
    """Hash the blocks in a run of a share's segments into leaves."""
    view = memoryview(run)
    return _block_hasher.hash_row([view[start:stop] for start, stop in block_spans(geometry, first, count)])


def judge_hashes(prefix: Prefix, share_number: int, chain: bytes, leaves: bytes, tree: bytes) -> str:
    """What is wrong with a share that has these leaves, or "" if its chain and tree are exactly right."""
    made = build_tree(leaves)
    try:
        nodes: Mapping[int, bytes] = parse_chain(chain)
        prove_leaf(prefix.root_hash, prefix.n, share_number, made[:HASH_SIZE], nodes)
    except (FormatError, IntegrityError):
        return "a block, or the share hash chain, does not match the root hash"
    if sorted(nodes) != sorted(sibling_chain(share_number, prefix.n)):
        return "the share hash chain has the wrong nodes"
    if made != tree:
        return "the block hash tree is not that of the blocks"
    return ""


class NumberProof(Enum):
    """Whether a share has the number under which its server shows it.

    Every share of a version has the same signed front, so a server that holds one share can show it under any number. Its
    hash chain fits only its own number and that of its neighbor in the tree. Its block, if all of it is at hand, fits only its own.
    UNKNOWN: the proof has not come or, for an empty version, does not exist.
    """

    PROVEN = "proven"
    FALSE = "false"
    UNKNOWN = "unknown"


def proof_ranges(table: ShareTable) -> list[Range]:
    """The ranges that prove the number of a share: its hash chain, and the root of its block hash tree."""
    return [table.chain, (table.block_tree[0], HASH_SIZE)]


def prove_number(share: Sighting) -> NumberProof:
    """Judge the share's number by the bytes at hand."""
    geometry = share.prefix.geometry
    if not geometry.size:
        return NumberProof.UNKNOWN
    chain, root = (share.at_hand(wanted) for wanted in proof_ranges(share.table))
    if geometry.leaf_count == 1:
        # The root is the hash of the only block. If the block is here, the stored root adds nothing.
        block_bytes, _ = geometry.run_sizes(0, 1)
        block = share.at_hand((share.table.data[0], block_bytes))
        root = root if block is None else hash_blocks(geometry, 0, 1, block)
    if chain is None or root is None:
        return NumberProof.UNKNOWN
    try:
        prove_leaf(share.prefix.root_hash, share.prefix.n, share.number, bytes(root), parse_chain(chain))
    except (FormatError, IntegrityError):
        return NumberProof.FALSE
    return NumberProof.PROVEN
