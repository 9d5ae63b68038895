"""Names in ascending order, without a call that holds the interpreter for long. Pure.

The library's sort is one call: a million names take a second of it, and so do a few thousand long ones with a long
beginning in common, during which no other thread runs. Here it is many calls.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from heapq import merge
from typing import Any, TypeVar

T = TypeVar("T")

PIECE_NAMES = 2**14
"""Names that are sorted in one call: 10 ms of random ones."""

PIECE_CHARACTERS = 2**20
"""Characters of all names that are sorted in one call, each of which is compared a dozen times at most."""


def sort_names(names: Collection[str]) -> list[str]:
    """The names in ascending order of their code points."""
    if len(names) <= PIECE_NAMES and sum(map(len, names)) <= PIECE_CHARACTERS:
        return sorted(names)
    return list(merge(*_sorted_pieces(names)))


def sort_by(items: Collection[T], key: Callable[[T], Any], size: Callable[[T], int]) -> list[T]:
    """The items in ascending order of their keys. size: characters of an item's key, which are compared."""
    return list(merge(*(sorted(piece, key=key) for piece in _pieces(items, size)), key=key))


def _sorted_pieces(names: Iterable[str]) -> Iterator[list[str]]:
    return map(sorted, _pieces(names, len))


def _pieces(items: Iterable[T], size: Callable[[T], int]) -> Iterator[list[T]]:
    piece: list[T] = []
    characters = 0
    for item in items:
        piece.append(item)
        characters += size(item)
        if len(piece) >= PIECE_NAMES or characters >= PIECE_CHARACTERS:
            yield piece
            piece, characters = [], 0
    if piece:
        yield piece
