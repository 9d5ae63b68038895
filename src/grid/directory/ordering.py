"""Names in ascending order, without a call that holds the interpreter for long. Pure.

The library's sort is one call: a million names take a second of it, and so do a few thousand long ones with a long
beginning in common, during which no other thread runs. Here it is many calls.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from heapq import merge

PIECE_NAMES = 2**14
"""Names that are sorted in one call: 10 ms of random ones."""

PIECE_CHARACTERS = 2**20
"""Characters of all names that are sorted in one call, each of which is compared a dozen times at most."""


def sort_names(names: Collection[str]) -> list[str]:
    """The names in ascending order of their code points."""
    if len(names) <= PIECE_NAMES and sum(map(len, names)) <= PIECE_CHARACTERS:
        return sorted(names)
    return list(merge(*_sorted_pieces(names)))


def _sorted_pieces(names: Iterable[str]) -> Iterator[list[str]]:
    piece: list[str] = []
    characters = 0
    for name in names:
        piece.append(name)
        characters += len(name)
        if len(piece) >= PIECE_NAMES or characters >= PIECE_CHARACTERS:
            yield sorted(piece)
            piece, characters = [], 0
    if piece:
        yield sorted(piece)
