"""Merkle trees: known answers, proofs, and refusal of everything that does not chain."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest

from grid.codec import merkle
from grid.codec.merkle import (
    build_tree,
    empty_leaf,
    padded_leaf_count,
    prove_leaf,
    prove_row,
    row_path,
    sibling_chain,
    tree_root,
)
from grid.crypto.hashing import tagged_hash
from grid.errors import IntegrityError
from tests.vectors.make_codec import PATH, stream

ROWS: list[dict[str, Any]] = json.loads(PATH.read_text())["merkle"]
COUNTS = (1, 2, 3, 4, 5, 7, 8, 9, 13, 16, 17, 33)


def leaf_row(count: int) -> bytes:
    return stream(f"row {count}", 32 * count)


def nodes_of(tree: bytes) -> dict[int, bytes]:
    return {number: tree[32 * number : 32 * number + 32] for number in range(len(tree) // 32)}


def flip(value: bytes, bit: int) -> bytes:
    changed = bytearray(value)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


def test_trees_when_known_are_those_of_the_specification() -> None:
    leaf = "9ed59076b6bee6b75864630c3c20cff6934efe03a60a7fd28b69542fb13a68a3"
    assert empty_leaf(3).hex() == leaf
    assert empty_leaf(0).hex() == "e0024730188e2de564a697cc2987407b24ae7eb6b880190c1a0337a5740e527a"
    inner = tree_root(bytes(32) + b"\x11" * 32).hex()
    assert inner == "d81598a52918f9b2e47c77eca7e59dc585204143926e1e3019e74f3905981c4c"
    leaves = b"".join(tagged_hash(b"leaf", b"%d" % index) for index in range(3))
    assert tree_root(leaves).hex() == "12d11e354ec4b87aab9f4651a31ec8261094b591d7087a7cbcce3e04f4a148b2"
    assert [set(sibling_chain(index, 3)) for index in range(3)] == [{2, 4}, {2, 3}, {1, 6}]
    assert (set(sibling_chain(0, 10)), set(sibling_chain(9, 10))) == ({2, 4, 8, 16}, {1, 6, 12, 23})
    assert sibling_chain(0, 1) == []


@pytest.mark.parametrize("row", ROWS, ids=lambda row: str(len(row["leaves"])))
def test_trees_when_built_are_those_of_the_vectors(row: dict[str, Any]) -> None:
    leaves = bytes.fromhex("".join(row["leaves"]))
    for form in (leaves, memoryview(leaves), bytearray(leaves)):
        tree = build_tree(form)
        assert len(tree) == 32 * (2 * padded_leaf_count(len(row["leaves"])) - 1)
        assert hashlib.sha256(tree).hexdigest() == row["tree_sha256"]
        assert tree[:32] == tree_root(form) == bytes.fromhex(row["root"])


def test_padded_leaf_count_when_asked_is_the_power_of_two_above() -> None:
    assert [padded_leaf_count(count) for count in (0, 1, 2, 3, 4, 5, 1024, 1025)] == [1, 1, 2, 4, 4, 8, 1024, 2048]


def test_build_when_the_row_is_not_whole_leaves_refuses() -> None:
    for size in (1, 31, 33):
        with pytest.raises(ValueError, match="row of leaves"):
            build_tree(bytes(size))
        with pytest.raises(ValueError, match="row of leaves"):
            tree_root(bytes(size))


@pytest.mark.parametrize("count", COUNTS)
def test_prove_leaf_when_all_is_right_returns_and_when_anything_differs_raises(count: int) -> None:
    leaves = leaf_row(count)
    tree = nodes_of(build_tree(leaves))
    root, first = tree[0], padded_leaf_count(count) - 1
    for index in range(count):
        leaf = leaves[32 * index : 32 * index + 32]
        path = {number: tree[number] for number in sibling_chain(index, count)}
        prove_leaf(root, count, index, leaf, path)
        prove_leaf(root, count, index, leaf, {**tree, first + index: bytes(32), 0: b""} if count > 1 else {})
        bad_cases: list[tuple[bytes, int, bytes, dict[int, bytes]]] = [
            (flip(root, 7), index, leaf, path),
            (root, index, flip(leaf, 255), path),
            (root, index, leaf[:-1], path),
            (root, index, leaf + b"\x00", path),
        ]
        bad_cases += [(root, index, leaf, {**path, number: flip(path[number], 100)}) for number in path]
        bad_cases += [(root, index, leaf, {**path, number: path[number][:31]}) for number in path]
        bad_cases += [(root, other, leaf, tree) for other in range(count) if other != index]
        for bad_root, bad_index, bad_leaf, bad_path in bad_cases:
            with pytest.raises(IntegrityError):
                prove_leaf(bad_root, count, bad_index, bad_leaf, bad_path)


@pytest.mark.parametrize("count", COUNTS)
def test_prove_leaf_when_a_node_is_absent_raises_unless_it_is_padding(count: int) -> None:
    leaves = leaf_row(count)
    tree = nodes_of(build_tree(leaves))
    padded = padded_leaf_count(count)
    for index in range(count):
        leaf = leaves[32 * index : 32 * index + 32]
        path = {number: tree[number] for number in sibling_chain(index, count)}
        for absent in path:
            first, width = absent, 1
            while first < padded - 1:
                first, width = 2 * first + 1, 2 * width
            some = {number: value for number, value in path.items() if number != absent}
            if first - (padded - 1) >= count:
                prove_leaf(tree[0], count, index, leaf, some)
            else:
                with pytest.raises(IntegrityError, match="missing"):
                    prove_leaf(tree[0], count, index, leaf, some)


def test_prove_leaf_when_there_is_no_such_leaf_raises() -> None:
    tree = nodes_of(build_tree(leaf_row(3)))
    for index in (-1, 3, 4, 10**9):
        with pytest.raises(IntegrityError):
            prove_leaf(tree[0], 3, index, empty_leaf(3), tree)


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("chunk", [1, 2, 4, 8, 64])
def test_prove_row_when_all_is_right_returns_and_when_anything_differs_raises(count: int, chunk: int) -> None:
    leaves = leaf_row(count)
    tree = nodes_of(build_tree(leaves))
    root = tree[0]
    for first in range(0, count, chunk):
        row = leaves[32 * first : 32 * (first + chunk)]
        needed = row_path(count, first, min(chunk, padded_leaf_count(count)))
        assert needed == row_path(count, first, chunk)
        path = {number: tree[number] for number in needed}
        for form in (row, memoryview(row), bytearray(row)):
            prove_row(root, count, first, form, path)
        for position in range(0, len(row), 32):
            with pytest.raises(IntegrityError):
                prove_row(root, count, first, flip(row, 8 * position + 3), path)
        for number, value in path.items():
            with pytest.raises(IntegrityError):
                prove_row(root, count, first, row, {**path, number: flip(value, 0)})
        for bad_row in (b"", row[:-1], row[:-32], row + bytes(32), row + b"\x00", row[::-1]):
            with pytest.raises(IntegrityError):
                prove_row(root, count, first, bad_row, path)
        for other in (-chunk, -1, first + 1, count, 10**9):
            with pytest.raises(IntegrityError):
                prove_row(root, count, other, row, tree)


def test_prove_row_when_the_path_above_is_absent_raises() -> None:
    leaves = leaf_row(8)
    with pytest.raises(IntegrityError, match="missing"):
        prove_row(tree_root(leaves), 8, 0, leaves[:64], {})
    prove_row(tree_root(leaves), 8, 0, leaves, {})


def test_prove_row_when_absent_padding_would_be_endless_raises_instead() -> None:
    # The upper half of these leaves is padding; a short answer must not make us hash all of it.
    count = merkle.MAX_COMPUTED_PADDING * 4
    with pytest.raises(IntegrityError, match="missing"):
        prove_leaf(bytes(32), count + 1, count, bytes(32), {})


def test_row_path_when_there_is_no_such_row_refuses() -> None:
    for count, first, chunk in ((4, 4, 1), (4, -1, 1), (4, 1, 2), (4, 0, 3), (4, 0, 0), (4, 0, -2)):
        with pytest.raises(ValueError, match=r"leaf|leaves"):
            row_path(count, first, chunk)
