"""What the two databases of a transfer share: how they hold names and numbers, and the errors if they cannot. Pure.

A name is stored as bytes, because names of files need not be texts; a text or a number that SQLite could not keep is
changed to one that it can.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence, Set
from itertools import product
from pathlib import Path

from grid.errors import DISK_FULL, ConfigError, GridError, NoSpaceError
from grid.transfer.digest import KIND
from grid.transfer.ends import EndError, Entry


class JournalError(EndError):
    """The journal cannot be used, so the next run would not know what this one sent."""


class JournalFullError(JournalError, NoSpaceError):
    """The disk with the journal is full."""


CHANGED = "it was changed by other means, or is damaged; remove it to start over"
"""What to do if a row has values that are never written."""

INT, TEXT, BLOB = (int,), (str,), (bytes,)
MAYBE_INT, MAYBE_TEXT = (int, type(None)), (str, type(None))

Kinds = Set[tuple[type, ...]]
"""The types that the values of a row may have: SQLite stores any type in any column."""


def kinds_of(*columns: Sequence[type]) -> Kinds:
    """The kinds of rows with these columns."""
    return frozenset(product(*columns))


def is_written(row: Sequence[object], kinds: Kinds) -> bool:
    """Whether a row has the types that are written."""
    return tuple(map(type, row)) in kinds


def is_full(error: Exception) -> bool:
    """Whether an error means that a disk is full."""
    if isinstance(error, OSError):
        return error.errno in DISK_FULL
    return getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_FULL


def among(statement: str, values: Sequence[object]) -> tuple[str, Sequence[object]]:
    """The statement with room for all values, instead of one, and the values that fill it; the last may be repeated.

    Connections keep the statements that they have prepared, some kilobytes each, so there are few different ones.
    """
    if not values:
        return statement.replace("(?)", "()"), values
    count = 1 << (len(values) - 1).bit_length()
    filled = [*values, *[values[-1]] * (count - len(values))]
    return statement.replace("(?)", f"({','.join('?' * count)})"), filled


def key_of(name: str) -> bytes:
    """A name as bytes, which SQLite stores unchanged."""
    if name.isascii():
        return name.encode()
    return name.encode("utf-8", "surrogatepass" if _is_odd(name) else "surrogateescape")


def name_of(key: bytes) -> str:
    """Decode a name stored as bytes."""
    return key.decode("utf-8", "surrogateescape")


def text_of(text: str) -> str:
    """A text that SQLite keeps: in names of folders, and in errors that tell of them, there may be bytes that are none."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()


def number_of(number: int | None) -> int | None:
    """A number that SQLite keeps; None for others, such as nanoseconds from the year 2262 on."""
    return number if number is not None and -(2**63) <= number < 2**63 else None


def _is_odd(name: str) -> bool:
    """Whether a name contains surrogates that stand for no byte of a file name."""
    return any("\ud800" <= letter <= "\udfff" and not "\udc80" <= letter <= "\udcff" for letter in name)


def version_of(entry: Entry) -> str:
    """What parts of a file belong to: its version, and how their digests are made."""
    return f"{KIND}{entry.facts!r}"


def not_opened(path: Path, error: Exception) -> GridError:
    """The error of a journal that cannot be opened."""
    if isinstance(error, ConfigError | JournalError):
        return error
    kind = NoSpaceError if is_full(error) else ConfigError
    return kind(f"{path}: {what_helps(error)}")


def what_helps(error: Exception) -> str:
    """What is wrong; only a file that is damaged is better removed, for it says what need not be sent again."""
    if is_full(error):
        return "its disk is full; make room there"
    if isinstance(error, OSError):
        return str(error.strerror)
    is_damaged = isinstance(error, sqlite3.DatabaseError) and not isinstance(error, sqlite3.OperationalError)
    return f"{error}; remove it to start over" if is_damaged else str(error)
