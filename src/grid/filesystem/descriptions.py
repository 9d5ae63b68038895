"""Describes entries as fsspec's dictionaries, and errors as errors of the operating system. Pure.

Neither a description nor an error contains a capability.
"""

from __future__ import annotations

import errno
import hashlib
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from grid.caps import DirectoryCap, ImmutableFileCap, KnownCap
from grid.directory.metadata import in_calendar, seconds_in
from grid.directory.pack import Child
from grid.errors import (
    AuthorityError,
    CapError,
    ChildOfWrongTypeError,
    ExistingChildError,
    FormatError,
    GridError,
    NoSpaceError,
    NoSuchChildError,
)
from grid.filesystem.paths import shown


class IsDirectoryError(ChildOfWrongTypeError):
    """A directory was found where a file is needed."""


_NUMBERS: tuple[tuple[type[GridError], int], ...] = (
    (NoSuchChildError, errno.ENOENT),
    (ExistingChildError, errno.EEXIST),
    (IsDirectoryError, errno.EISDIR),
    (ChildOfWrongTypeError, errno.ENOTDIR),
    (AuthorityError, errno.EACCES),
    (CapError, errno.EINVAL),
    (FormatError, errno.EINVAL),
    (NoSpaceError, errno.ENOSPC),
)


def os_error(error: GridError, path: str) -> OSError:
    """The corresponding OSError, such as FileNotFoundError, with the grid's message."""
    number = next((number for kind, number in _NUMBERS if isinstance(error, kind)), errno.EIO)
    return refusal(number, str(error), path)


def refusal(number: int, words: str, path: str) -> OSError:
    """An OSError of this number. path: must be safe to show."""
    return OSError(number, words, shown(path))


def file_cap(child: Child) -> KnownCap:
    """The capability of a readable file; IsDirectoryError, ChildOfWrongTypeError."""
    cap = child.target
    if isinstance(cap, DirectoryCap):
        raise IsDirectoryError("this is a directory", name="")
    if not isinstance(cap, KnownCap):
        raise ChildOfWrongTypeError("this is of a kind unknown to this version", name="")
    return cap


def describe_root(name: str) -> dict[str, Any]:
    """Describe an alias, or the list of all aliases."""
    return {"name": name, "size": 0, "type": "directory"}


def describe(path: str, child: Child, size: int | None, *, is_loop: bool = False) -> dict[str, Any]:
    """Describe an entry. size: of a file whose capability does not contain it.

    is_loop: it leads to a directory above it.
    """
    cap = child.target
    info: dict[str, Any] = {"name": path, "size": 0, "type": "other", **_times(child.metadata)}
    if not isinstance(cap, KnownCap) or is_loop:
        return info
    if isinstance(cap, DirectoryCap):
        return {**info, "type": "directory"}
    info |= {"type": "file", "size": size, "mutable": cap.is_mutable}
    if isinstance(cap, ImmutableFileCap):
        info["size"] = cap.size
        info["etag"] = hashlib.sha256(cap.to_string().encode()).hexdigest()[:32]
    return info


def moment_of(info: Mapping[str, Any], name: str) -> datetime:
    """A time in a description, as a datetime."""
    return datetime.fromtimestamp(in_calendar(info.get(name, 0.0)), UTC)


def _times(metadata: Mapping[str, object]) -> dict[str, float]:
    """When it was first and last linked, or the times that a backup recorded."""
    noted = metadata.get("tahoe")
    times = noted if isinstance(noted, Mapping) else {}
    created = seconds_in(times.get("linkcrtime")) or 0.0
    modified = seconds_in(metadata.get("mtime")) or seconds_in(times.get("linkmotime"))
    return {"created": created, "mtime": modified or created}
