"""The kernel of a read: one call turns k shares of some segments into plaintext, all of it proven. [spec mutable 14]

Pure, and safe on pool threads. It checks blocks against leaves that chain to the signed root hash, then decodes
and decrypts them. Nothing unproven comes out.

Cost per segment: CPU: one hash pass over k blocks, erasure decoding of missing primary blocks, one AES pass.
Memory: the plaintext and the missing primary blocks; received blocks are read in place.
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from itertools import pairwise

from grid.codec.erasure import primary_blocks
from grid.codec.merkle import padded_leaf_count
from grid.crypto.aes import CtrCipher
from grid.crypto.hashing import BLOCK_TAG, LeafHasher
from grid.errors import FormatError, IntegrityError
from grid.mutable.share.geometry import HASH_SIZE, Geometry
from grid.mutable.share.hash_rows import prove_chunk
from grid.mutable.share.keys import data_key
from grid.mutable.share.offset_table import parse_chain
from grid.mutable.share.prefix import Prefix
from grid.ports import Buffer, ShareNumber
from grid.values import field, frozen

_block_hasher = LeafHasher(BLOCK_TAG)


@frozen(kw_only=True)
class ShareRun:
    """One share's part of a run. blocks: its salts and blocks, as stored.

    leaves: the block hashes of the run's chunk if they are proven already; otherwise nodes (of the block tree) and
    chain (as stored) prove them.
    """

    blocks: Buffer = field(repr=False)
    leaves: bytes | None = field(repr=False, default=None)
    nodes: Mapping[int, bytes] = field(repr=False, factory=dict)
    chain: Buffer = field(repr=False, default=b"")


@frozen(kw_only=True)
class SegmentRun:
    """Consecutive segments of one version, all in one chunk of leaves, with k shares of them.

    chunk_first, chunk_leaves: the chunk. read_key None: return ciphertext, each segment after its salt.
    """

    prefix: Prefix
    geometry: Geometry
    first_segment: int
    segment_count: int
    chunk_first: int
    chunk_leaves: int
    read_key: bytes | None = field(repr=False)
    shares: Mapping[ShareNumber, ShareRun] = field(repr=False)

    def open(self) -> OpenedRun:
        """Check, decode and decrypt it; see open_run."""
        return open_run(self)


@frozen(kw_only=True)
class OpenedRun:
    """text: empty if a share is bad. bad: bad shares, with reasons. proven: the chunk's leaves for each good share."""

    text: Buffer = field(repr=False)
    bad: Mapping[ShareNumber, str]
    proven: Mapping[ShareNumber, bytes] = field(repr=False)


def open_run(run: SegmentRun) -> OpenedRun:
    """The text of a run, or which of its shares are bad."""
    bad: dict[ShareNumber, str] = {}
    proven: dict[ShareNumber, bytes] = {}
    for number, share in run.shares.items():
        try:
            proven[number] = check_run(run, number, share)
        except (FormatError, IntegrityError) as error:
            bad[number] = str(error)
    if bad:
        return OpenedRun(text=b"", bad=bad, proven=proven)
    return OpenedRun(text=_decode(run), bad={}, proven=proven)


def check_run(run: SegmentRun, number: ShareNumber, share: ShareRun) -> bytes:
    """Check the share's blocks and return the proven leaves of the run's chunk; FormatError or IntegrityError."""
    geometry = run.geometry
    view = memoryview(share.blocks)
    spans = block_spans(geometry, run.first_segment, run.segment_count)
    if len(view) != (spans[-1][1] if spans else 0):
        raise FormatError("the share is cut short")
    row = _block_hasher.hash_row([view[start:stop] for start, stop in spans])
    leaves = share.leaves
    if leaves is None:
        leaves = _prove(run, number, share, row)
    first = HASH_SIZE * (run.first_segment - run.chunk_first)
    if not hmac.compare_digest(leaves[first : first + len(row)], row):
        raise IntegrityError(f"a block of segments {run.first_segment} and on does not match its hash")
    return leaves


def block_spans(geometry: Geometry, first: int, count: int) -> list[tuple[int, int]]:
    """(start, stop) of each segment's salt and block in a run of a share."""
    base = geometry.run_offset(first)
    offsets = [geometry.run_offset(segment) - base for segment in range(first, first + count + 1)]
    return list(pairwise(offsets))


def _prove(run: SegmentRun, number: ShareNumber, share: ShareRun, row: bytes) -> bytes:
    geometry = run.geometry
    count = min(run.chunk_leaves, geometry.leaf_count - run.chunk_first)
    if geometry.leaf_count == 1:
        leaves = row
    else:
        base = padded_leaf_count(geometry.leaf_count) - 1 + run.chunk_first
        if any(base + index not in share.nodes for index in range(count)):
            raise IntegrityError("the share's block hash tree is cut short")
        leaves = b"".join([share.nodes[base + index] for index in range(count)])
    chain = parse_chain(share.chain)
    prove_chunk(run.prefix.root_hash, geometry, number, run.chunk_first, leaves, share.nodes, chain)
    return leaves


def _decode(run: SegmentRun) -> bytearray:
    geometry = run.geometry
    raw_salt = geometry.salt_size if run.read_key is None else 0
    _, text_size = geometry.run_sizes(run.first_segment, run.segment_count)
    text = bytearray(text_size + raw_salt * run.segment_count)
    target = memoryview(text)
    views = {number: memoryview(share.blocks) for number, share in run.shares.items()}
    position = 0
    for index, (start, stop) in enumerate(block_spans(geometry, run.first_segment, run.segment_count)):
        body = start + geometry.salt_size
        salt = bytes(next(iter(views.values()))[start:body]) or run.prefix.iv
        if raw_salt:
            target[position : position + raw_salt] = salt
            position += raw_salt
        cipher = None if run.read_key is None else CtrCipher(data_key(run.read_key, salt))
        left = geometry.segment_length(run.first_segment + index)
        for blocks in primary_blocks(
            geometry.k, geometry.n, {number: view[body:stop] for number, view in views.items()}
        ):
            piece = blocks[:left]
            part = target[position : position + len(piece)]
            if cipher is None:
                part[:] = piece
            else:
                cipher.crypt_into(piece, part)
            position += len(piece)
            left -= len(piece)
    return text
