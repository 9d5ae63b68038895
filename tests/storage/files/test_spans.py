"""Spans against a set of integers."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from grid.storage.files.incoming import Spans

pairs = st.tuples(st.integers(0, 60), st.integers(0, 60)).map(lambda pair: (min(pair), max(pair)))


@given(st.lists(pairs), pairs)
def test_spans_when_added_in_any_order_are_the_union(added: list[tuple[int, int]], asked: tuple[int, int]) -> None:
    spans, model = Spans(), set[int]()
    for begin, end in added:
        spans.add(begin, end)
        model.update(range(begin, end))
    held = list(spans)
    assert {byte for begin, end in held for byte in range(begin, end)} == model
    assert all(first[1] < second[0] for first, second in pairwise(held))
    assert all(begin < end for begin, end in held)
    assert len(spans) == len(held)
    overlap = {byte for begin, end in spans.overlap(*asked) for byte in range(begin, end)}
    assert overlap == model & set(range(*asked))
    missing = {byte for begin, end in spans.missing(60) for byte in range(begin, end)}
    assert missing == set(range(60)) - model
