"""Lists the keys of a bucket in order, page by page.

Keys are sorted by their bytes, as in S3: a directory sorts as if its name ended with a slash. A directory without any
object is listed as a common prefix, because it is a directory to everybody else.

Cost: a read of each directory that a page touches, and of those above it. A long directory is kept, for a limited time
and within a bound, for the next page of the same listing; it is kept packed, and each page unpacks its own entries. What the
page before expects a page to read is read at the same time: a page of a tree as even as a bucket's usually is takes one round
trip more than a read of a directory that is remembered.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import OrderedDict
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from sys import getsizeof

from grid.caps import DirectoryCap, KnownCap, parse_cap
from grid.directory.gathering import Children, Directories
from grid.directory.pack import Child
from grid.ports import Runtime
from grid.runtime import Begun, Tasks
from grid.s3.names import name_of, segment_of
from grid.s3.object_info import ListedObject, listed_object
from grid.values import define, field, frozen

MOST_DIRECTORIES = 2000
"""Directories read for one page; the next page continues from there."""

LONG = 1000
"""Entries from which a directory is kept for the next page, and sorted on the pool."""

KEPT_BYTES = 96 * 2**20
"""Memory for kept directories: 100,000 typical objects take 18 MiB."""

KEPT_S = 60.0

MOST_PLACES = 200
"""Places where listings may go on that are remembered."""


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

    found: links, or bytes made by `_pack`. read_at: a time before the read. memory: total bytes, if it is to be kept.
    """

    names: Sequence[str]
    found: Sequence[Child] | Sequence[bytes] = field(repr=False)
    read_at: float
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


_Place = tuple[DirectoryCap, str, str, str]
"""Where a listing goes on: the bucket's directory, the prefix, the delimiter, and the key after which the page begins."""


@frozen(eq=False)
class _Paused:
    """What a page leaves for the one after it.

    at: when it ended. long: the long directories that the next page looks into again. likely: what else it will probably read.
    """

    at: float
    long: Mapping[DirectoryCap, _Entries]
    likely: Sequence[DirectoryCap]


@frozen(eq=False)
class Ahead:
    """What a page begins with. kept: directories as the page before saw them. begun: reads that are under way."""

    kept: Mapping[DirectoryCap, _Entries]
    begun: Mapping[DirectoryCap, Begun[_Entries]]


class _TooFarError(Exception):
    """A page has read as many directories as it may. place: where the next page continues."""

    def __init__(self, place: str) -> None:
        self.place = place


@define(eq=False)
class Lister:
    """The listings of one door."""

    _directories: Directories
    _runtime: Runtime
    _paused: OrderedDict[_Place, _Paused] = field(factory=OrderedDict)

    def begin(self, root: DirectoryCap, query: Query, tasks: Tasks) -> Ahead:
        """Begin to read what a page will probably need. The tasks' owner ends the reads that it does not."""
        kept: Mapping[DirectoryCap, _Entries] = {}
        likely: Sequence[DirectoryCap] = (root,)
        if query.is_continued:
            self._forget_old()
            paused = self._paused.get(_place(root, query, query.after))
            if paused is not None:
                kept, likely = paused.long, paused.likely
        return Ahead(kept, {cap: Begun(self._read(cap), tasks) for cap in likely if query.most})

    async def page(self, root: DirectoryCap, query: Query, ahead: Ahead | None = None) -> Page:
        """List one page; raises the errors of reading directories. ahead: what `begin` has returned for the same query."""
        tasks = Tasks()
        walk = _Walk(self, query, self.begin(root, query, tasks) if ahead is None else ahead)
        try:
            page = await self._page(root, query, walk)
        finally:
            tasks.cancel()
        if page.next is not None:
            self._pause(_place(root, query, page.next), walk.paused(self._runtime.clock.now(), page.next))
        return page

    async def _page(self, root: DirectoryCap, query: Query, walk: _Walk) -> Page:
        entries: list[Entry] = []
        last = query.after
        if not query.most:
            return Page(entries, None)
        try:
            async for key, found in walk.below(root):
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

    async def entries(self, cap: DirectoryCap, ahead: Ahead | None = None) -> _Entries:
        """A directory's entries in order. A continued listing gets them as the page before saw them, if still kept."""
        kept = ahead.kept.get(cap) if ahead is not None else None
        if kept is not None and self._runtime.clock.now() - kept.read_at < KEPT_S:
            return kept
        begun = ahead.begun.get(cap) if ahead is not None else None
        return await (self._read(cap) if begun is None else begun.result())

    async def _read(self, cap: DirectoryCap) -> _Entries:
        now = self._runtime.clock.now()
        children = await self._directories.read(cap)
        if len(children) < LONG:
            return _in_order(children, now)
        return await self._runtime.cpu.run(_packed, children, now)

    def _forget_old(self) -> None:
        now = self._runtime.clock.now()
        while self._paused and now - next(iter(self._paused.values())).at >= KEPT_S:
            self._paused.popitem(last=False)

    def _pause(self, place: _Place, paused: _Paused) -> None:
        """Remember the place. Of a directory that another listing has left there too, the later one serves both."""
        self._forget_old()
        former = self._paused.pop(place, None)
        if former is not None:
            newest = {cap: _later(seen, former.long.get(cap, seen)) for cap, seen in paused.long.items()}
            paused = _Paused(paused.at, newest, paused.likely)
        self._paused[place] = paused
        while len(self._paused) > MOST_PLACES or self.memory > KEPT_BYTES:
            self._paused.popitem(last=False)

    @property
    def memory(self) -> int:
        """Bytes that the kept directories take."""
        kept = {id(seen): seen.memory for each in self._paused.values() for seen in each.long.values()}
        return sum(kept.values())


