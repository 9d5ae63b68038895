"""The tables of the local database, 1.20's and our own beside them. Pure. [spec cli 3.4]"""

from __future__ import annotations

from hashlib import sha256

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
"""1.20's, at version 2."""

OWN_LAYOUT = (
    "CREATE TABLE IF NOT EXISTS grid_files (path TEXT PRIMARY KEY, mtime_ns INTEGER, ctime_ns INTEGER, seal BLOB)",
    "CREATE TABLE IF NOT EXISTS grid_directories (dirhash TEXT PRIMARY KEY, seal BLOB)",
    (
        "CREATE TABLE IF NOT EXISTS grid_downloads (path TEXT PRIMARY KEY, size INTEGER, mtime_ns INTEGER,"
        " ctime_ns INTEGER, filecap BLOB, seal BLOB)"
    ),
)
"""Exact times, and seals; what was downloaded is never taken for what was uploaded: nobody renews its leases."""


def seal_of(kind: str, *fields: object) -> bytes:
    """16 bytes that only these fields give, so that a damaged one is noticed."""
    return sha256(repr((kind, *fields)).encode("utf-8", "surrogatepass")).digest()[:16]


def row_text(value: object) -> str | None:
    """The text of a column which 1.20 fills with bytes and older versions with text; None if it is neither."""
    if isinstance(value, bytes):
        try:
            return value.decode("ascii")
        except UnicodeDecodeError:
            return None
    return value if isinstance(value, str) and value.isascii() else None
