"""Sorts, describes and links the entries of a directory for its page. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from typing import Literal

from grid.caps import DirectoryCap, ImmutableFileCap, KnownCap, UnknownChild
from grid.directory.metadata import seconds_in
from grid.directory.names import sort_by
from grid.directory.pack import Child, Target
from grid.gateway.pages.links import can_be_walked, object_path, with_arguments
from grid.gateway.pages.markup import Markup, join, size_text, time_mark
from grid.values import frozen

SortKey = Literal["name", "size", "changed"]
_Item = tuple[str, Child]

SORT_KEYS: tuple[SortKey, ...] = ("name", "size", "changed")

_DIGITS = re.compile(r"([0-9]+)")


def parse_order(sort: str | None, order: str | None) -> tuple[SortKey, bool]:
    """The column to sort by, the name by default, and whether in descending order."""
    return next((key for key in SORT_KEYS if key == sort), "name"), order == "desc"


def order_arguments(key: SortKey, descending: bool) -> dict[str, str]:
    """The arguments of an address that keep an order; none for the default."""
    return ({"sort": key} if key != "name" else {}) | ({"order": "desc"} if descending else {})


def natural_key(name: str) -> tuple[tuple[tuple[int, str], ...], str]:
    """A sort key for natural order: numbers by value, letters regardless of case."""
    parts = _DIGITS.split(name.casefold())
    # Digits are at odd positions. Without leading zeros, the longer of two numbers is the greater.
    numbered = (part.lstrip("0") if place % 2 else part for place, part in enumerate(parts))
    return tuple((len(part) if place % 2 else 0, part) for place, part in enumerate(numbered)), name


def sorted_entries(children: Mapping[str, Child], key: SortKey, *, descending: bool) -> list[tuple[str, Child]]:
    """Directories first, then files, each sorted by the key; entries without a value come last. Names break ties."""
    found = _sorted(children.items(), lambda item: natural_key(item[0]), _name_size, descending and key == "name")
    if key != "name":
        measure = _size if key == "size" else linked_at
        known = [item for item in found if measure(item[1]) is not None]
        unknown = [item for item in found if measure(item[1]) is None]
        found = _sorted(known, lambda item: measure(item[1]), lambda item: 1, descending) + unknown
    directories = [item for item in found if is_directory(item[1].target)]
    return directories + [item for item in found if not is_directory(item[1].target)]


def _sorted(
    items: Collection[_Item], key: Callable[[_Item], object], size: Callable[[_Item], int], descending: bool
) -> list[_Item]:
    ordered = sort_by(items, key=key, size=size)
    return ordered[::-1] if descending else ordered


def _name_size(item: _Item) -> int:
    return len(item[0])


@frozen(kw_only=True)
class Neighbors:
    """The files before and after a file in its directory's list, None at an end. number: its own, from 1."""

    before: str | None
    after: str | None
    number: int
    count: int


def find_neighbors(children: Mapping[str, Child], name: str, key: SortKey, descending: bool) -> Neighbors | None:
    """The neighbors of a file among the files that have a page by path; None if it is not among them."""
    found = [
        other
        for other, child in sorted_entries(children, key, descending=descending)
        if not isinstance(child.target, UnknownChild | DirectoryCap) and can_be_walked([other])
    ]
    if name not in found:
        return None
    at, last = found.index(name), len(found) - 1
    return Neighbors(
        before=found[at - 1] if at else None,
        after=found[at + 1] if at < last else None,
        number=at + 1,
        count=len(found),
    )


def is_directory(target: Target) -> bool:
    """Whether the target is a directory."""
    return not isinstance(target, UnknownChild) and isinstance(target, DirectoryCap)


def linked_at(child: Child) -> float | None:
    """When the link was made or changed, in Unix time; None if unknown."""
    noted = child.metadata.get("tahoe")
    return seconds_in(noted.get("linkmotime")) if isinstance(noted, Mapping) else None


def describe(child: Child) -> Markup:
    """Describe an entry in a few words: type, size, and when it was linked."""
    target = child.target
    if isinstance(target, UnknownChild):
        kind = "something of an unknown type"
    elif isinstance(target, DirectoryCap):
        kind = "a directory"
    elif isinstance(target, ImmutableFileCap):
        kind = f"a file of {size_text(target.size)}"
    else:
        kind = "an editable file"
    at = linked_at(child)
    return join(kind) if at is None else join(kind, ", changed ", time_mark(at))


def target_text(target: Target) -> str:
    """The target's strongest capability, as text."""
    if isinstance(target, UnknownChild):
        return (target.write or target.read or b"").decode("utf-8", "replace")
    return target.to_string()


def info_path(cap: KnownCap, name: str) -> str:
    """The page about a file that is reached by capability alone."""
    return with_arguments(object_path(cap.to_string()), t="info", filename=name)


def _size(child: Child) -> float | None:
    return child.target.size if isinstance(child.target, ImmutableFileCap) else None
