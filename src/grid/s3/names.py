"""Maps keys of objects to paths in directories, and back. Pure.

A key's segments between slashes are names, one for one, except where a directory could not hold them or people would be
surprised: those begin with `%`. Two keys never have the same path. (docs/s3.md has the table)

    a/b.txt      directory `a`, in it `b.txt`
    a//b, a/     the empty segment is `%`
    a/../b       `%%2E%2E`
    %a           `%%25a`
    a beside a/b `a` is a directory; the object is `%=a` beside it
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from urllib.parse import unquote_to_bytes

from grid.s3.faults import S3Fault
from grid.values import frozen

MAX_KEY = 1024
RESERVED = "%!"
"""The start of names that belong to the door and to no key."""

BESIDE = "%="

UPLOADS = "%!uploads"
"""The directory of incomplete multipart uploads."""

MARK = "%!removed"
"""The mark of a removal of the bucket in a directory."""

TAGS = "%!tags"
"""The link in a bucket's directory whose metadata has the bucket's tags."""

SHARING = "%!cors"
"""The same for the rules of cross-origin requests."""

OWNERSHIP = "%!ownership"
"""The same for the setting of who owns the objects."""

_PLAIN = re.compile(r"[^\x00-\x1f\x7f]+")
_UNESCAPED = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_")


@frozen
class KeyPath:
    """An object's place. directories: names on the path. name: used unless a directory has it.

    beside: used otherwise.
    """

    directories: tuple[str, ...]
    name: str
    beside: str


@lru_cache(maxsize=256)
def path_of(key: str) -> KeyPath:
    """The path of a key; S3Fault if it is invalid or too long."""
    try:
        size = len(key.encode("utf-8"))
    except UnicodeEncodeError:
        raise S3Fault("InvalidURI", "A key must be UTF-8 text.") from None
    if size > MAX_KEY:
        raise S3Fault("KeyTooLongError")
    if not size:
        raise S3Fault("InvalidRequest", "A key must not be empty.")
    *directories, last = key.split("/")
    return KeyPath(directories=tuple(map(name_of, directories)), name=name_of(last), beside=f"{BESIDE}{_escape(last)}")


def name_of(segment: str) -> str:
    """The name, in its directory, of a key's segment."""
    if (
        _PLAIN.fullmatch(segment)
        and segment not in (".", "..")
        and not segment.startswith("%")
        and unicodedata.is_normalized("NFC", segment)
    ):
        return segment
    return f"%{_escape(segment)}"


def beside_of(name: str) -> str:
    """The name of an object whose own name a directory has."""
    found = segment_of(name)
    return f"{BESIDE}{_escape(name if found is None else found[0])}"


def segment_of(name: str) -> tuple[str, bool] | None:
    """The segment for a name in a directory, and whether the name is that of an object beside a directory.

    None for names that belong to no key: the door's own, and others that begin with % for other reasons.
    """
    if not name.startswith("%"):
        return (name, False) if name_of(name) == name and "/" not in name else None
    is_beside = name.startswith(BESIDE)
    try:
        segment = unquote_to_bytes(name.removeprefix(BESIDE) if is_beside else name[1:]).decode("utf-8")
    except UnicodeError:
        return None
    right = f"{BESIDE}{_escape(segment)}" if is_beside else name_of(segment)
    return (segment, is_beside) if right == name and "/" not in segment else None


def _escape(segment: str) -> str:
    return "".join(chr(byte) if byte in _UNESCAPED else f"%{byte:02X}" for byte in segment.encode("utf-8"))
