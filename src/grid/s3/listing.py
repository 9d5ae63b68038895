"""Lists the keys of a bucket in order, page by page.

Keys are sorted by their bytes, as in S3: a directory sorts as if its name ended with a slash. A directory without any
object is listed as a common prefix, because it is a directory to everybody else.

Cost: a read of each directory that a page touches, and of those above it. A long directory is kept, for a limited time
and within a bound, for the next pages of the same listing; it is kept packed, and each page unpacks its own entries.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import OrderedDict
from collections.abc import AsyncIterator, Iterator, Sequence
from sys import getsizeof

from attrs import define, field, frozen

from grid.caps import DirectoryCap, KnownCap, parse_cap
from grid.directory.gathering import Children, Directories
from grid.directory.pack import Child
from grid.ports import Runtime
from grid.s3.names import name_of, segment_of
from grid.s3.object_info import ListedObject, listed_object

MOST_DIRECTORIES = 2000
"""Directories read for one page; the next page continues from there."""

LONG = 1000
"""Entries from which a directory is kept for the next page, and sorted on the pool."""

KEPT_BYTES = 96 * 2**20
"""Memory for kept directories: 100,000 typical objects take 18 MiB."""

KEPT_S = 60.0


@frozen
class Entry:
    """An object, or a common prefix of several keys."""

    key: str
    found: ListedObject | None


@frozen
class Page:
    """Entries in order. next: the key after which the next page begins; None at the end."""

    entries: list[Entry]
    next: str | None


@frozen(kw_only=True)
class Query:
    """What to list. after: only keys greater than this one. is_continued: an earlier page was just sent."""

    prefix: str = ""
    delimiter: str = ""
    after: str = ""
    most: int = 1000
    is_continued: bool = False


@frozen(eq=False)
class _Entries:
    """A directory sorted by key. names: segments, with a trailing slash for directories.

    found: links, or bytes made by `_pack`. memory: total bytes, if it is to be kept.
    """

    names: Sequence[str]
    found: Sequence[Child] | Sequence[bytes] = field(repr=False)
    memory: int = 0

    def at(self, index: int) -> DirectoryCap | ListedObject:
        """The directory or the object at this index."""
        found = self.found[index]
        return _unpack(found) if isinstance(found, bytes) else _listed(found)

    def first(self, path: str, bound: str) -> int:
        """The index of the first entry that may lead to keys >= `bound`. path: of the directory."""
        if not bound.startswith(path):
            return 0
        head, slash, _ = bound[len(path) :].partition("/")
        return bisect_left(self.names, head + slash)


class _TooFarError(Exception):
    """A page has read as many directories as it may. place: where the next page continues."""

    def __init__(self, place: str) -> None:
        self.place = place


@define(eq=False)
class Lister:
    """The listings of one door."""

    _directories: Directories
    _runtime: Runtime
    _kept: OrderedDict[DirectoryCap, tuple[float, _Entries]] = field(factory=OrderedDict)

    async def page(self, root: DirectoryCap, query: Query) -> Page:
        """List one page; raises the errors of reading directories."""
        entries: list[Entry] = []
        last = query.after
        if not query.most:
            return Page(entries, None)
        try:
            async for key, found in _Walk(self, query).below(root):
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

    async def entries(self, cap: DirectoryCap, is_continued: bool) -> _Entries:
        """A directory's entries in order. A continued listing gets them as the earlier page saw them, if still kept."""
        now = self._runtime.clock.now()
        while self._kept and now - next(iter(self._kept.values()))[0] >= KEPT_S:
            self._kept.popitem(last=False)
        kept = self._kept.get(cap)
        if kept is not None and is_continued:
            return kept[1]
        children = await self._directories.read(cap)
        if len(children) < LONG:
            return _in_order(children)
        entries = await self._runtime.cpu.run(_packed, children)
        self._kept[cap] = now, entries
        self._kept.move_to_end(cap)
        while sum(each.memory for _, each in self._kept.values()) > KEPT_BYTES:
            self._kept.popitem(last=False)
        return entries


@frozen(eq=False)
class _WalkStep:
    """A directory on the way to where a walk is. chosen: indexes and keys of those of its entries that are yet to come."""

    cap: DirectoryCap
    entries: _Entries
    chosen: Iterator[tuple[int, str]]


