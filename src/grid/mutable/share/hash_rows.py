"""Rows of a share's block hash tree: the nodes that prove a run of segments, and the nodes that a changed run replaces.

Pure. Leaves are fetched and proven in aligned chunks, up to the root hash in the signed prefix. Nodes are numbered as
in codec.merkle: the root is 0, and leaf i of P padded ones is node P - 1 + i. [spec mutable 8, 14]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

from grid.codec.merkle import padded_leaf_count, prove_leaf, prove_row, row_path
from grid.crypto.hashing import tagged_pair_hash
from grid.errors import IntegrityError
from grid.mutable.share.geometry import HASH_SIZE, Geometry
from grid.mutable.share.offset_table import ShareTable
from grid.ports import Buffer, Range

_NODE_TAG = b"Merkle tree internal node"

CHUNK_LEAVES = 1024
"""Leaves proven at once in a long read: 32 KiB per share for 128 MiB of the file."""

GAP_BYTES = 1024
"""Gaps between ranges of up to this many bytes are read too, because that is cheaper than a further range."""


def chunk_leaves(segment_count: int) -> int:
    """Leaves in a chunk of a read of segment_count segments."""
    return min(CHUNK_LEAVES, padded_leaf_count(segment_count))


def nodes_of_chunk(geometry: Geometry, first_leaf: int, leaves: int) -> list[int]:
    """The nodes that prove an aligned chunk of leaves: the root, the siblings on the path, and the leaves themselves."""
    base = padded_leaf_count(geometry.leaf_count) - 1
    stop = min(first_leaf + leaves, geometry.leaf_count)
    return sorted({0, *row_path(geometry.leaf_count, first_leaf, leaves), *range(base + first_leaf, base + stop)})


@lru_cache(maxsize=64)
def chunk_ranges(geometry: Geometry, first_leaf: int, leaves: int, tree_offset: int) -> tuple[Range, ...]:
    """As few ranges of a share as possible that contain the nodes of nodes_of_chunk, ascending; close ones are merged.

    Cached, because all shares of a version have the same ranges.
    """
    nodes = nodes_of_chunk(geometry, first_leaf, leaves)
    return tuple(merge_ranges([(tree_offset + HASH_SIZE * node, HASH_SIZE) for node in nodes]))


def hash_ranges(geometry: Geometry, table: ShareTable, first_leaf: int, leaves: int) -> Sequence[Range]:
    """The ranges that prove those blocks of a share, besides its chain; none if there is only one block."""
    return () if geometry.leaf_count == 1 else chunk_ranges(geometry, first_leaf, leaves, table.block_tree[0])


def merge_ranges(ranges: Sequence[Range], gap: int = GAP_BYTES) -> list[Range]:
    """The ranges that cover the given ones, ascending. Gaps of up to `gap` bytes are included."""
    merged: list[Range] = []
    for offset, size in sorted(ranges):
        if merged and offset <= sum(merged[-1]) + gap:
            start = merged[-1][0]
            merged[-1] = start, max(sum(merged[-1]), offset + size) - start
        else:
            merged.append((offset, size))
    return merged


def prove_chunk(
    root_hash: bytes,
    geometry: Geometry,
    share_number: int,
    first_leaf: int,
    row: Buffer,
    nodes: Mapping[int, bytes],
    chain: Mapping[int, bytes],
) -> None:
    """Check that the row of leaves chains to the root hash of the version; IntegrityError if not.

    nodes: of the block tree, as in nodes_of_chunk. chain: of the share tree.
    """
    # A tree of one leaf is that leaf. Its stored form proves nothing more.
    root = bytes(row) if geometry.leaf_count == 1 else nodes.get(0)
    if root is None:
        raise IntegrityError("the root of the block hash tree is missing")
    prove_row(root, geometry.leaf_count, first_leaf, row, nodes)
    prove_leaf(root_hash, geometry.n, share_number, root, chain)


def nodes_beside(padded: int, first: int, stop: int) -> list[int]:
    """The nodes that are needed to compute the root, besides leaves first .. stop."""
    beside = []
    width, low, high = padded, first, stop - 1
    while width > 1 and low <= high:
        if low % 2:
            beside.append(width - 1 + low - 1)
        if not high % 2:
            beside.append(width - 1 + high + 1)
        width, low, high = width // 2, low // 2, high // 2
    return beside


def climb(padded: int, first: int, leaves: Sequence[bytes], beside: Mapping[int, bytes]) -> dict[int, bytes]:
    """Every node that depends on these leaves, by number, including the leaves and the root.

    beside: at least the nodes of nodes_beside; KeyError if one is missing.
    """
    made: dict[int, bytes] = {}
    width, low, row = padded, first, list(leaves)
    while True:
        made.update((width - 1 + low + index, value) for index, value in enumerate(row))
        if width == 1:
            return made
        if low % 2:
            low -= 1
            row.insert(0, beside[width - 1 + low])
        if len(row) % 2:
            row.append(beside[width - 1 + low + len(row)])
        row = [tagged_pair_hash(_NODE_TAG, row[index], row[index + 1]) for index in range(0, len(row), 2)]
        width, low = width // 2, low // 2
