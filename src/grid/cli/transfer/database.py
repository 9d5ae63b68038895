"""The local database: 1.20's tables, and ours beside them. Pure. [spec cli 3.4]"""

from __future__ import annotations

import errno
import sqlite3
import time
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

from grid.cli.transfer.tree import FileFacts
from grid.codec.base32 import encode
from grid.codec.netstring import pack_netstring
from grid.errors import DISK_FULL, ConfigError
from grid.node.files import make_private_file
from grid.node.redaction import one_line
from grid.values import define, field, frozen

VERSION = 2

LAYOUT = (
    "CREATE TABLE IF NOT EXISTS version (version INTEGER)",
    (
        "CREATE TABLE IF NOT EXISTS local_files (path VARCHAR(1024) PRIMARY KEY, size INTEGER, mtime NUMBER, ctime NUMBER,"
        " fileid INTEGER)"
    ),
    "CREATE TABLE IF NOT EXISTS caps (fileid INTEGER PRIMARY KEY AUTOINCREMENT, filecap VARCHAR(256) UNIQUE)",
    (
        "CREATE TABLE IF NOT EXISTS last_upload (fileid INTEGER PRIMARY KEY, last_uploaded TIMESTAMP,"
        " last_checked TIMESTAMP)"
    ),
    (
        "CREATE TABLE IF NOT EXISTS directories (dirhash VARCHAR(256) PRIMARY KEY, dircap VARCHAR(256),"
        " last_uploaded TIMESTAMP, last_checked TIMESTAMP)"
    ),
)
"""1.20's tables, at version 2."""

OWN_LAYOUT = (
    "CREATE TABLE IF NOT EXISTS grid_files (path TEXT PRIMARY KEY, mtime_ns INTEGER, ctime_ns INTEGER, seal BLOB)",
    "CREATE TABLE IF NOT EXISTS grid_directories (dirhash TEXT PRIMARY KEY, seal BLOB)",
    (
        "CREATE TABLE IF NOT EXISTS grid_downloads (path TEXT PRIMARY KEY, size INTEGER, mtime_ns INTEGER,"
        " ctime_ns INTEGER, filecap BLOB, seal BLOB)"
    ),
)
"""Exact times, seals, and downloads. Downloads are separate from uploads, because nobody renews their leases."""

FLUSH_EVERY_S = 0.5

FLUSH_RECORDS = 512

BUSY_S = 5.0
"""Seconds that another program may lock the database; after that, its rows count as unknown."""

SETTLED_NS = 50_000_000
"""How much older a file's change must be than its reading: the kernel's clock for files lags by up to 10 ms."""

_LOCKED = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)

_NOT_WRITTEN = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_READONLY)

_FULL_OR_READ_ONLY = (*DISK_FULL, errno.EROFS)

_DIRHASH_TAG = b"allmydata_backupdb_dirhash_v1"


def seal_of(kind: str, *fields: object) -> bytes:
    """A 16-byte checksum of these fields, which reveals damage."""
    return sha256(repr((kind, *fields)).encode("utf-8", "surrogatepass")).digest()[:16]


def row_text(value: object) -> str | None:
    """The text of a column that 1.20 fills with bytes and older versions with text; None if it is neither."""
    if isinstance(value, bytes):
        try:
            return value.decode("ascii")
        except UnicodeDecodeError:
            return None
    return value if isinstance(value, str) and value.isascii() else None


@frozen(kw_only=True)
class KnownObject:
    """A known file or directory: its capability, and when it was last seen healthy."""

    cap: str = field(repr=False)
    checked_at: float


@define
class _Pending:
    """Rows not written yet, by subject."""

    files: dict[str, tuple[FileFacts, str, float]] = field(factory=dict)
    directories: dict[str, tuple[str, float]] = field(factory=dict)
    downloads: dict[str, tuple[FileFacts, str]] = field(factory=dict)

    def count(self) -> int:
        return len(self.files) + len(self.directories) + len(self.downloads)


