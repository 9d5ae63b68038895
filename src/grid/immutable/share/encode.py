"""The encoder: takes plaintext or ciphertext, and returns the blocks of all N shares and then their trailers.

Owns encryption, erasure coding and all hashing of a put or a repair. It never asks which server stores which
share: it always makes the blocks of all N shares, because the capability's hash covers them all.

Cost for a file of `size` bytes. Round trips, disk: none. CPU: one AES pass, n - k parity blocks and
n / k + 2 SHA-256 passes per byte, on pool threads, batches in parallel; `absorb` does two of the passes, one of
which must run in order. Memory: for each batch not yet sent, its padded size times n / k and the input. For the file,
32 * segment_count * (n + 1) bytes of leaves until `finish` (64 kB * 256 per 2 GiB at N = 256), and one
more block tree for each trailer while it is sent. [spec immutable 4-11]
"""

from __future__ import annotations

from collections.abc import Sequence

from grid.caps import ChkCap
from grid.codec.buffers import unwiped
from grid.codec.erasure import erasure
from grid.codec.merkle import build_tree, prove_leaf, tree_root
from grid.codec.netstring import pack_netstring
from grid.crypto.aes import CtrCipher
from grid.crypto.hash_rows import RowCut
from grid.crypto.hashing import BLOCK_TAG, LeafHasher, RunningHasher, TaggedHasher, hash_rows
from grid.errors import FormatError, IntegrityError
from grid.immutable.share.geometry import HASH_SIZE, Geometry
from grid.immutable.share.layout import (
    ShareLayout,
    pack_chain,
    pack_header,
    pack_ueb_length,
    parse_chain,
    parse_header,
    parse_ueb_length,
    plan_layout,
    share_size,
)
from grid.immutable.share.ueb import check_ueb, describe_file, pack_ueb, parse_ueb, ueb_hash, ueb_size
from grid.ports import Buffer
from grid.values import field, frozen

CRYPTTEXT_SEGMENT_TAG = b"allmydata_crypttext_segment_v1"
CRYPTTEXT_TAG = b"allmydata_crypttext_v1"
CONVERGENT_KEY_TAG = b"allmydata_immutable_content_to_key_with_added_secret_v1+"


def convergent_hasher(secret: bytes, geometry: Geometry) -> TaggedHasher:
    """The hasher for a convergent key: update it with the whole plaintext in order, then call digest(16).

    secret: the node's convergence secret, of any length. [spec immutable 3]
    """
    parameters = b"%d,%d,%d" % (geometry.k, geometry.n, geometry.segment_size)
    return TaggedHasher(CONVERGENT_KEY_TAG + pack_netstring(secret) + pack_netstring(parameters))


@frozen(kw_only=True, eq=False)
class EncodedBatch:
    """The blocks of a run of segments, and their leaves.

    ciphertext: the segments, unpadded. block_leaves: n rows of segment_count hashes. The buffers belong to this batch
    (ciphertext that the caller passed in is not copied) and must not change until every write of the pieces is answered.
    """

    geometry: Geometry
    first_segment: int
    segment_count: int
    ciphertext: memoryview = field(repr=False)
    block_leaves: memoryview = field(repr=False)
    _segments: Sequence[memoryview] = field(repr=False)
    _parity: memoryview = field(repr=False)

    @property
    def data_offset(self) -> int:
        """Offset of the batch's blocks in the data section of each share."""
        return self.geometry.block_offset(self.first_segment)

    @property
    def data_size(self) -> int:
        """Bytes of the batch's blocks in each share."""
        return self.geometry.block_offset(self.first_segment + self.segment_count) - self.data_offset

    def blocks(self, share_number: int) -> list[memoryview]:
        """The share's blocks in the batch, one view per segment."""
        k = self.geometry.k
        blocks = []
        if share_number < k:
            for segment in self._segments:
                length = len(segment) // k
                blocks.append(segment[share_number * length : (share_number + 1) * length])
            return blocks
        run = self.pieces(share_number)[0]
        for index in range(self.first_segment, self.first_segment + self.segment_count):
            start = self.geometry.block_offset(index) - self.data_offset
            blocks.append(run[start : start + self.geometry.block_length(index)])
        return blocks

    def pieces(self, share_number: int) -> list[memoryview]:
        """The share's bytes in the batch, for data_offset of its data section, in as few views as possible.

        One view for a parity share, or if one share is the whole file; otherwise one per segment.
        """
        k, n = self.geometry.k, self.geometry.n
        if not 0 <= share_number < n:
            raise ValueError(f"there is no share {share_number} of {n}")
        if share_number >= k:
            start = (share_number - k) * self.data_size
            return [self._parity[start : start + self.data_size]]
        return [self.ciphertext] if k == 1 else self.blocks(share_number)

    def leaf_row(self, share_number: int) -> memoryview:
        """The block hashes of the share, 32 bytes for each segment of the batch."""
        size = HASH_SIZE * self.segment_count
        return self.block_leaves[share_number * size : (share_number + 1) * size]


