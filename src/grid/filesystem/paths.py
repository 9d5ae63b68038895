"""What paths of the file system name, and which reads cover the ranges that are requested. Pure.

A path is `alias/names` or `CAPABILITY/names`. Because it may hold a capability, messages print it only through `shown`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attrs import field, frozen

from grid.caps import DirectoryCap, KnownCap, has_cap_prefix, parse_cap
from grid.errors import CapError, ChildOfWrongTypeError, NoSuchChildError

PROTOCOL, CAP_PROTOCOL = "grid", "grid+cap"

LARGEST_MERGED = 16 * 2**20
"""Bytes up to which neighbors are read as one."""


@frozen(kw_only=True)
class GridPath:
    """A root and the names below it."""

    root: KnownCap = field(repr=False)
    names: tuple[str, ...] = ()

    @property
    def directory(self) -> DirectoryCap:
        """The root as a directory; ChildOfWrongTypeError if it is a file."""
        if not isinstance(self.root, DirectoryCap):
            raise ChildOfWrongTypeError("this capability is for a file, so it has no paths below it", name="")
        return self.root

    @property
    def parent(self) -> GridPath:
        """The path without its last name; CapError for a root, which is in no directory that is known."""
        if not self.names:
            raise CapError("this path is the root of a tree: add a name below it")
        return GridPath(root=self.root, names=self.names[:-1])


def protocol_of(path: str) -> str:
    """The protocol of the URLs of such a path."""
    return CAP_PROTOCOL if has_cap_prefix(path) else PROTOCOL


def shown(path: str) -> str:
    """The path as messages may have it."""
    if not has_cap_prefix(path):
        return path
    _, slash, below = path.partition("/")
    return f"[capability]{slash}{below}"


def parse_path(path: str, aliases: Mapping[str, str]) -> GridPath:
    """What a path names; NoSuchChildError for an unknown alias, CapError for what is no capability."""
    first, *below = path.split("/")
    if has_cap_prefix(first):
        root = parse_cap(first)
    elif first in aliases:
        root = parse_cap(aliases[first])
    else:
        raise NoSuchChildError(f"there is no alias {first!r}: `grid list-aliases` shows yours", name=first)
    if not isinstance(root, KnownCap):
        raise CapError("this is not a capability of a kind that this version knows")
    return GridPath(root=root, names=tuple(name for name in below if name))


def without_those_below(paths: Sequence[GridPath]) -> list[GridPath]:
    """The paths, each once, but those that are below another one of them."""
    known = set(paths)
    above = [{GridPath(root=path.root, names=path.names[:depth]) for depth in range(len(path.names))} for path in known]
    return [path for path, parents in zip(known, above, strict=True) if not parents & known]


def settle_range(start: int | None, end: int | None, size: int) -> tuple[int, int]:
    """The offsets of a range whose ends may be missing, may count from the file's end, or may be beyond it."""
    first = 0 if start is None else start + size if start < 0 else start
    last = size if end is None else end + size if end < 0 else end
    first = min(max(0, first), size)
    return first, max(first, min(last, size))


def plan_reads(ranges: Sequence[tuple[int, int]], gap: int) -> list[tuple[int, int]]:
    """Reads that cover the ranges, in order: those at most `gap` bytes apart are one, unless that would be a large one.

    Each range lies within one read.
    """
    merged: list[tuple[int, int]] = []
    for start, end in sorted(each for each in ranges if each[0] < each[1]):
        if merged:
            first, last = merged[-1]
            if end <= last or (start <= last + gap and end - first <= LARGEST_MERGED):
                merged[-1] = first, max(last, end)
                continue
        merged.append((start, end))
    return merged
