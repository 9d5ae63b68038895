"""Leaves that change together: the same roots as those of whole trees, from few nodes."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from grid.codec.merkle import build_tree, padded_leaf_count
from grid.engine.batches import split_range
from grid.mutable.share.hash_rows import climb, merge_ranges, nodes_beside


@given(count=st.integers(1, 70), places=st.tuples(st.integers(0, 69), st.integers(1, 70)))
def test_climb_when_some_leaves_change_then_gives_the_nodes_of_the_new_tree(
    count: int, places: tuple[int, int]
) -> None:
    first = places[0] % count
    stop = min(count, first + places[1])
    old = [bytes([index]) * 32 for index in range(count)]
    new = old[:first] + [bytes([255 - index]) * 32 for index in range(first, stop)] + old[stop:]
    padded = padded_leaf_count(count)
    before, after = (cut(build_tree(b"".join(leaves))) for leaves in (old, new))
    beside = {node: before[node] for node in nodes_beside(padded, first, stop)}
    assert len(beside) <= 2 * padded.bit_length()
    made = climb(padded, first, new[first:stop], beside)
    changed = {node for node, value in enumerate(after) if value != before[node]}
    assert changed <= made.keys()
    assert all(after[node] == value for node, value in made.items())


def cut(tree: bytes) -> list[bytes]:
    return [tree[start : start + 32] for start in range(0, len(tree), 32)]


@given(st.lists(st.tuples(st.integers(0, 5000), st.integers(1, 200)), max_size=20))
def test_ranges_when_merged_then_hold_all_and_stay_apart(ranges: list[tuple[int, int]]) -> None:
    merged = merge_ranges(ranges, gap=100)
    for offset, size in ranges:
        assert any(start <= offset and offset + size <= start + length for start, length in merged)
    for (start, length), (following, _) in pairwise(merged):
        assert following > start + length + 100


@given(st.integers(0, 1000), st.integers(0, 1000), st.integers(1, 300))
def test_range_when_split_then_its_parts_are_it(offset: int, length: int, size: int) -> None:
    parts = split_range((offset, length), size)
    assert parts[0][0] == offset and sum(part for _, part in parts) == length
    assert all(part <= size for _, part in parts)
    assert all(a + b == c for (a, b), (c, _) in pairwise(parts))
