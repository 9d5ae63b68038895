"""Paths of storage indexes and shares below the storage directory. Pure. [spec storage-server 2]"""

from __future__ import annotations

import re
from itertools import product

from grid.caps import StorageIndex
from grid.codec import base32
from grid.errors import FormatError
from grid.limits import MAX_SHARES
from grid.ports import ShareNumber

ROOT = "."
SHARES = "shares"
INCOMING = "shares/incoming"
ADVISORIES = "corruption-advisories"

PREFIXES = tuple("".join(pair) for pair in product(sorted(base32.ALPHABET.decode("ascii")), repeat=2))
"""The 1024 directories over which shares are spread, sorted."""

STORAGE_INDEX_SIZE = 16
_SHARE_NAME = re.compile(r"0|[1-9][0-9]{0,2}", re.ASCII)


def index_name(storage_index: StorageIndex) -> str:
    """The name of the storage index's directory, 26 characters."""
    return base32.encode(storage_index)


def parse_index_name(name: str) -> StorageIndex | None:
    """The storage index from a directory's name; None for other names."""
    try:
        storage_index = base32.decode_lax(name)
    except FormatError:
        return None
    return StorageIndex(storage_index) if len(storage_index) == STORAGE_INDEX_SIZE else None


def prefix_directory(name: str) -> str:
    """The directory that contains the directory of that name."""
    return f"{SHARES}/{name[:2]}"


def share_directory(name: str) -> str:
    """The directory of the finished shares of that storage index."""
    return f"{SHARES}/{name[:2]}/{name}"


def share_path(name: str, share_number: int) -> str:
    """The path of a finished share."""
    return f"{SHARES}/{name[:2]}/{name}/{share_number}"


def incoming_prefix(name: str) -> str:
    """The directory that contains incoming_directory."""
    return f"{INCOMING}/{name[:2]}"


def incoming_directory(name: str) -> str:
    """The directory of the unfinished shares of that storage index."""
    return f"{INCOMING}/{name[:2]}/{name}"


def incoming_path(name: str, share_number: int) -> str:
    """The path of an unfinished immutable share."""
    return f"{INCOMING}/{name[:2]}/{name}/{share_number}"


def whole_path(name: str, share_number: int) -> str:
    """Where a whole immutable share is written before it is renamed into place."""
    return f"{INCOMING}/{name}.{share_number}.whole"


def draft_path(name: str, share_number: int) -> str:
    """Where the next state of a mutable share is written before it replaces the share."""
    return f"{INCOMING}/{name}.{share_number}.draft"


def undo_path(name: str) -> str:
    """The path of the undo log of the change in progress."""
    return f"{INCOMING}/{name}.undo"


def parse_share_name(name: str) -> ShareNumber | None:
    """The share number from a file's name; None for other names."""
    if _SHARE_NAME.fullmatch(name) is None or int(name) >= MAX_SHARES:
        return None
    return ShareNumber(int(name))
