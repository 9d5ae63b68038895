"""Symbolic links and extended attributes of files in backups, which 1.20 does not record, and their restoration.

They are stored under `grid-file` in the link's metadata, which 1.20 keeps and ignores (decision 331). Anyone who can
write the directory controls it, so each value is accepted only if its type and length are valid. Values that would give
a file special powers are never accepted: set-user-ID bits, and attributes of the kernel's security modules.
"""

from __future__ import annotations

import base64
import binascii
import errno
import os
from collections.abc import Mapping

from grid.values import field, frozen

KEY = "grid-file"

MAX_ATTRIBUTES = 64

MAX_ATTRIBUTE_BYTES = 4096
"""Bytes of all names and values of one file: a directory is read whole, with all metadata in it."""

MAX_TARGET = 4096
"""Bytes of a symbolic link's target; Linux's limit."""

MODES = 0o777
"""The bits of a mode that are restored: no set-uid programs from the grid."""

_SPACES = ("user.",)
_MORE = ("system.posix_acl_access", "system.posix_acl_default")

_NONE_HERE = (errno.ENOTSUP, errno.EPERM, errno.EACCES, errno.ENODATA, errno.ENOENT)
"""Errors that mean that some or all attributes cannot be listed; they are then skipped."""


@frozen(kw_only=True)
class FileNote:
    """is_link: the contents are the target of a symbolic link. attributes: extended attributes by name."""

    is_link: bool = False
    attributes: Mapping[str, bytes] = field(factory=dict)

    @classmethod
    def of(cls, metadata: Mapping[str, object]) -> FileNote:
        """Parse the note in a link's metadata; malformed parts are ignored."""
        noted = metadata.get(KEY)
        if not isinstance(noted, Mapping):
            return cls()
        texts = noted.get("attributes")
        found: dict[str, bytes] = {}
        for name, text in texts.items() if isinstance(texts, Mapping) else ():
            value = _decode(text)
            if value is not None and isinstance(name, str) and is_kept(name) and len(found) < MAX_ATTRIBUTES:
                found[name] = value
        return cls(is_link=noted.get("kind") == "link", attributes=found)

    def to_metadata(self) -> dict[str, object]:
        """The additional metadata of the link; empty for a plain file."""
        noted: dict[str, object] = {"kind": "link"} if self.is_link else {}
        if self.attributes:
            noted["attributes"] = {
                name: base64.b64encode(value).decode("ascii") for name, value in sorted(self.attributes.items())
            }
        return {KEY: noted} if noted else {}


def is_kept(name: str) -> bool:
    """Whether to record and restore an extended attribute of this name."""
    return (name.startswith(_SPACES) or name in _MORE) and "\0" not in name and name.isprintable()


def read_attributes(path: str) -> dict[str, bytes] | None:
    """The extended attributes of a file, or of a link itself; None if they are too many or too long."""
    found: dict[str, bytes] = {}
    try:
        for name in os.listxattr(path, follow_symlinks=False):
            if is_kept(name):
                found[name] = os.getxattr(path, name, follow_symlinks=False)
    except OSError as problem:
        if problem.errno not in _NONE_HERE:
            raise
    size = sum(len(name) + len(value) for name, value in found.items())
    return found if size <= MAX_ATTRIBUTE_BYTES and len(found) <= MAX_ATTRIBUTES else None


def owner_in(metadata: Mapping[str, object]) -> tuple[int, int] | None:
    """The recorded user and group."""
    uid, gid = metadata.get("st_uid"), metadata.get("st_gid")
    if not all(isinstance(each, int) and not isinstance(each, bool) and 0 <= each < 2**32 - 1 for each in (uid, gid)):
        return None
    assert isinstance(uid, int) and isinstance(gid, int)
    return uid, gid


def mode_in(metadata: Mapping[str, object], usual: int) -> int:
    """The recorded mode, without bits that give a program another user's powers."""
    mode = metadata.get("st_mode")
    return mode & MODES if isinstance(mode, int) and not isinstance(mode, bool) else usual


def moment_in(metadata: Mapping[str, object]) -> int | None:
    """The recorded modification time in nanoseconds."""
    mtime = metadata.get("mtime")
    if isinstance(mtime, int | float) and not isinstance(mtime, bool) and abs(mtime) < 2**33:
        return round(mtime * 1e9)
    return None


def set_time(target: str | int, metadata: Mapping[str, object]) -> None:
    """Set the recorded modification time, if there is one."""
    moment = moment_in(metadata)
    if moment is None:
        return
    if isinstance(target, int):
        os.utime(target, ns=(moment, moment))
    else:
        os.utime(target, ns=(moment, moment), follow_symlinks=False)


def _decode(text: object) -> bytes | None:
    if not isinstance(text, str) or len(text) > 2 * MAX_ATTRIBUTE_BYTES:
        return None
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None