def _place(root: DirectoryCap, query: Query, after: str) -> _Place:
    return root, query.prefix, query.delimiter, after


def _later(one: _Entries, other: _Entries) -> _Entries:
    return one if one.read_at >= other.read_at else other


@define(eq=False)
class _WalkStep:
    """A directory on the way to where a walk is. chosen: indexes and keys of those of its entries that are yet to come.

    path: of the directory. index: of the entry that the walk is at.
    """

    cap: DirectoryCap
    path: str
    entries: _Entries
    chosen: Iterator[tuple[int, str]]
    index: int = 0


@define(eq=False)
class _Walk:
    """The walk through the tree for one page. way: where it is. left: what it has left since the key before."""

    _lister: Lister
    _query: Query
    _ahead: Ahead
    _read: int = 0
    _way: list[_WalkStep] = field(factory=list)
    _left: list[_WalkStep] = field(factory=list)

    async def below(self, root: DirectoryCap) -> AsyncIterator[tuple[str, ListedObject | None]]:
        """Yield the keys below a directory that may be in the page, in order; None stands for directories that are
        common prefixes.
        """
        way = self._way
        await self._enter(root, "")
        above = {root}
        while way:
            here = way[-1]
            here.index, key = next(here.chosen, (-1, ""))
            if here.index < 0:
                above.discard(here.cap)
                self._left.append(way.pop())
                continue
            found = here.entries.at(here.index)
            if isinstance(found, ListedObject):
                yield key, found
                self._left.clear()
            elif self._is_prefix(key):
                yield key, None
                self._left.clear()
            elif found not in above and found.authority != "verify":
                await self._enter(found, key)
                above.add(found)

    def _is_prefix(self, key: str) -> bool:
        """Whether a directory is listed as a common prefix, and not entered."""
        return self._query.delimiter == "/" and len(key) > len(self._query.prefix)

    async def _enter(self, cap: DirectoryCap, path: str) -> None:
        self._read += 1
        if self._read > MOST_DIRECTORIES:
            # Less than all keys inside, and greater than everything before: a slash sorts after the dot.
            raise _TooFarError(f"{path[:-1]}.\U0010ffff")
        entries = await self._lister.entries(cap, self._ahead)
        self._way.append(_WalkStep(cap, path, entries, self._chosen(entries, path)))

    def paused(self, now: float, after: str) -> _Paused:
        """What the next page, which begins after this key, needs of this one. It ends the walk."""
        steps = [*self._way, *(step for step in self._left if after.startswith(step.path))]
        long = {step.cap: step.entries for step in steps if step.entries.memory}
        likely = [step.cap for step in steps if step.cap not in long]
        return _Paused(now, long, [*likely, *self._next_directory()])

    def _next_directory(self) -> list[DirectoryCap]:
        """The directory after the one that the walk is in, if the next page probably lists the latter to its end."""
        inside = self._way[-1] if self._way else None
        if inside is not None and len(inside.entries.names) - inside.index > self._query.most:
            return []
        for step in reversed(self._way[:-1]):
            index, key = next(step.chosen, (-1, ""))
            if index >= 0:
                found = step.entries.at(index)
                if isinstance(found, DirectoryCap) and found.authority != "verify" and not self._is_prefix(key):
                    return [found]
                return []
        return []

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


def _in_order(children: Children, read_at: float) -> _Entries:
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
    return _Entries([name for name, _ in items], [child for _, child in items], read_at)


def _packed(children: Children, read_at: float) -> _Entries:
    """The same as bytes: a hundred per object, where links take up to 3 KiB."""
    entries = _in_order(children, read_at)
    names = entries.names
    packed = [_pack(entries.at(index)) for index in range(len(names))]
    return _Entries(names, packed, read_at, sum(map(getsizeof, names)) + sum(map(getsizeof, packed)) + 16 * len(names))


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
