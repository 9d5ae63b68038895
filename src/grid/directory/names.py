"""Names in directories: their normal form and their order, in time proportional to their length. Pure.

It owns the limit on a name's length. Anybody who can write to a directory chooses its names, and everybody who lists the
directory normalizes and sorts them. No name may cost more than its length, and no call may block the interpreter for long.
The library's sort is one call: a million names take a second, and so do a few thousand long ones with a long
common prefix, and no other thread runs meanwhile. Here the sort is many calls. [spec directories 2]
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Collection, Iterable, Iterator
from heapq import merge
from operator import itemgetter
from typing import Any, TypeVar

from grid.errors import FormatError
from grid.limits import MAX_NAME_SIZE

MAX_DEPTH = 2000
"""Names of a path through nested directories that is followed; no local path can have more."""

MAX_RUN = 30
"""Most combining marks in a row in real text; UAX 15 (stream-safe text) allows no more."""

HIDDEN_MARKS = frozenset("\u0f73\u0f75\u0f81")
"""Characters that count as letters, but decompose into marks only."""

SHORT_NAME = 256
"""Names up to this length go straight to the library, which takes at most 10 microseconds for them."""


def normalize_name(name: str) -> str:
    """The name as directories store it; FormatError if UTF-8 cannot encode it or if it is too long."""
    if len(name) <= MAX_NAME_SIZE:
        try:
            size = len(name.encode("utf-8"))
        except UnicodeEncodeError as error:
            raise FormatError("a name in a directory must be Unicode text without lone surrogates") from error
        if size <= MAX_NAME_SIZE:
            return normalize_text(name)
    raise FormatError(f"a name in a directory may have at most {MAX_NAME_SIZE} bytes")


def parse_name(data: bytes) -> str:
    """Parse an entry's name into its normal form; FormatError."""
    if len(data) > MAX_NAME_SIZE:
        raise FormatError(f"an entry's name has {len(data)} bytes, more than {MAX_NAME_SIZE}")
    try:
        return normalize_text(data.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise FormatError("an entry's name is not UTF-8") from error


def normalize_text(text: str) -> str:
    """Normalize text to NFC.

    The library sorts combining marks by insertion, and blocks the interpreter meanwhile: 400 kB of them in the
    wrong order took 30 s. Long runs of marks are sorted here first, which does not change the result.
    """
    if text.isascii():
        return text
    if len(text) > SHORT_NAME and _has_long_run(text):
        text = order_marks(text)
    return unicodedata.normalize("NFC", text)


def order_marks(text: str) -> str:
    """The decomposed text, with its combining marks in canonical order."""
    ordered: list[str] = []
    run: list[tuple[int, str]] = []
    for character in text:
        for part in unicodedata.normalize("NFD", character):
            mark = unicodedata.combining(part)
            if mark:
                run.append((mark, part))
                continue
            _flush(run, ordered)
            ordered.append(part)
    _flush(run, ordered)
    return "".join(ordered)


def _flush(run: list[tuple[int, str]], ordered: list[str]) -> None:
    """Append the marks of one run, in canonical order, to the ordered text."""
    if run:
        run.sort(key=itemgetter(0))
        ordered.extend(part for _, part in run)
        run.clear()


def _has_long_run(text: str) -> bool:
    length = 0
    for character in text:
        length = length + 1 if unicodedata.combining(character) or character in HIDDEN_MARKS else 0
        if length > MAX_RUN:
            return True
    return False


T = TypeVar("T")

PIECE_NAMES = 2**14
"""Names sorted in one call: 10 ms for random ones."""

PIECE_CHARACTERS = 2**20
"""Characters of all names sorted in one call; each is compared at most a dozen times."""


def sort_names(names: Collection[str]) -> list[str]:
    """The names in ascending order of their code points."""
    if len(names) <= PIECE_NAMES and sum(map(len, names)) <= PIECE_CHARACTERS:
        return sorted(names)
    return list(merge(*_sorted_pieces(names)))


def sort_by(items: Collection[T], key: Callable[[T], Any], size: Callable[[T], int]) -> list[T]:
    """Sort the items by their keys. size: characters of an item's key."""
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
