"""Consecutive leaves of a hash tree that change together: what stands beside them, and what they change. Pure.

Nodes are numbered as in codec.merkle: the root is 0, leaf i of P padded ones is node P - 1 + i.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from grid.crypto.hashing import tagged_pair_hash

_NODE_TAG = b"Merkle tree internal node"


def nodes_beside(padded: int, first: int, stop: int) -> list[int]:
    """The numbers of the nodes that are needed, besides leaves first .. stop, to compute the root."""
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
    """Every node that depends on these leaves, by its number, the leaves and the root among them.

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
