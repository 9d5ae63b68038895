"""Parses the file system's paths, and plans the reads that cover requested ranges. Pure.

A path is `alias/names` or `CAPABILITY/names`. Because it may contain a capability, messages print it only through
`shown`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from grid.caps import DirectoryCap, KnownCap, has_cap_prefix, parse_cap
from grid.errors import CapError, ChildOfWrongTypeError, NoSuchChildError
from grid.values import field, frozen

PROTOCOL, CAP_PROTOCOL = "grid", "grid+cap"

LARGEST_MERGED = 16 * 2**20
"""The largest read, in bytes, that merges neighboring ranges."""


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
        """The path without its last name; CapError for a root, whose parent is unknown."""
        if not self.names:
            raise CapError("this path is the root of a tree: add a name below it")
        return GridPath(root=self.root, names=self.names[:-1])


def protocol_of(path: str) -> str:
    """The protocol of the path's URL."""
    return CAP_PROTOCOL if has_cap_prefix(path) else PROTOCOL


def shown(path: str) -> str:
    """The path in a form that messages may contain."""
    if not has_cap_prefix(path):
        return path
    _, slash, below = path.partition("/")
    return f"[capability]{slash}{below}"


def parse_path(path: str, aliases: Mapping[str, str]) -> GridPath:
    """Parse a path; NoSuchChildError for an unknown alias, CapError for an invalid capability."""
    first, *below = path.split("/")
    if has_cap_prefix(first):
        root = parse_cap(first)
    elif first in aliases:
        root = parse_cap(aliases[first])
    else:
        raise NoSuchChildError(f"there is no alias {first!r}: `grid list-aliases` shows yours", name=first)
    if not isinstance(root, KnownCap):
        raise CapError("this is not a capability of a kind known to this version")
    return GridPath(root=root, names=tuple(name for name in below if name))


def without_those_below(paths: Sequence[GridPath]) -> list[GridPath]:
    """The distinct paths, without those below another one of them."""
    known = set(paths)
    above = [{GridPath(root=path.root, names=path.names[:depth]) for depth in range(len(path.names))} for path in known]
    return [path for path, parents in zip(known, above, strict=True) if not parents & known]


def settle_range(start: int | None, end: int | None, size: int) -> tuple[int, int]:
    """The offsets of a range whose ends may be missing, count from the file's end, or exceed it."""
    first = 0 if start is None else start + size if start < 0 else start
    last = size if end is None else end + size if end < 0 else end
    first = min(max(0, first), size)
    return first, max(first, min(last, size))


def plan_reads(ranges: Sequence[tuple[int, int]], gap: int) -> list[tuple[int, int]]:
    """Plan reads that cover the ranges, in order. Ranges at most `gap` bytes apart are merged up to LARGEST_MERGED.

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
