"""The kernel of a write: encodes runs of segments into all N shares, and combines their hashes into a root.

Pure, and safe on pool threads, with the runs of a file in parallel. It sends and keeps nothing; each run has its own
buffers. [spec mutable 5]

Cost per segment: CPU: one AES pass straight into the primary blocks, n - k parity blocks, n hashes, no further
copy. Memory: n blocks and n salts for each segment of the run; 32 bytes per leaf until the version is signed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from grid.codec.buffers import unwiped_string
from grid.codec.erasure import erasure
from grid.codec.merkle import build_tree, sibling_chain, tree_root
from grid.crypto.aes import CtrCipher
from grid.crypto.hashing import BLOCK_TAG, LeafHasher
from grid.errors import FormatError, GridError
from grid.mutable.share.geometry import HASH_SIZE, Geometry
from grid.mutable.share.keys import data_key
from grid.mutable.share.offset_table import pack_chain
from grid.ports import Buffer, ShareNumber
from grid.values import field, frozen

_block_hasher = LeafHasher(BLOCK_TAG)


@frozen(kw_only=True)
class SourceRun:
    """Consecutive segments to encode.

    text: their plaintext or, with read_key None, their ciphertext. salts: one per segment, 16 bytes.
    wanted: the shares whose data are returned. The hashes of all shares are made in any case.
    """

    geometry: Geometry
    first_segment: int
    segment_count: int
    text: Buffer = field(repr=False)
    salts: Sequence[bytes] = field(repr=False)
    read_key: bytes | None = field(repr=False)
    wanted: frozenset[ShareNumber]


@frozen(kw_only=True)
class EncodedRun:
    """data: the bytes of each wanted share's run, salts included. leaves: for each share, 32 bytes per segment."""

    first_segment: int
    segment_count: int
    data: Mapping[ShareNumber, Buffer] = field(repr=False)
    leaves: Sequence[bytes] = field(repr=False)


def encode_run(run: SourceRun) -> EncodedRun:
    """Encode a run. GridError if the text is shorter or longer than the segments."""
    geometry = run.geometry
    share_bytes, text_bytes = geometry.run_sizes(run.first_segment, run.segment_count)
    if len(run.text) != text_bytes:
        raise GridError("the file became shorter while it was read; write it again when it no longer changes")
    strings, shares = zip(*(unwiped_string(share_bytes) for _ in range(geometry.n)), strict=True)
    coder = erasure(geometry.k, geometry.n)
    text = memoryview(run.text)
    leaves = [bytearray() for _ in range(geometry.n)]
    start, position = 0, 0
    for index in range(run.segment_count):
        segment = run.first_segment + index
        length, block = geometry.segment_length(segment), geometry.block_length(segment)
        body = start + geometry.salt_size
        for share in shares if geometry.salt_size else ():
            share[start:body] = run.salts[index]
        blocks = [share[body : body + block] for share in shares]
        cipher = None if run.read_key is None else CtrCipher(data_key(run.read_key, run.salts[index]))
        _fill_primary(text[position : position + length], blocks[: geometry.k], block, cipher)
        coder.encode_into(blocks[: geometry.k], blocks[geometry.k :])
        # Hash the segment now, while it is in the processor's caches.
        hashes = _block_hasher.hash_row([share[start : body + block] for share in shares])
        for number, row in enumerate(leaves):
            row += hashes[HASH_SIZE * number : HASH_SIZE * (number + 1)]
        start, position = body + block, position + length
    return EncodedRun(
        first_segment=run.first_segment,
        segment_count=run.segment_count,
        data={number: strings[number] for number in run.wanted},
        leaves=[bytes(row) for row in leaves],
    )


def _fill_primary(text: memoryview, blocks: Sequence[memoryview], size: int, cipher: CtrCipher | None) -> None:
    """Spread a segment over its primary blocks, encrypting on the way. The rest is filled with zeros."""
    for index, block in enumerate(blocks):
        piece = text[index * size : (index + 1) * size]
        target = block[: len(piece)]
        if len(piece) < size:
            block[len(piece) :] = bytes(size - len(piece))
        if cipher is None:
            target[:] = piece
        else:
            cipher.crypt_into(piece, target)


class VersionHashes:
    """All hashes of one version: the leaves of every share, and the trees over them."""

    def __init__(self, geometry: Geometry) -> None:
        self._geometry = geometry
        self._leaves = [bytearray(HASH_SIZE * geometry.leaf_count) for _ in range(geometry.n)]
        self._share_tree = b""

    def absorb(self, run: EncodedRun) -> None:
        """Take the leaves of a run; runs may come in any order."""
        start = HASH_SIZE * run.first_segment
        for row, leaves in zip(self._leaves, run.leaves, strict=True):
            row[start : start + len(leaves)] = leaves

    def finish(self) -> bytes:
        """Compute the root hash over all shares, once all leaves have come."""
        self._share_tree = build_tree(b"".join(tree_root(row) for row in self._leaves))
        return self._share_tree[:HASH_SIZE]

    def block_tree(self, share_number: int) -> bytes:
        """A share's whole block hash tree."""
        return build_tree(self._leaves[share_number])

    def chain(self, share_number: int) -> bytes:
        """A share's packed share hash chain. Call `finish` first."""
        return chain_of(self._share_tree, self._geometry.n, share_number)


def chain_of(share_tree: bytes, n: int, share_number: int) -> bytes:
    """The packed share hash chain of one share, from the whole tree over n shares."""
    numbers = sibling_chain(share_number, n)
    return pack_chain({number: share_tree[HASH_SIZE * number : HASH_SIZE * (number + 1)] for number in numbers})


def split_salted(geometry: Geometry, first: int, count: int, salted: Buffer) -> tuple[list[bytes], bytearray]:
    """Split a run in which each segment follows its salt into salts and ciphertext. FormatError."""
    view = memoryview(salted)
    salts, text, position = [], bytearray(), 0
    for segment in range(first, first + count):
        body = position + geometry.salt_size
        salts.append(bytes(view[position:body]))
        position = body + geometry.segment_length(segment)
        text += view[body:position]
    if position != len(view):
        raise FormatError("the segments have the wrong sizes")
    return salts, text