@frozen(kw_only=True, eq=False)
class FinishedEncoding:
    """What follows the blocks in each share, and the values of the capability."""

    geometry: Geometry
    layout: ShareLayout
    ueb: bytes = field(repr=False)
    ueb_hash: bytes = field(repr=bytes.hex)
    _blank_tree: bytes = field(repr=False)
    _crypttext_tree: bytes = field(repr=False)
    _share_nodes: Sequence[bytes] = field(repr=False)
    _block_leaves: Sequence[Buffer] = field(repr=False)

    @property
    def share_size(self) -> int:
        """Bytes of every share."""
        return share_size(self.layout, len(self.ueb))

    @property
    def trailer_offset(self) -> int:
        """Offset of the trailer in every share, right after its last block."""
        return self.layout.plaintext_tree_offset

    def read_cap(self, key: bytes) -> ChkCap:
        """The read capability of the file that was encrypted with this key."""
        geometry = self.geometry
        return ChkCap(key=key, ueb_hash=self.ueb_hash, needed=geometry.k, total=geometry.n, size=geometry.size)

    def trailer(self, share_number: int) -> list[bytes]:
        """The share's bytes from trailer_offset to its end, in pieces. Pieces common to all shares are one object.

        Each call makes the share's block tree again. The packed trailer is parsed and proven before it is returned:
        IntegrityError or FormatError mean that this machine's memory is faulty.
        """
        geometry, layout = self.geometry, self.layout
        block_tree = build_tree(self._block_leaves[share_number])
        chain = pack_chain(share_number, geometry.n, self._share_nodes)
        length = pack_ueb_length(layout, len(self.ueb))
        root = self._share_nodes[0]
        prove_leaf(root, geometry.n, share_number, block_tree[:HASH_SIZE], parse_chain(chain))
        pieces = [self._blank_tree, self._crypttext_tree, block_tree, chain, length, self.ueb]
        if parse_ueb_length(layout, length) != len(self.ueb) or self._ends(pieces) != self._planned_ends():
            raise FormatError(f"the trailer of share {share_number} does not fit the layout of the file")
        return pieces

    def _ends(self, pieces: Sequence[bytes]) -> list[int]:
        ends, offset = [], self.trailer_offset
        for piece in pieces:
            offset += len(piece)
            ends.append(offset)
        return ends

    def _planned_ends(self) -> list[int]:
        layout = self.layout
        ueb_start = layout.ueb_offset + layout.length_field_size
        offsets = [layout.crypttext_tree_offset, layout.block_tree_offset, layout.chain_offset, layout.ueb_offset]
        return [*offsets, ueb_start, self.share_size]


