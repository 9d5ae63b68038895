"""The journal of a transfer: one row per file in a private SQLite database.

It owns what survives a kill: which files are done, which are stored but not yet in place, which parts of large files
have been sent, and their sources' facts at that time. Rows contain capabilities and keys, so the file has mode 0600.
Only one process at a time uses a journal.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from grid.errors import BusyError, ConfigError
from grid.node.files import make_private_directory, make_private_file, state_directory
from grid.transfer.digest import KIND, DigestKey
from grid.transfer.ends import Entry, KeptPart, KeptParts, NoParts
from grid.transfer.listings import Listings
from grid.transfer.records import (
    BLOB,
    CHANGED,
    INT,
    MAYBE_INT,
    MAYBE_TEXT,
    TEXT,
    JournalError,
    JournalFullError,
    Kinds,
    among,
    is_full,
    is_written,
    key_of,
    kinds_of,
    name_of,
    not_opened,
    number_of,
    text_of,
    version_of,
    what_helps,
)
from grid.values import field, frozen

STORED = "stored"
"""The target has the contents; the file is not in place yet."""
UNVERIFIED = "unverified"
"""The file is in place; it was to be read back, and has not been yet."""
DONE = "done"
UNSENT = "unsent"
"""It could not be sent."""
FAILED = "failed"
"""It was sent, and found to be wrong at the target. Earlier versions also noted so what could not be sent."""

_LAYOUT = """
CREATE TABLE IF NOT EXISTS files (
    source TEXT NOT NULL, name BLOB NOT NULL, size INTEGER, mtime_ns INTEGER, tag TEXT NOT NULL,
    state TEXT NOT NULL, token TEXT NOT NULL, digest TEXT NOT NULL, error TEXT NOT NULL, mode INTEGER,
    PRIMARY KEY (source, name)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS seen (
    source TEXT NOT NULL, name BLOB NOT NULL, mtime_ns INTEGER, tag TEXT NOT NULL, PRIMARY KEY (source, name)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS states ON files (state);
CREATE TABLE IF NOT EXISTS parts (
    source TEXT NOT NULL, name BLOB NOT NULL, facts TEXT NOT NULL, offset INTEGER NOT NULL, length INTEGER NOT NULL,
    token TEXT NOT NULL, digest BLOB NOT NULL, PRIMARY KEY (source, name, offset)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS secret (value BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS under_way (name BLOB PRIMARY KEY, size INTEGER, began_at REAL) WITHOUT ROWID;
"""
_BEGINNING = """
DELETE FROM under_way;
INSERT INTO secret SELECT randomblob(16) WHERE NOT EXISTS (SELECT * FROM secret);
"""
_COLUMNS_OF = "SELECT name, pk FROM pragma_table_info(?)"
_NOTE_SEEN = "INSERT OR REPLACE INTO seen VALUES (?, ?, ?, ?)"
_COLUMNS = (
    "size, files.mtime_ns, files.tag, mode, state, token, digest, error, seen.mtime_ns, seen.tag"
    " FROM files LEFT JOIN seen USING (source, name)"
)
_FOUND = (MAYBE_INT, MAYBE_INT, TEXT, MAYBE_INT, TEXT, TEXT, TEXT, TEXT, MAYBE_INT, MAYBE_TEXT)
_ROW, _NAMED_ROW = kinds_of(*_FOUND), kinds_of(BLOB, *_FOUND)
_PART, _DONE = kinds_of(INT, INT, TEXT, BLOB), kinds_of(BLOB, MAYBE_INT, MAYBE_INT, TEXT, MAYBE_INT)
_ONE_TEXT, _ONE_NAME, _ONE_INT = kinds_of(TEXT), kinds_of(BLOB), kinds_of(INT)


@frozen(kw_only=True)
class Row:
    """What is recorded of a file. digest: of its contents, for `--verify`.

    there: of a done file, its time and tag at the target, as far as they are known; None if nobody has noted them.
    """

    source: str
    entry: Entry
    state: str
    token: str = field(default="", repr=False)
    digest: str = ""
    error: str = ""
    there: tuple[int | None, str] | None = None


def journal_path(sources: Sequence[str], target: str) -> Path:
    """The path of the journal for these ends, by their identities; its name reveals none of them."""
    key = hashlib.sha256("\0".join([*sources, target]).encode("utf-8", "surrogateescape")).hexdigest()[:32]
    return state_directory() / "transfers" / f"{key}.sqlite"


class Journal:
    """An open journal. Each change is on disk, for any later process, when the call returns.

    listings: what this process has listed.
    """

    def __init__(self, path: Path, step: Callable[[], None] = lambda: None) -> None:
        """step: called before and after each change is on disk.

        BusyError if another process uses it; ConfigError or NoSpaceError if it cannot be opened.
        """
        self._path, self._step = path, step
        try:
            make_private_directory(path.parent)
            self._lock = os.open(path.with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise not_opened(path.parent, error) from None
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self._lock)
            raise BusyError("the same transfer is under way in another process") from None
        try:
            make_private_file(path)
            self._rows = sqlite3.connect(path, isolation_level=None)
            self._rows.execute("PRAGMA journal_mode = WAL")
            # A kill leaves it intact; after a power failure, the last files may be sent again.
            self._rows.execute("PRAGMA synchronous = NORMAL")
            _require_layout(path, self._rows)
            self._rows.executescript(_LAYOUT + _BEGINNING)
            self._secret = self._rows.execute("SELECT value FROM secret").fetchone()[0]
            if not isinstance(self._secret, bytes):
                raise ConfigError(f"{path}: {CHANGED}")
            self._begun = set(self._rows.execute("SELECT DISTINCT source, name FROM parts"))
            self.listings = Listings()
        except (OSError, sqlite3.Error, ConfigError, JournalError) as error:
            os.close(self._lock)
            raise not_opened(path, error) from None

    def find(self, source: str, name: str) -> Row | None:
        """What is recorded of a source's file. JournalError."""
        found = self._one(
            f"SELECT {_COLUMNS} WHERE source = ? AND name = ?",
            (text_of(source), key_of(name)),
            _ROW,
        )
        return None if found is None else _row(source, name, found)

    def find_all(self, source: str, names: Sequence[str]) -> Mapping[str, Row]:
        """The same for many files, by name. JournalError."""
        statement = f"SELECT name, {_COLUMNS} WHERE source = ? AND name IN (?)"
        statement, keys = among(statement, [key_of(name) for name in names])
        found = list(self._all(statement, [text_of(source), *keys], _NAMED_ROW))
        return {name: _row(source, name, values) for name, values in _by_name(names, found)}

    def note(self, rows: Sequence[Row]) -> None:
        """Insert or replace rows, all or none. JournalError."""
        values = [
            (
                text_of(row.source), key_of(row.entry.name), number_of(row.entry.size), number_of(row.entry.mtime_ns),
                text_of(row.entry.tag), row.state, row.token, row.digest, text_of(row.error), row.entry.mode,
            )
            for row in rows
        ]  # fmt: skip
        seen = [_seen(row.source, row.entry.name, row.there) for row in rows if row.there is not None]
        self._step()
        self._change(("INSERT OR REPLACE INTO files VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", values), (_NOTE_SEEN, seen))
        self._step()

    def note_seen(self, source: str, entries: Sequence[Entry]) -> None:
        """Record the times and tags that the target gives for a source's done files. JournalError."""
        self._many(_NOTE_SEEN, [_seen(source, entry.name, (entry.mtime_ns, entry.tag)) for entry in entries])

    def parts_of(self, source: str, entry: Entry) -> KeptParts:
        """The parts of the file in its current version; records nothing for a file whose changes could go unnoticed."""
        return NoParts() if entry.mtime_ns is None and not entry.tag else _Parts(self, source, entry)

    def has_parts(self, source: str, name: str) -> bool:
        """Whether there are parts of the file, in any version. Asks no disk."""
        return bool(self._begun) and (text_of(source), key_of(name)) in self._begun

    def load_parts(self, source: str, entry: Entry) -> list[KeptPart]:
        """Load the file's parts and drop those of other versions. JournalError."""
        key = (text_of(source), key_of(entry.name), version_of(entry))
        self._many("DELETE FROM parts WHERE source = ? AND name = ? AND facts != ?", [key])
        found = self._all(
            "SELECT offset, length, token, digest FROM parts WHERE source = ? AND name = ? ORDER BY offset",
            key[:2],
            _PART,
        )
        parts = [
            KeptPart(offset=offset, length=length, token=token, digest=digest)
            for offset, length, token, digest in found
        ]
        if any(part.offset < 0 or part.length < 0 for part in parts):
            raise self._changed_by_others()
        return parts

    def outdated_tokens(self, source: str, entry: Entry) -> list[str]:
        """The tokens of parts of other versions of the file. JournalError."""
        key = (text_of(source), key_of(entry.name), version_of(entry))
        found = self._all(
            "SELECT DISTINCT token FROM parts WHERE source = ? AND name = ? AND facts != ?", key, _ONE_TEXT
        )
        return [row[0] for row in found]

    def note_part(self, source: str, entry: Entry, part: KeptPart) -> None:
        """Record a part. JournalError."""
        version = version_of(entry)
        value = (text_of(source), key_of(entry.name), version, part.offset, part.length, part.token, part.digest)
        self._step()
        self._many("INSERT OR REPLACE INTO parts VALUES (?, ?, ?, ?, ?, ?, ?)", [value])
        self._begun.add(value[:2])
        self._step()

    def forget_parts(self, source: str, entry: Entry) -> None:
        """Drop the parts of a file. JournalError."""
        key = text_of(source), key_of(entry.name)
        self._many("DELETE FROM parts WHERE source = ? AND name = ?", [key])
        self._begun.discard(key)

    def forget_unwanted_parts(self) -> None:
        """Drop the parts of files that no source has any more. JournalError."""
        keys = [row[0] for row in self._all("SELECT DISTINCT name FROM parts", (), _ONE_NAME)]
        found = [(key,) for key in keys if not self.listings.has(name_of(key))]
        self._many("DELETE FROM parts WHERE name = ?", found)

    def scratch_name(self, source: str, name: str) -> str:
        """A name for a file's incomplete contents at the target, which nobody can guess. JournalError."""
        digest = hashlib.sha256(b"\0".join([self._secret, text_of(source).encode(), key_of(name)])).hexdigest()
        return self.mark + digest[:24]

    @property
    def digest_key(self) -> DigestKey:
        """The key of the digests that it records."""
        return DigestKey(hashlib.sha256(b"digests" + self._secret).digest())

    @property
    def mark(self) -> str:
        """What its scratch names begin with, and those of no other journal."""
        return hashlib.sha256(b"mark" + self._secret).hexdigest()[:8]

    def part_tokens(self) -> set[str]:
        """The tokens of all parts of all files. JournalError."""
        return {row[0] for row in self._all("SELECT DISTINCT token FROM parts", (), _ONE_TEXT)}

    def note_under_way(self, entry: Entry, began_at: float) -> None:
        """Record that a file is being sent, for status queries. began_at: Unix time. JournalError."""
        self._many(
            "INSERT OR REPLACE INTO under_way VALUES (?, ?, ?)", [(key_of(entry.name), number_of(entry.size), began_at)]
        )

    def note_left(self, entry: Entry) -> None:
        """Record that a file is no longer being sent. JournalError."""
        self._many("DELETE FROM under_way WHERE name = ?", [(key_of(entry.name),)])

    def done_after(self, source: str, name: str, count: int) -> list[Entry]:
        """At most `count` done files of a source, sorted by name, starting after `name`. JournalError."""
        found = self._all(
            "SELECT name, size, mtime_ns, tag, mode FROM files WHERE source = ? AND state = ? AND name > ?"
            " ORDER BY name LIMIT ?",
            (text_of(source), DONE, key_of(name), count),
            _DONE,
        )
        return [
            Entry(name=name_of(key), size=size, mtime_ns=mtime, tag=tag, mode=mode)
            for key, size, mtime, tag, mode in found
        ]

    def count(self, state: str) -> int:
        """The number of files in a state."""
        found = self._one("SELECT COUNT(*) FROM files WHERE state = ?", (state,), _ONE_INT)
        return 0 if found is None else int(found[0])

    def close(self) -> None:
        """Close the file."""
        self.listings.close()
        self._rows.close()
        os.close(self._lock)

    def _many(self, statement: str, values: Sequence[tuple[object, ...]]) -> None:
        if values:
            self._change((statement, values))

    def _change(self, *changes: tuple[str, Sequence[tuple[object, ...]]]) -> None:
        """Execute statements, each for all its values, in one transaction."""
        with self._as_journal_error():
            self._rows.execute("BEGIN")
            try:
                for statement, values in changes:
                    self._rows.executemany(statement, values)
                self._rows.execute("COMMIT")
            except BaseException:
                if self._rows.in_transaction:  # A full disk may have ended the transaction already.
                    self._rows.execute("ROLLBACK")
                raise

    def _one(self, statement: str, values: Sequence[object], kinds: Kinds) -> tuple[Any, ...] | None:
        return next(self._all(statement, values, kinds), None)

    def _all(self, statement: str, values: Sequence[object], kinds: Kinds) -> Iterator[tuple[Any, ...]]:
        """The rows that a query finds. JournalError, also if one is not of these kinds."""
        with self._as_journal_error():
            for row in self._rows.execute(statement, values):
                if not is_written(row, kinds):
                    raise self._changed_by_others()
                yield row

    def _changed_by_others(self) -> JournalError:
        return JournalError(f"{self._path}: the journal of the transfer cannot be used: {CHANGED}")

    @contextmanager
    def _as_journal_error(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OverflowError) as error:
            kind = JournalFullError if is_full(error) else JournalError
            raise kind(f"{self._path}: the journal of the transfer cannot be used: {what_helps(error)}") from None


def _require_layout(path: Path, rows: sqlite3.Connection) -> None:
    """Raise ConfigError if a table has other columns than this version gives it."""
    with closing(sqlite3.connect(":memory:")) as wanted:
        wanted.executescript(_LAYOUT)
        for (table,) in wanted.execute("SELECT name FROM sqlite_master WHERE type = 'table'"):
            found = rows.execute(_COLUMNS_OF, (table,)).fetchall()
            if found and found != wanted.execute(_COLUMNS_OF, (table,)).fetchall():
                raise ConfigError(f"{path}: another version of Grid made it; remove it to start over")


class _Parts:
    """The parts of one file."""

    def __init__(self, journal: Journal, source: str, entry: Entry) -> None:
        self._journal, self._source, self._entry = journal, source, entry

    def load(self) -> Sequence[KeptPart]:
        """The parts of earlier attempts."""
        return self._journal.load_parts(self._source, self._entry)

    def outdated(self) -> Sequence[str]:
        """The tokens of other versions."""
        return self._journal.outdated_tokens(self._source, self._entry)

    def keep(self, part: KeptPart) -> None:
        """Record a part."""
        self._journal.note_part(self._source, self._entry, part)

    def forget(self) -> None:
        """Drop all parts."""
        self._journal.forget_parts(self._source, self._entry)


def _by_name(names: Sequence[str], found: Sequence[tuple[Any, ...]]) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """Pairs of a name and what was found under it, which begins with its key."""
    by_key = {row[0]: row[1:] for row in found}
    for name in names if by_key else ():
        values = by_key.get(key_of(name))
        if values is not None:
            yield name, values


def _row(source: str, name: str, found: tuple[Any, ...]) -> Row:
    size, mtime_ns, tag, mode, state, token, digest, error, seen_ns, seen_tag = found
    entry = Entry(name=name, size=size, mtime_ns=mtime_ns, tag=tag, mode=mode)
    there = None if seen_tag is None else (seen_ns, seen_tag)
    if digest and not digest.startswith(KIND):  # Of an earlier version. What it did not verify is sent again.
        state, digest = FAILED if state in (STORED, UNVERIFIED) else state, ""
    return Row(source=source, entry=entry, state=state, token=token, digest=digest, error=error, there=there)


def _seen(source: str, name: str, there: tuple[int | None, str]) -> tuple[object, ...]:
    mtime_ns, tag = there
    return text_of(source), key_of(name), number_of(mtime_ns), text_of(tag)
