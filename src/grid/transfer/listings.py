"""What a process has listed at both ends of a transfer: what the target has, and what the sources have.

It owns which names the target takes for one. However many files there are, they lie in a temporary file, which has no
name and ends with the process. It has names, sizes and times, but no contents and no secrets.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from grid.transfer.ends import Entry
from grid.transfer.records import JournalError, JournalFullError, among, is_full, key_of, name_of, number_of, text_of

_LAYOUT = """
CREATE TABLE there (place BLOB PRIMARY KEY, name BLOB, size INTEGER, mtime_ns INTEGER, tag TEXT) WITHOUT ROWID;
CREATE TABLE wanted (place BLOB PRIMARY KEY, name BLOB, source TEXT) WITHOUT ROWID;
BEGIN;
"""
"""One transaction that never ends, since nothing of it is to survive. place: what the target tells files apart by. name:
NULL if it is the same.
"""


class Listings:
    """The listings of one process."""

    def __init__(self) -> None:
        """JournalError if there is no room for temporary files."""
        self._place_of: Callable[[str], str] = str
        with _as_journal_error():
            self._rows = sqlite3.connect("", isolation_level=None)
            self._rows.executescript(_LAYOUT)

    def tell_apart_by(self, place_of: Callable[[str], str]) -> None:
        """Take files for one if this returns the same for their names. Call it before anything is noted."""
        self._place_of = place_of

    def note_there(self, entries: Sequence[Entry]) -> None:
        """Record files of the target. JournalError."""
        names = [entry.name for entry in entries]
        values = [
            (place, name, number_of(entry.size), number_of(entry.mtime_ns), text_of(entry.tag))
            for entry, (place, name) in zip(entries, self._placed(names), strict=True)
        ]
        with _as_journal_error():
            self._rows.executemany("INSERT OR REPLACE INTO there VALUES (?, ?, ?, ?, ?)", values)

    def there(self, names: Sequence[str]) -> Mapping[str, Entry]:
        """The target's files of these names, by name. JournalError."""
        places = [place for place, _ in self._placed(names)]
        question = among("SELECT place, size, mtime_ns, tag FROM there WHERE place IN (?)", places)
        with _as_journal_error():
            found = {place: facts for place, *facts in self._rows.execute(*question)}
        if not found:
            return {}
        return {
            name: Entry(name=name, size=facts[0], mtime_ns=facts[1], tag=facts[2])
            for name, place in zip(names, places, strict=True)
            if (facts := found.get(place)) is not None
        }

    def want(self, names: Sequence[str], source: str) -> Mapping[str, tuple[str, str]]:
        """Record that a source has files of these names.

        Returns those, by name, that the target cannot tell from another file, and that file's name and source.
        JournalError.
        """
        text, placed = text_of(source), self._placed(names)
        with _as_journal_error():
            new = self._rows.executemany(
                "INSERT OR IGNORE INTO wanted VALUES (?, ?, ?)", [(place, name, text) for place, name in placed]
            ).rowcount
            if new == len(placed):
                return {}
            places = [place for place, _ in placed]
            question = among("SELECT place, name, source FROM wanted WHERE place IN (?)", places)
            found = self._rows.execute(*question).fetchall()
        first = {place: (name, str(holder)) for place, name, holder in found}
        return {
            each: (name_of(first[place][0] or place), first[place][1])
            for each, (place, name) in zip(names, placed, strict=True)
            if first[place] != (name, text)
        }

    def has(self, name: str) -> bool:
        """Whether a source has a file of this name. JournalError."""
        ((place, _),) = self._placed([name])
        with _as_journal_error():
            return self._rows.execute("SELECT 1 FROM wanted WHERE place = ?", (place,)).fetchone() is not None

    def unwanted(self) -> Iterator[str]:
        """Yield names that the target had and no source has. Nothing may be noted meanwhile. JournalError."""
        with _as_journal_error():
            for place, name in self._rows.execute(
                "SELECT place, name FROM there WHERE place NOT IN (SELECT place FROM wanted)"
            ):
                yield name_of(name or place)

    def close(self) -> None:
        """Forget everything."""
        self._rows.close()

    def _placed(self, names: Sequence[str]) -> list[tuple[bytes, bytes | None]]:
        """The place of each name, and the name unless it is the same."""
        placed: list[tuple[bytes, bytes | None]] = []
        for name in names:
            place, key = key_of(self._place_of(name)), key_of(name)
            placed.append((place, None if key == place else key))
        return placed


@contextmanager
def _as_journal_error() -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        if is_full(error):
            raise JournalFullError(
                "the disk for temporary files is full; make room there, or set TMPDIR to a directory elsewhere"
            ) from None
        raise JournalError(f"listings cannot be kept in temporary files: {error}") from None
