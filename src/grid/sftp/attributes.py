"""Attributes of files and directories: in links' metadata, in SFTP packets, and as `ls -l` shows them. Pure.

A link's metadata stores `mtime` and `atime` (seconds since 1970) and `mode` (the permission bits as a number). None of
them grants anything: permissions come from capabilities alone. Metadata from other writers may contain anything.
"""

from __future__ import annotations

import stat
from collections.abc import Mapping
from datetime import UTC, datetime

from grid.caps import DirectoryCap, KnownCap
from grid.directory.metadata import Metadata, seconds_in
from grid.values import frozen

Wire = Mapping[str, int]
"""Attributes in a request: those given of `size`, `uid`, `gid`, `permissions`, `atime`, `mtime`."""

_LAST_SECOND = 2**32 - 1


@frozen(kw_only=True)
class Facts:
    """The attributes of a file or directory. size: None if only the servers know."""

    is_directory: bool
    size: int | None
    mode: int
    mtime: int
    atime: int

    def to_wire(self) -> dict[str, int]:
        """The attributes as SFTP sends them."""
        kind = stat.S_IFDIR if self.is_directory else stat.S_IFREG
        found = {"permissions": kind | self.mode, "uid": 0, "gid": 0, "atime": self.atime, "mtime": self.mtime}
        return found if self.size is None else found | {"size": self.size}

    def long_name(self, name: str) -> str:
        """The line that `ls -l` would print."""
        kind = stat.S_IFDIR if self.is_directory else stat.S_IFREG
        when = datetime.fromtimestamp(self.mtime, UTC).strftime("%b %d  %Y")
        size = "?" if self.size is None else str(self.size)
        return f"{stat.filemode(kind | self.mode)}    1 grid     grid     {size:>12} {when} {name}"


def facts_of(target: KnownCap | None, metadata: Metadata, size: int | None) -> Facts:
    """The attributes of a link. target: None for a file not stored yet. size: of a file; None if unknown."""
    is_directory = isinstance(target, DirectoryCap)
    if target is None or target.authority == "write":
        usual = 0o777 if is_directory else 0o666
    else:
        usual = 0o555 if is_directory else 0o444 if target.is_mutable else 0o666
    mode = metadata.get("mode")
    kept = mode & 0o777 if isinstance(mode, int) and not isinstance(mode, bool) else usual
    if metadata.get("no-write") is True or not (usual & 0o222):
        kept &= 0o555
    times = metadata.get("tahoe")
    linked = seconds_in(times.get("linkmotime")) if isinstance(times, Mapping) else None
    modified = seconds_in(metadata.get("mtime"))
    mtime = _second(modified if modified is not None else linked if linked is not None else 0.0)
    accessed = seconds_in(metadata.get("atime"))
    return Facts(
        is_directory=is_directory,
        size=0 if is_directory else size,
        mode=kept,
        mtime=mtime,
        atime=mtime if accessed is None else _second(accessed),
    )


def changed_metadata(before: Metadata, wire: Wire) -> dict[str, object]:
    """A link's metadata after a client has set these attributes; owners and sizes are not stored."""
    after = {name: value for name, value in before.items() if name != "tahoe"}
    if "permissions" in wire:
        after["mode"] = wire["permissions"] & 0o777
    for name in ("mtime", "atime"):
        if name in wire:
            after[name] = wire[name]
            after.pop(f"{name}_ns", None)
    return after


def _second(value: float) -> int:
    return min(max(0, int(value)), _LAST_SECOND)