@define(eq=False)
class _Walk:
    """The walk through the tree for one page."""

    _lister: Lister
    _query: Query
    _read: int = 0

    async def below(self, root: DirectoryCap) -> AsyncIterator[tuple[str, ListedObject | None]]:
        """Yield the keys below a directory that may be in the page, in order; None stands for directories that are
        common prefixes.
        """
        query = self._query
        way = [await self._enter(root, "")]
        above = {root}
        while way:
            here = way[-1]
            index, key = next(here.chosen, (-1, ""))
            if index < 0:
                above.discard(here.cap)
                way.pop()
                continue
            found = here.entries.at(index)
            if isinstance(found, ListedObject):
                yield key, found
            elif query.delimiter == "/" and len(key) > len(query.prefix):
                yield key, None
            elif found not in above and found.authority != "verify":
                way.append(await self._enter(found, key))
                above.add(found)

    async def _enter(self, cap: DirectoryCap, path: str) -> _WalkStep:
        self._read += 1
        if self._read > MOST_DIRECTORIES:
            # Less than all keys inside, and greater than everything before: a slash sorts after the dot.
            raise _TooFarError(f"{path[:-1]}.\U0010ffff")
        entries = await self._lister.entries(cap, self._query.is_continued)
        return _WalkStep(cap, entries, self._chosen(entries, path))

    def _chosen(self, entries: _Entries, path: str) -> Iterator[tuple[int, str]]:
        """Yield the entries that are in the page or may lead to such, with their keys."""
        prefix, after = self._query.prefix, self._query.after
        for index in range(max(entries.first(path, after), entries.first(path, prefix)), len(entries.names)):
            shown = entries.names[index]
            key, is_directory = path + shown, shown.endswith("/")
            if key.startswith(prefix) or (is_directory and prefix.startswith(key)):
                if key > after or (is_directory and after.startswith(key)):
                    yield index, key
            elif key > prefix:
                return


def _in_order(children: Children) -> _Entries:
    items: list[tuple[str, Child]] = []
    for name, child in children.items():
        found = segment_of(name)
        if found is None or not isinstance(child.target, KnownCap):
            continue
        segment, is_beside = found
        is_directory = isinstance(child.target, DirectoryCap)
        if is_beside:
            plain = children.get(name_of(segment))
            if is_directory or (plain is not None and not isinstance(plain.target, DirectoryCap)):
                continue
        items.append((f"{segment}/" if is_directory else segment, child))
    items.sort(key=lambda item: item[0])
    return _Entries([name for name, _ in items], [child for _, child in items])


def _packed(children: Children) -> _Entries:
    """The same as bytes: a hundred per object, where links take up to 3 KiB."""
    entries = _in_order(children)
    names = entries.names
    packed = [_pack(entries.at(index)) for index in range(len(names))]
    return _Entries(names, packed, sum(map(getsizeof, names)) + sum(map(getsizeof, packed)) + 16 * len(names))


def _listed(child: Child) -> DirectoryCap | ListedObject:
    target = child.target
    assert isinstance(target, KnownCap)
    return target if isinstance(target, DirectoryCap) else listed_object(target, child.metadata or {})


def _pack(found: DirectoryCap | ListedObject) -> bytes:
    if isinstance(found, DirectoryCap):
        return found.to_string().encode("ascii")
    size, cap = ("", found.file.to_string()) if found.file is not None else (str(found.size), "")
    kind = "*" if found.is_composite else ""
    return f"{found.etag} {found.modified!r} {size} {','.join(found.algorithms)}{kind} {cap}".encode("ascii")


def _unpack(packed: bytes) -> DirectoryCap | ListedObject:
    fields = packed.decode("ascii").split(" ")
    if len(fields) == 1:
        directory = parse_cap(packed)
        assert isinstance(directory, DirectoryCap)
        return directory
    etag, modified, size, algorithms, cap = fields
    file = parse_cap(cap) if cap else None
    assert file is None or isinstance(file, KnownCap)
    return ListedObject(
        file=file,
        size=int(size) if size else None,
        etag=etag,
        modified=float(modified),
        algorithms=tuple(algorithms.removesuffix("*").split(",")) if algorithms else (),
        is_composite=algorithms.endswith("*"),
    )
