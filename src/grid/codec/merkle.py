"""Merkle trees: builds them, and proves leaves and rows of leaves from a root. [spec immutable 7]

A tree of leaf_count leaves is padded to E leaves, a power of two. It is a flat row of 2E-1 hashes of 32
bytes: node 0 is the root, the children of node i are 2i+1 and 2i+2, and leaf i is node E-1+i. Rows of leaves
are flat too. No hash is trusted unless it chains to the given root.

Cost: CPU: about 1 us per node, a quarter of that with multi-buffer hashing. Memory: two trees while one is built.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from hashlib import sha256

from grid.crypto.buffer import Buffer
from grid.crypto.hashing import HASH_SIZE, tagged_hash
from grid.crypto.multi_buffer import multi_buffer
from grid.errors import IntegrityError

_EMPTY_LEAF_TAG = b"Merkle tree empty leaf"
_NODE_HEAD = b"25:Merkle tree internal node,32:"
_NODE_MIDDLE = b",32:"
_NODE_TAIL = b","

_WIDE_ROW = 8 * HASH_SIZE
"""Rows of at least this size are worth a call of the C library."""

_SHORT_PADDING = 1 << 9
"""Most padding leaves to keep in one piece: the trees of all shares of a file end with the same ones, in each of its reads."""

MAX_COMPUTED_PADDING = 1 << 16
"""Most padding leaves to hash in place of one absent node: some 0.1 s of work, and more than any chunk has."""


@lru_cache(maxsize=1024)
def padded_leaf_count(count: int) -> int:
    """E: the smallest power of two that is at least the count, and at least 1."""
    return 1 << max(count - 1, 0).bit_length()


@lru_cache(maxsize=4096)
def empty_leaf(index: int) -> bytes:
    """The padding leaf at that leaf index."""
    return tagged_hash(_EMPTY_LEAF_TAG, b"%d" % index)


def build_tree(leaves: Buffer) -> bytes:
    """The whole tree over a row of leaves, 32 * (2E-1) bytes. Without leaves, it is the tree of one padding leaf.

    ValueError if the row is not whole leaves.
    """
    return b"".join(_rows(_pad_row(leaves, 0, padded_leaf_count(_count_leaves(leaves))))[::-1])


def tree_root(leaves: Buffer) -> bytes:
    """The root of the tree over a row of leaves; ValueError as in build_tree."""
    return _top(_pad_row(leaves, 0, padded_leaf_count(_count_leaves(leaves))))


def sibling_chain(leaf_index: int, leaf_count: int) -> list[int]:
    """The numbers of the nodes that prove a leaf, bottom up, without the leaf and the root.

    ValueError if there is no such leaf.
    """
    return row_path(leaf_count, leaf_index, 1)


def row_path(leaf_count: int, first_leaf: int, chunk_leaves: int) -> list[int]:
    """The numbers of the nodes that prove a chunk of leaves, bottom up: the siblings on the path from the root
    of the chunk's subtree to the root; none if the chunk is the whole padded tree or more.

    chunk_leaves: a power of two; first_leaf: a multiple of it that is a leaf. ValueError otherwise.
    """
    if not 0 <= first_leaf < max(leaf_count, 1):
        raise ValueError(f"there is no leaf {first_leaf} of {leaf_count}")
    if chunk_leaves < 1 or chunk_leaves & (chunk_leaves - 1) or first_leaf % chunk_leaves:
        raise ValueError(f"{chunk_leaves} leaves from {first_leaf} on are not the leaves of one node")
    path = []
    node = _subtree_root(padded_leaf_count(leaf_count), first_leaf, chunk_leaves)
    while node > 0:
        path.append(_sibling(node))
        node = (node - 1) // 2
    return path


def prove_leaf(root: bytes, leaf_count: int, leaf_index: int, leaf: bytes, nodes: Mapping[int, bytes]) -> None:
    """Check that the leaf chains to the root; IntegrityError if not, or if a necessary node is missing.

    nodes: those of sibling_chain. Others are ignored, and one over padding leaves only may be missing.
    """
    if not 0 <= leaf_index < leaf_count:
        raise IntegrityError(f"there is no leaf {leaf_index} of {leaf_count}")
    if len(leaf) != HASH_SIZE:
        raise IntegrityError(f"leaf {leaf_index} has {len(leaf)} bytes")
    _climb(root, leaf_count, leaf_index, 1, leaf, nodes)


def prove_row(root: bytes, leaf_count: int, first_leaf: int, row: Buffer, nodes: Mapping[int, bytes]) -> None:
    """Check that every leaf of the row chains to the root; IntegrityError if not, or if a node is missing.

    row: the leaves of one node (a power of two of them, the first index a multiple of that), or as many of
    them as there are up to the last leaf of the tree. nodes: those of row_path. Others are ignored, and one
    over padding leaves only may be missing.
    """
    count, rest = divmod(len(row), HASH_SIZE)
    chunk_leaves = padded_leaf_count(count)
    whole = count == chunk_leaves or first_leaf + count == leaf_count
    inside = first_leaf >= 0 and 0 < count <= leaf_count - first_leaf
    if rest or not whole or not inside or first_leaf % chunk_leaves:
        raise IntegrityError(f"{len(row)} bytes from leaf {first_leaf} of {leaf_count} on are not a row of leaves")
    subtree = _top(_pad_row(row, first_leaf, chunk_leaves))
    _climb(root, leaf_count, first_leaf, chunk_leaves, subtree, nodes)


def _count_leaves(leaves: Buffer) -> int:
    count, rest = divmod(len(leaves), HASH_SIZE)
    if rest:
        raise ValueError(f"{len(leaves)} bytes are not a row of leaves")
    return count


def _pad_row(leaves: Buffer, first_leaf: int, chunk_leaves: int) -> bytes:
    start, stop = first_leaf + len(leaves) // HASH_SIZE, first_leaf + chunk_leaves
    padding = _short_padding(start, stop) if stop - start <= _SHORT_PADDING else _pad(start, stop)
    return b"".join((leaves, padding))


def _pad(start: int, stop: int) -> bytes:
    """The padding leaves from start up to stop."""
    return b"".join(map(empty_leaf, range(start, stop)))


_short_padding = lru_cache(maxsize=64)(_pad)


def _rows(row: bytes) -> list[bytes]:
    """All rows above a padded row of leaves, from the row itself to the root."""
    rows = [row]
    above = _rows_above(row)
    size, start = len(row) // 2, 0
    while start < len(above):
        rows.append(above[start : start + size])
        size, start = size // 2, start + size
    return rows


def _top(row: bytes) -> bytes:
    """The root of the tree over a padded row of leaves."""
    return _rows_above(row)[-HASH_SIZE:] or row


def _rows_above(row: bytes) -> bytes:
    """The rows above a padded row of leaves, joined, the root last; empty if the row is the root."""
    library = multi_buffer() if len(row) >= _WIDE_ROW else None
    if library is not None:
        return library.rows_above(row)
    rows = []
    while len(row) > HASH_SIZE:
        starts = range(0, len(row), 2 * HASH_SIZE)
        row = b"".join([_node_hash(row[start : start + 32], row[start + 32 : start + 64]) for start in starts])
        rows.append(row)
    return b"".join(rows)


def _node_hash(left: bytes, right: bytes) -> bytes:
    return sha256(sha256(_NODE_HEAD + left + _NODE_MIDDLE + right + _NODE_TAIL).digest()).digest()


def _subtree_root(padded: int, first_leaf: int, chunk_leaves: int) -> int:
    if chunk_leaves >= padded:
        return 0
    return padded // chunk_leaves - 1 + first_leaf // chunk_leaves


def _sibling(node: int) -> int:
    return node + 1 if node % 2 else node - 1


def _climb(
    root: bytes, leaf_count: int, first_leaf: int, chunk_leaves: int, value: bytes, nodes: Mapping[int, bytes]
) -> None:
    """Hash from a subtree's root up to the tree's root, and compare."""
    padded = padded_leaf_count(leaf_count)
    node = _subtree_root(padded, first_leaf, chunk_leaves)
    width = chunk_leaves
    while node > 0:
        sibling = _sibling(node)
        other = nodes.get(sibling)
        if other is None:
            first = (sibling - (padded // width - 1)) * width
            other = _padding_node(leaf_count, sibling, first, width)
        elif len(other) != HASH_SIZE:
            raise IntegrityError(f"node {sibling} of the hash tree has {len(other)} bytes")
        value = _node_hash(value, other) if node % 2 else _node_hash(other, value)
        node = (node - 1) // 2
        width *= 2
    if value != root:
        raise IntegrityError(f"the hashes from leaf {first_leaf} on do not chain to the root")


def _padding_node(leaf_count: int, node: int, first_leaf: int, width: int) -> bytes:
    if first_leaf < leaf_count or width > MAX_COMPUTED_PADDING:
        raise IntegrityError(f"node {node} of the hash tree is missing")
    return _top(_pad_row(b"", first_leaf, width))