class Encoder:
    """Encodes one file, a few whole segments at a time.

    key: the 16-byte encryption key; None if the input is ciphertext already, as in a repair.
    `encode_segments` may run on several threads at once. `absorb` takes the batches in order, one at a time.
    """

    def __init__(self, geometry: Geometry, key: bytes | None) -> None:
        self.geometry = geometry
        self.layout = plan_layout(geometry)
        self.header = pack_header(self.layout, geometry)
        if parse_header(self.header) != self.layout:
            raise FormatError("the packed header of the shares does not match their layout")
        self._key = key
        self._coder = erasure(geometry.k, geometry.n)
        self._block_hasher = LeafHasher(BLOCK_TAG)
        self._segment_hasher = LeafHasher(CRYPTTEXT_SEGMENT_TAG)
        self._crypttext_hasher = RunningHasher(CRYPTTEXT_TAG)
        self._absorbed_count = 0
        self._crypttext_leaves = bytearray()
        self._block_leaves = [bytearray() for _ in range(geometry.n)]

    @property
    def share_size(self) -> int:
        """Bytes of every share, known in advance, if the extension block is a new one."""
        return share_size(self.layout, ueb_size(self.geometry))

    def encode_segments(self, first_segment: int, text: Buffer) -> EncodedBatch:
        """The blocks of consecutive segments. text: exactly those segments, without padding.

        One pass: each segment is encrypted, erasure-coded and hashed while it is in the processor's caches. Changes
        nothing that other calls can see. ValueError if the text is not whole segments of the file.
        """
        geometry = self.geometry
        source = memoryview(text).cast("B")
        count = self._count_segments(first_segment, len(source))
        run_size = geometry.block_offset(first_segment + count) - geometry.block_offset(first_segment)
        parity = unwiped((geometry.n - geometry.k) * run_size)
        ciphertext, segments = self._lay_segments(first_segment, count, source)
        cipher = None if self._key is None else CtrCipher(self._key, geometry.segment_offset(first_segment))
        block_leaves = memoryview(bytearray(HASH_SIZE * count * geometry.n))
        for position, segment in enumerate(segments):
            start = position * geometry.segment_size
            unpadded = ciphertext[start : start + geometry.segment_length(first_segment + position)]
            if cipher is not None:
                cipher.crypt_into(source[start : start + len(unpadded)], unpadded)
            blocks = self._code_segment(segment, parity, position * geometry.block_size, run_size)
            row = RowCut(1, len(blocks[0]), len(blocks[0]))
            hashes, _ = hash_rows(row, blocks, self._block_hasher)
            _put_column(block_leaves, position, count, hashes)
        return EncodedBatch(
            geometry=geometry,
            first_segment=first_segment,
            segment_count=count,
            ciphertext=ciphertext.toreadonly(),
            block_leaves=block_leaves.toreadonly(),
            segments=[segment.toreadonly() for segment in segments],
            parity=parity.toreadonly(),
        )

    def absorb(self, batch: EncodedBatch) -> None:
        """Take over the batch's leaves, and hash its ciphertext, both as part of the file and per segment.

        Costs two hash passes over the batch, side by side. ValueError if the batch is not the next one.
        """
        if batch.geometry != self.geometry or batch.first_segment != self._absorbed_count:
            raise ValueError(f"segment {batch.first_segment} came where segment {self._absorbed_count} belongs")
        size, starts = self.geometry.segment_size, range(0, len(batch.ciphertext), self.geometry.segment_size)
        unpadded = [batch.ciphertext[start : start + size] for start in starts]
        self._crypttext_leaves += self._crypttext_hasher.update(batch.ciphertext, self._segment_hasher, unpadded)
        for share_number, leaves in enumerate(self._block_leaves):
            leaves += batch.leaf_row(share_number)
        self._absorbed_count += batch.segment_count

    def finish(self, original_ueb: bytes | None = None) -> FinishedEncoding:
        """The trailers and the capability's values, once every segment is absorbed; ValueError before that.

        original_ueb: in a repair, the proven extension block of the file, to be stored byte for byte.
        IntegrityError if the new shares are not those of that file; FormatError if the block is not one of it.
        """
        geometry = self.geometry
        if self._absorbed_count != geometry.segment_count:
            raise ValueError(f"{self._absorbed_count} of {geometry.segment_count} segments are encoded")
        crypttext_tree = build_tree(self._crypttext_leaves)
        share_tree = build_tree(b"".join(tree_root(leaves) for leaves in self._block_leaves))
        made = describe_file(
            geometry,
            crypttext_hash=self._crypttext_hasher.digest(),
            crypttext_root_hash=crypttext_tree[:HASH_SIZE],
            share_root_hash=share_tree[:HASH_SIZE],
        )
        ueb = pack_ueb(made) if original_ueb is None else original_ueb
        stored = parse_ueb(ueb)
        check_ueb(stored, geometry.size, geometry.k, geometry.n)
        if (stored.segment_size, stored.crypttext_root_hash, stored.share_root_hash) != (
            geometry.segment_size,
            made.crypttext_root_hash,
            made.share_root_hash,
        ):
            raise IntegrityError("the new shares do not match the file's extension block")
        return FinishedEncoding(
            geometry=geometry,
            layout=self.layout,
            ueb=ueb,
            ueb_hash=ueb_hash(ueb),
            blank_tree=bytes(geometry.tree_size),
            crypttext_tree=crypttext_tree,
            share_nodes=tree_nodes(share_tree),
            block_leaves=self._block_leaves,
        )

    def _count_segments(self, first_segment: int, text_size: int) -> int:
        geometry = self.geometry
        end = geometry.segment_offset(first_segment) + text_size
        if first_segment < 0 or text_size == 0 or end > geometry.size:
            raise ValueError(f"{text_size} bytes from segment {first_segment} on are not segments of the file")
        if end == geometry.size:
            return geometry.segment_count - first_segment
        count, rest = divmod(text_size, geometry.segment_size)
        if rest:
            raise ValueError(f"{text_size} bytes from segment {first_segment} on are not whole segments")
        return count

    def _lay_segments(self, first_segment: int, count: int, source: memoryview) -> tuple[memoryview, list[memoryview]]:
        """Buffers for the ciphertext without padding, and for each segment of it with padding.

        Ciphertext that is passed in is not copied, except for a last segment that needs padding.
        """
        geometry = self.geometry
        lengths = [geometry.padded_segment_length(index) for index in range(first_segment, first_segment + count)]
        padded_size = sum(lengths)
        room = source
        if self._key is not None:
            room = unwiped(padded_size)
            room[len(source) :] = bytes(padded_size - len(source))
        starts = range(0, count * geometry.segment_size, geometry.segment_size)
        segments = [room[start : start + length] for start, length in zip(starts, lengths, strict=True)]
        if len(room) < padded_size:
            tail = bytearray(lengths[-1])
            tail[: len(segments[-1])] = segments[-1]
            segments[-1] = memoryview(tail)
        return room[: len(source)], segments

    def _code_segment(self, segment: memoryview, parity: memoryview, offset: int, run_size: int) -> list[memoryview]:
        """All n blocks of one padded segment. The parity blocks are written at `offset` of their runs."""
        k, n = self.geometry.k, self.geometry.n
        length = len(segment) // k
        primary = [segment[j * length : (j + 1) * length] for j in range(k)]
        coded = [parity[start : start + length] for start in range(offset, (n - k) * run_size, run_size)]
        self._coder.encode_into(primary, coded)
        return primary + coded


def _put_column(rows: memoryview, position: int, row_length: int, hashes: bytes) -> None:
    """Write one hash into each row of hashes, at the same position in all: one word of every row at a time."""
    words = HASH_SIZE // 8
    target, source = rows.cast("Q"), memoryview(hashes).cast("Q")
    for word in range(words):
        target[position * words + word :: row_length * words] = source[word::words]


def tree_nodes(tree: Buffer) -> list[bytes]:
    """The hashes of a flat tree, by node number."""
    view = memoryview(tree)
    return [bytes(view[start : start + HASH_SIZE]) for start in range(0, len(view), HASH_SIZE)]
