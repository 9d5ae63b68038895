"""What is proven of one immutable file: methods that take bytes from anywhere and prove them or raise.

It never keeps a byte that is not proven from the capability. A proof is all or nothing: after an
error nothing new is kept, and what was proven once is never overwritten. [spec immutable 12]

Cost: no round trips, no disk. CPU: one hash per tree node, once per file or share. Memory: 32 bytes per
segment and share in use, in chunks of CHUNK_LEAVES. Only the latest few chunks of each tree are kept, so
the cost is bounded for files of any size.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping

from grid.codec.merkle import padded_leaf_count, prove_leaf, prove_row, row_path
from grid.crypto.hashing import tagged_hash
from grid.errors import FormatError, IntegrityError
from grid.immutable.share.geometry import Geometry
from grid.immutable.share.layout import parse_chain
from grid.immutable.share.ueb import UriExtension, check_ueb, parse_ueb
from grid.ports import Buffer, ShareNumber

CHUNK_LEAVES = 1024
"""Leaves proven together: 32 KiB to fetch, which is the whole tree of a file of up to 1 GiB."""

KEPT_CHUNKS = 4
"""Chunks kept per tree: readers move forward and rarely go back."""

UEB_MISMATCH = "the URI extension block does not match the capability"
"""Why a share is rejected before anything is proven: either the share is false or the capability is."""

_UEB_TAG = b"allmydata_uri_extension_v1"


class LeafRows:
    """The proven leaves of one per-segment tree, in chunks of CHUNK_LEAVES."""

    def __init__(self, leaf_count: int, root: bytes) -> None:
        self._leaf_count = leaf_count
        self._root = root
        self._chunks: OrderedDict[int, bytes] = OrderedDict()

    def accept(self, chunk: int, row: Buffer, nodes: Mapping[int, bytes]) -> None:
        """Prove one chunk's leaves with the nodes on the path above it. IntegrityError keeps nothing."""
        if chunk in self._chunks:
            return
        prove_row(self._root, self._leaf_count, chunk * CHUNK_LEAVES, row, nodes)
        self._chunks[chunk] = bytes(row)
        while len(self._chunks) > KEPT_CHUNKS:
            self._chunks.popitem(last=False)

    def has(self, chunk: int) -> bool:
        """Whether this chunk is proven and still kept."""
        return chunk in self._chunks

    def leaves(self, first: int, count: int) -> bytes:
        """The proven leaves of segments first .. first + count, 32 bytes each; KeyError if some are not kept."""
        parts = []
        while count > 0:
            chunk, start = divmod(first, CHUNK_LEAVES)
            taken = min(count, CHUNK_LEAVES - start)
            parts.append(self._chunks[chunk][32 * start : 32 * (start + taken)])
            first, count = first + taken, count - taken
        return b"".join(parts)


class RowRanges:
    """Where one chunk of a serialized tree is: the row of leaves, and the path nodes above it."""

    def __init__(self, leaf_count: int, chunk: int) -> None:
        first = chunk * CHUNK_LEAVES
        padded = padded_leaf_count(leaf_count)
        self.row_offset = 32 * (padded - 1 + first)
        self.row_size = 32 * min(CHUNK_LEAVES, leaf_count - first)
        self.path = row_path(leaf_count, first, min(CHUNK_LEAVES, padded))

    def ranges(self, tree_offset: int) -> list[tuple[int, int]]:
        """The row's range, then the range of each path node, in a tree stored at tree_offset."""
        return [
            (tree_offset + self.row_offset, self.row_size),
            *((tree_offset + 32 * node, 32) for node in self.path),
        ]

    def nodes(self, pieces: list[Buffer]) -> dict[int, bytes]:
        """The path nodes from the pieces read for ranges(); FormatError if one is cut short."""
        if len(pieces) != 1 + len(self.path) or len(pieces[0]) != self.row_size:
            raise FormatError("a hash tree was returned short")
        nodes = {node: bytes(piece) for node, piece in zip(self.path, pieces[1:], strict=True)}
        if any(len(value) != 32 for value in nodes.values()):
            raise FormatError("a hash tree was returned short")
        return nodes


class FileVerifier:
    """Everything that is proven of one file. It grows as shares are read."""

    def __init__(self, ueb_hash: bytes, size: int, k: int, n: int) -> None:
        self._ueb_hash = ueb_hash
        self._size = size
        self._k = k
        self._n = n
        self._block_roots: dict[ShareNumber, bytes] = {}
        self._block_rows: dict[ShareNumber, LeafRows] = {}
        self.ueb: UriExtension | None = None
        self.ueb_bytes: bytes = b""
        self.geometry: Geometry | None = None
        self.crypttext_rows: LeafRows | None = None

    def accept_ueb(self, data: Buffer) -> Geometry:
        """Prove the URI extension block, and with it the geometry and both roots.

        IntegrityError: these are not the bytes that the capability names. FormatError: they are, but they are malformed, which
        is the uploader's fault and not a server's.
        """
        if tagged_hash(_UEB_TAG, data) != self._ueb_hash:
            raise IntegrityError(UEB_MISMATCH)
        if self.geometry is None:
            ueb = parse_ueb(data)
            geometry = check_ueb(ueb, self._size, self._k, self._n)
            self.crypttext_rows = LeafRows(geometry.segment_count, ueb.crypttext_root_hash)
            self.ueb, self.ueb_bytes, self.geometry = ueb, bytes(data), geometry
        return self.geometry

    def has_root(self, share_number: ShareNumber) -> bool:
        """Whether the root of this share's block hash tree is proven."""
        return share_number in self._block_roots

    def block_root(self, share_number: ShareNumber) -> bytes:
        """The proven root of this share's block hash tree; KeyError if it is not proven."""
        return self._block_roots[share_number]

    def accept_chain(self, share_number: ShareNumber, data: Buffer) -> None:
        """Prove the root of a share's block hash tree from the share hash chain stored in it."""
        assert self.ueb is not None and self.geometry is not None
        nodes = parse_chain(data)
        leaf_node = padded_leaf_count(self._n) - 1 + share_number
        leaf = nodes.pop(leaf_node, None)
        if leaf is None:
            raise IntegrityError("the share hash chain lacks the share's own hash")
        prove_leaf(self.ueb.share_root_hash, self._n, share_number, leaf, nodes)
        if self._block_roots.setdefault(share_number, leaf) != leaf:
            raise IntegrityError("the share hash chain differs from what is proven")
        if share_number not in self._block_rows:
            self._block_rows[share_number] = LeafRows(self.geometry.segment_count, leaf)

    def block_rows(self, share_number: ShareNumber) -> LeafRows:
        """The proven block hashes of a share whose root is proven. Copies of a share number have them in common."""
        return self._block_rows[share_number]

    def row_ranges(self, chunk: int) -> RowRanges:
        """Where a chunk is in either per-segment tree."""
        assert self.geometry is not None
        return RowRanges(self.geometry.segment_count, chunk)
