"""Keys of a bucket in their order, page by page.

Keys are in the order of their bytes, as S3 has them: a directory stands among its neighbours with a slash behind its name.
A directory that holds no object is a common prefix all the same, as it is a directory to everybody else.

Cost: a read of each directory that a page touches, and of those above it. A long directory that a page has read is kept for
the next pages of the same listing, for a while.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import AsyncIterator

from attrs import define, field, frozen

from grid.caps import DirectoryCap
from grid.directory.pack import Child
from grid.ports import Runtime
from grid.s3.gathering import Children, Directories
from grid.s3.names import name_of, segment_of
from grid.s3.object_info import StoredObject, object_of

MOST_DIRECTORIES = 2000
"""Directories that are read for one page; the next page goes on there."""

LONG = 1000
"""Entries from which a directory is kept for the next page, and sorted on the pool."""

KEPT_ENTRIES = 300_000
KEPT_S = 60.0

Items = list[tuple[str, Child]]
"""Entries of a directory in the order of their keys: the segment, with a slash behind that of a directory."""


@frozen
class Entry:
    """An object, or a common prefix of several, which is none itself."""

    key: str
    found: StoredObject | None


@frozen
class Page:
    """Entries in order. next: after which key the next page begins; None if there is no more."""

    entries: list[Entry]
    next: str | None


@frozen(kw_only=True)
class Query:
    """What is listed. after: keys behind this one only. is_continued: an earlier page has just been sent."""

    prefix: str = ""
    delimiter: str = ""
    after: str = ""
    most: int = 1000
    is_continued: bool = False


class _TooFarError(Exception):
    """As many directories were read as one page may take. place: where the next one goes on."""

    def __init__(self, place: str) -> None:
        self.place = place


@define(eq=False)
class Lister:
    """The listings of one door."""

    _directories: Directories
    _runtime: Runtime
    _kept: OrderedDict[DirectoryCap, tuple[float, Items]] = field(factory=OrderedDict)

    async def page(self, root: DirectoryCap, query: Query) -> Page:
        """A page; the errors of reading directories."""
        entries: list[Entry] = []
        last = query.after
        if not query.most:
            return Page(entries, None)
        try:
            async for key, found in _Walk(self, query).below(root, "", ()):
                end = key.find(query.delimiter, len(query.prefix)) if query.delimiter else -1
                shown = key if end < 0 else key[: end + len(query.delimiter)]
                if end >= 0 and (shown <= query.after or (entries and entries[-1].key == shown)):
                    continue
                if len(entries) == query.most:
                    return Page(entries, last)
                entries.append(Entry(shown, found if end < 0 else None))
                last = shown
        except _TooFarError as reached:
            return Page(entries, max(reached.place, last))
        return Page(entries, None)

    async def items(self, cap: DirectoryCap, is_continued: bool) -> Items:
        """The entries of a directory in order; of a page that continues another, as that one may have seen them."""
        now = self._runtime.clock.now()
        kept = self._kept.get(cap)
        if kept is not None and is_continued and now - kept[0] < KEPT_S:
            return kept[1]
        children = await self._directories.read(cap)
        if len(children) < LONG:
            return _in_order(children)
        items = await self._runtime.cpu.run(_in_order, children)
        self._kept[cap] = now, items
        self._kept.move_to_end(cap)
        while sum(len(each) for _, each in self._kept.values()) > KEPT_ENTRIES:
            self._kept.popitem(last=False)
        return items


@define(eq=False)
class _Walk:
    """One page's way through the tree."""

    _lister: Lister
    _query: Query
    _read: int = 0

    async def below(
        self, cap: DirectoryCap, path: str, above: tuple[DirectoryCap, ...]
    ) -> AsyncIterator[tuple[str, StoredObject | None]]:
        """The keys below a directory that may be in the page, in order; directories that are common prefixes, with None."""
        query = self._query
        self._read += 1
        if self._read > MOST_DIRECTORIES:
            # Before all keys in it, and behind everything before it: a slash follows the dot.
            raise _TooFarError(f"{path[:-1]}.\U0010ffff")
        for shown, child in await self._lister.items(cap, query.is_continued):
            key = path + shown
            if not isinstance(child.target, DirectoryCap):
                if key > query.after and key.startswith(query.prefix) and (found := object_of(child)) is not None:
                    yield key, found
                continue
            if not key.startswith(query.prefix) and not query.prefix.startswith(key):
                continue
            if key < query.after and not query.after.startswith(key):
                continue
            if query.delimiter == "/" and len(key) > len(query.prefix):
                yield key, None
            elif child.target != cap and child.target not in above and child.target.authority != "verify":
                async for found_below in self.below(child.target, key, (*above, cap)):
                    yield found_below


def _in_order(children: Children) -> Items:
    items: Items = []
    for name, child in children.items():
        found = segment_of(name)
        if found is None:
            continue
        segment, is_beside = found
        is_directory = isinstance(child.target, DirectoryCap)
        if is_beside:
            plain = children.get(name_of(segment))
            if is_directory or (plain is not None and not isinstance(plain.target, DirectoryCap)):
                continue
        items.append((f"{segment}/" if is_directory else segment, child))
    items.sort(key=lambda item: item[0])
    return items