class LocalDatabase:
    """The open database. After an SQLite error it behaves as if empty, and calls `warn` once."""

    def __init__(self, path: Path, warn: Callable[[str], None]) -> None:
        """Open or create it. A damaged file is set aside; ConfigError for another version."""
        self._path = path
        self._warn = warn
        self._pending = _Pending()
        self._flushed_at = time.monotonic()
        self._connection: sqlite3.Connection | None = None
        try:
            self._connection = self._open()
        except (sqlite3.OperationalError, OSError) as problem:
            if not _takes_nothing(problem):
                raise ConfigError(f"{path}: {getattr(problem, 'strerror', None) or problem}") from None
            self._give_up(problem)

    def _open(self) -> sqlite3.Connection:
        try:
            return _open(self._path)
        except sqlite3.OperationalError:
            raise
        except sqlite3.DatabaseError as problem:
            reason = one_line(str(problem))
        aside = _set_aside(self._path)
        self._warn(f"{self._path} is damaged ({reason}): it was renamed to {aside.name}, and a new one was created")
        return _open(self._path)

    def known_file(self, path: str, facts: FileFacts) -> KnownObject | None:
        """What the file was uploaded as, unless it seems to have changed since."""
        row = self._one(
            "SELECT c.filecap, u.last_checked, f.size, f.mtime, f.ctime, g.mtime_ns, g.ctime_ns, g.seal"
            " FROM local_files f JOIN caps c ON c.fileid = f.fileid JOIN last_upload u ON u.fileid = f.fileid"
            " LEFT JOIN grid_files g ON g.path = f.path WHERE f.path = ?",
            path,
        )
        if row is None:
            return None
        cap, checked_at, size, mtime, ctime, mtime_ns, ctime_ns, seal = row
        text = row_text(cap)
        whole = (facts.size, facts.mtime_ns // 10**9, facts.ctime_ns // 10**9)
        if text is None or not isinstance(checked_at, int | float) or (size, mtime, ctime) != whole:
            return None
        if seal is not None and seal != seal_of("file", path, size, mtime_ns, ctime_ns, text):
            return None
        if seal is not None and (mtime_ns, ctime_ns) != (facts.mtime_ns, facts.ctime_ns):
            return None
        return KnownObject(cap=text, checked_at=float(checked_at))

    def known_directory(self, dirhash: str) -> KnownObject | None:
        """What a directory with the same names and capabilities was stored as."""
        if dirhash in self._pending.directories:
            cap, now = self._pending.directories[dirhash]
            return KnownObject(cap=cap, checked_at=now)
        for key in (dirhash.encode("ascii"), dirhash):
            row = self._one(
                "SELECT d.dircap, d.last_checked, g.seal FROM directories d"
                " LEFT JOIN grid_directories g ON g.dirhash = CAST(d.dirhash AS TEXT) WHERE d.dirhash = ?",
                key,
            )
            text = None if row is None else row_text(row[0])
            if row is None or text is None or not isinstance(row[1], int | float):
                continue
            if row[2] is None or row[2] == seal_of("directory", dirhash, text):
                return KnownObject(cap=text, checked_at=float(row[1]))
        return None

    def known_download(self, path: str, facts: FileFacts) -> str | None:
        """The capability whose contents the local file still has."""
        row = self._one("SELECT filecap, size, mtime_ns, ctime_ns, seal FROM grid_downloads WHERE path = ?", path)
        if row is None:
            return None
        text = row_text(row[0])
        if text is None or (row[1], row[2], row[3]) != (facts.size, facts.mtime_ns, facts.ctime_ns):
            return None
        return text if row[4] == seal_of("download", path, row[1], row[2], row[3], text) else None

    def record_file(self, path: str, facts: FileFacts, cap: str, *, read_at_ns: int, now: float) -> None:
        """Record an upload, or that its capability is healthy.

        facts: taken before the reading, which began at read_at_ns.

        A file that had changed just before is not recorded: it may have changed again without its times showing it.
        """
        is_settled = facts.ctime_ns + SETTLED_NS < read_at_ns and facts.mtime_ns + SETTLED_NS < read_at_ns
        if is_settled and _can_be_held(path, facts):
            self._pending.files[path] = (facts, cap, now)
            self._flush_in_time()

    def record_directory(self, dirhash: str, cap: str, now: float) -> None:
        """Record that a directory was stored, or that its capability is healthy."""
        self._pending.directories[dirhash] = (cap, now)
        self._flush_in_time()

    def record_download(self, path: str, facts: FileFacts, cap: str) -> None:
        """Record that a local file now has the capability's contents. facts: taken after writing it."""
        if _can_be_held(path, facts):
            self._pending.downloads[path] = (facts, cap)
            self._flush_in_time()

    def flush(self) -> None:
        """Write all pending rows now."""
        self._flushed_at = time.monotonic()
        if self._connection is None or not self._pending.count():
            return
        try:
            with self._connection:
                self._write(self._connection)
            self._pending = _Pending()
        except sqlite3.Error as problem:
            # If another process holds the lock, the rows wait for the next time.
            code = getattr(problem, "sqlite_errorcode", 0)
            if code & 0xFF not in _LOCKED or self._pending.count() > 100 * FLUSH_RECORDS:
                self._give_up(problem)

    def close(self) -> None:
        """Write all pending rows and close the file; calling it again does nothing."""
        self.flush()
        if self._connection is not None:
            if self._pending.count():
                self._warn(f"{self._path} was locked by another program: the last copies are not recorded in it")
            self._connection.close()
            self._connection = None

    def _flush_in_time(self) -> None:
        if self._pending.count() >= FLUSH_RECORDS or time.monotonic() - self._flushed_at >= FLUSH_EVERY_S:
            self.flush()

    def _write(self, connection: sqlite3.Connection) -> None:
        connection.execute("BEGIN IMMEDIATE")
        for path, (facts, cap, now) in self._pending.files.items():
            _write_file(connection, path, facts, cap, now)
        for dirhash, (cap, now) in self._pending.directories.items():
            connection.execute("DELETE FROM directories WHERE dirhash = ?", (dirhash,))
            connection.execute(
                "INSERT OR REPLACE INTO directories VALUES (?, ?, ?, ?)",
                (dirhash.encode("ascii"), cap.encode("ascii"), now, now),
            )
            connection.execute(
                "INSERT OR REPLACE INTO grid_directories VALUES (?, ?)", (dirhash, seal_of("directory", dirhash, cap))
            )
        for path, (facts, cap) in self._pending.downloads.items():
            exact = (facts.size, facts.mtime_ns, facts.ctime_ns)
            connection.execute(
                "INSERT OR REPLACE INTO grid_downloads VALUES (?, ?, ?, ?, ?, ?)",
                (path, *exact, cap.encode("ascii"), seal_of("download", path, *exact, cap)),
            )

    def _one(self, query: str, key: str | bytes) -> tuple[object, ...] | None:
        if self._connection is None:
            return None
        try:
            row: tuple[object, ...] | None = self._connection.execute(query, (key,)).fetchone()
        except (sqlite3.OperationalError, UnicodeEncodeError):
            return None
        except (sqlite3.Error, OverflowError) as problem:
            self._give_up(problem)
            return None
        return row

    def _give_up(self, problem: Exception) -> None:
        reason = getattr(problem, "strerror", None) or problem
        self._warn(f"{self._path} can no longer be used ({reason}): every file is treated as new")
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def _can_be_held(path: str, facts: FileFacts) -> bool:
    """Whether SQLite can store them: UTF-8 text, and 64-bit integers, which nanoseconds exceed from 2262 on."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return all(-(2**63) <= number < 2**63 for number in (facts.size, facts.mtime_ns, facts.ctime_ns))


def hash_directory(entries: dict[str, str]) -> str:
    """The key of a directory: a hash of names and capability strings, without metadata. 52 characters."""
    pairs = sorted((name.encode("utf-8"), cap.encode("ascii")) for name, cap in entries.items())
    packed = b"".join(pack_netstring(name) + pack_netstring(cap) for name, cap in pairs)
    return encode(sha256(sha256(pack_netstring(_DIRHASH_TAG) + packed).digest()).digest())


def needs_check(age_s: float, draw: float) -> bool:
    """Whether to check a capability of this age before using it again: never before 30 days, always after 60.

    One that was checked in the future is checked anew: the clock was wrong, and nobody knows how old it is.
    draw: 0 <= draw < 1, uniformly distributed.
    """
    day = 86400.0
    return age_s < -day or draw < (age_s - 30 * day) / (30 * day)


def _open(path: Path) -> sqlite3.Connection:
    """Open the database and create its tables; sqlite3.DatabaseError, ConfigError, OSError."""
    make_private_file(path, follow_links=True)
    connection = sqlite3.connect(path, timeout=BUSY_S, isolation_level=None)
    try:
        (answer,) = connection.execute("PRAGMA quick_check(1)").fetchone()
        if answer != "ok":
            raise sqlite3.DatabaseError(str(answer))
        with connection:
            connection.execute("BEGIN IMMEDIATE")
            _make_tables(connection, path)
    except BaseException:
        connection.close()
        raise
    return connection


def _make_tables(connection: sqlite3.Connection, path: Path) -> None:
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    version: object = VERSION
    if "version" in tables:
        row = connection.execute("SELECT version FROM version").fetchone()
        version = row[0] if row else None
    elif tables:
        raise ConfigError(f"{path} is the database of another program; move it away, and a new one is created")
    if version not in (1, VERSION):
        raise ConfigError(f"{path} is of version {version!r}, not 1 or 2; move it away, and a new one is created")
    for statement in (*LAYOUT, *OWN_LAYOUT):
        connection.execute(statement)
    if "version" not in tables or version != VERSION:
        connection.execute("DELETE FROM version")
        connection.execute("INSERT INTO version VALUES (?)", (VERSION,))


def _write_file(connection: sqlite3.Connection, path: str, facts: FileFacts, cap: str, now: float) -> None:
    row = connection.execute(
        "SELECT fileid FROM caps WHERE filecap = ? OR filecap = ?", (cap.encode("ascii"), cap)
    ).fetchone()
    fileid = row[0] if row else None
    if fileid is None:
        fileid = connection.execute("INSERT INTO caps (filecap) VALUES (?)", (cap.encode("ascii"),)).lastrowid
    connection.execute("INSERT OR REPLACE INTO last_upload VALUES (?, ?, ?)", (fileid, now, now))
    whole = (facts.size, facts.mtime_ns // 10**9, facts.ctime_ns // 10**9)
    connection.execute("INSERT OR REPLACE INTO local_files VALUES (?, ?, ?, ?, ?)", (path, *whole, fileid))
    seal = seal_of("file", path, facts.size, facts.mtime_ns, facts.ctime_ns, cap)
    connection.execute(
        "INSERT OR REPLACE INTO grid_files VALUES (?, ?, ?, ?)", (path, facts.mtime_ns, facts.ctime_ns, seal)
    )


def _takes_nothing(problem: Exception) -> bool:
    """Whether the disk rejects writes now; copies and backups work without the database."""
    if isinstance(problem, OSError):
        return problem.errno in _FULL_OR_READ_ONLY
    return getattr(problem, "sqlite_errorcode", 0) & 0xFF in _NOT_WRITTEN


def _set_aside(path: Path) -> Path:
    number = 0
    while True:
        aside = path.with_name(f"{path.name}.unreadable-{number}")
        if not aside.exists():
            path.rename(aside)
            path.with_name(f"{path.name}-journal").unlink(missing_ok=True)
            return aside
        number += 1
