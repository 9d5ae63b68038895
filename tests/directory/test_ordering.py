"""Sorting names in pieces gives what sorting them at once gives."""

from __future__ import annotations

import random
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from grid.directory import ordering
from grid.directory.ordering import sort_names


@given(st.sets(st.text(max_size=4), max_size=60))
def test_names_when_sorted_are_in_the_order_of_their_code_points(names: set[str]) -> None:
    assert sort_names(names) == sorted(names)


def test_names_when_there_are_many_or_long_ones_are_sorted_in_pieces() -> None:
    many = [str(number) for number in range(3 * ordering.PIECE_NAMES)]
    random.Random(1).shuffle(many)
    long = ["x" * 50_000 + str(number) for number in range(100, 40, -1)]
    for names in (many, long):
        found = sort_names(names)
        assert set(found) == set(names) and all(before < after for before, after in pairwise(found))
        pieces = list(ordering._sorted_pieces(names))
        assert len(pieces) > 2
        assert all(len(piece) <= ordering.PIECE_NAMES for piece in pieces)
        assert all(sum(map(len, piece[:-1])) < ordering.PIECE_CHARACTERS for piece in pieces)
