"""The kernel of a read: one call turns k proven shares of some segments into plaintext.

Pure, and safe on pool threads. It decodes the blocks, hashes them and the decoded ciphertext together, and compares the
hashes with the proven leaves: first those of the blocks, then those of the ciphertext. Only then it decrypts. Nothing
unproven comes out. [spec immutable 12]

Cost of a run: CPU: 2 hashed bytes per byte of plaintext, erasure decoding of missing primary blocks, and one AES pass;
one C call for all decoding and one for all hashes, plus a microsecond per block. Memory: the plaintext
and the missing primary blocks, which are at most as large. Received blocks are read in place.
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping, Sequence
from itertools import chain

from grid.codec.buffers import unwiped
from grid.codec.erasure import primary_blocks
from grid.crypto.aes import CtrCipher
from grid.crypto.hash_rows import RowCut
from grid.crypto.hashing import BLOCK_TAG, HASH_SIZE, LeafHasher, hash_rows
from grid.errors import DamagedFileError
from grid.immutable.share.geometry import Geometry
from grid.ports import Buffer, ShareNumber
from grid.values import field, frozen

_block_hasher = LeafHasher(BLOCK_TAG)
_segment_hasher = LeafHasher(b"allmydata_crypttext_segment_v1")


@frozen(kw_only=True)
class SegmentRun:
    """Consecutive segments, and everything that is needed to read them.

    blocks: k share numbers to the share's consecutive blocks, as one buffer. leaves: for each of these shares,
    its proven block hashes, 32 bytes per segment; crypttext_leaves likewise. key None: return the ciphertext
    itself. Opening it raises ValueError if a buffer does not have the length of the blocks.
    """

    geometry: Geometry
    first_segment: int
    segment_count: int
    key: bytes | None = field(repr=False)
    blocks: Mapping[ShareNumber, Buffer] = field(repr=False)
    leaves: Mapping[ShareNumber, bytes] = field(repr=False)
    crypttext_leaves: bytes = field(repr=False)

    def open(self) -> OpenedRun:
        """Decode, check and decrypt it; see open_run."""
        return open_run(self)


@frozen(kw_only=True)
class OpenedRun:
    """text: the plaintext of the segments, empty if any block is bad. bad: share number to its bad segments."""

    text: Buffer = field(repr=False)
    bad: Mapping[ShareNumber, Sequence[int]]


def run_sizes(geometry: Geometry, first_segment: int, segment_count: int) -> tuple[int, int]:
    """(bytes of one share's blocks, bytes of text) in a run of segments."""
    last = first_segment + segment_count - 1
    blocks = (segment_count - 1) * geometry.block_size + geometry.block_length(last)
    text = (segment_count - 1) * geometry.segment_size + geometry.segment_length(last)
    return blocks, text


def open_run(run: SegmentRun) -> OpenedRun:
    """The plaintext of a run, or which blocks are bad.

    DamagedFileError: all blocks are proven, yet they do not decode to the file. That is the uploader's fault.
    """
    geometry, last = run.geometry, run.first_segment + run.segment_count - 1
    cut = RowCut(run.segment_count, geometry.block_size, geometry.block_length(last))
    text_size = run_sizes(geometry, run.first_segment, run.segment_count)[1]
    shares = {number: memoryview(blocks) for number, blocks in run.blocks.items()}
    # The code works byte by byte, so all blocks of a share together count as one block.
    runs = primary_blocks(geometry.k, geometry.n, shares)
    leaves, segments = hash_rows(cut, list(shares.values()), _block_hasher, runs, _segment_hasher, text_size)
    bad = _bad_blocks(run, leaves)
    if bad:
        return OpenedRun(text=b"", bad=bad)
    for index in range(run.segment_count):
        if not hmac.compare_digest(_leaf(segments, index), _leaf(run.crypttext_leaves, index)):
            wrong = run.first_segment + index
            raise DamagedFileError(
                f"segment {wrong}: the shares are proven but do not decode to the file; it was damaged when uploaded"
            )
    return OpenedRun(text=_join_text(run, cut.rows(runs, text_size), text_size), bad={})


def _bad_blocks(run: SegmentRun, leaves: bytes) -> dict[ShareNumber, list[int]]:
    """leaves: the hashes of all blocks, in the order of run.blocks."""
    bad: dict[ShareNumber, list[int]] = {}
    size = HASH_SIZE * run.segment_count
    for position, number in enumerate(run.blocks):
        row, proven = leaves[position * size : (position + 1) * size], run.leaves[number]
        if hmac.compare_digest(row, proven):
            continue
        indexes = range(run.segment_count)
        bad[number] = [run.first_segment + i for i in indexes if _leaf(row, i) != _leaf(proven, i)]
    return bad


def _join_text(run: SegmentRun, rows: Sequence[Sequence[memoryview]], size: int) -> memoryview:
    text = unwiped(size)
    pieces = list(chain.from_iterable(rows))
    targets, start = [], 0
    for piece in pieces:
        targets.append(text[start : start + len(piece)])
        start += len(piece)
    if run.key is not None:
        CtrCipher(run.key, run.first_segment * run.geometry.segment_size).crypt_each(pieces, targets)
        return text
    for piece, target in zip(pieces, targets, strict=True):
        target[:] = piece
    return text


def _leaf(row: bytes, index: int) -> bytes:
    return row[HASH_SIZE * index : HASH_SIZE * (index + 1)]
