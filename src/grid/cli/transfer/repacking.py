"""Converts the files of a tree on the grid to another form, and links the new files in place of the old. [spec extents
1]

New files are stored first, then the immutable directories that contain them. Links change last, each only if it still
leads to the old file. So every link leads to a readable file at every moment, even if this is killed; the next run
continues with what is left.

Cost: reads the directories twice, and each chosen file once; one publish of each mutable directory for each pack that
it has files in, and one for immutable directories below it.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator, Mapping
from contextlib import aclosing
from itertools import islice
from typing import Any, Protocol

from attrs import evolve, field

from grid.caps import ChkCap, DirectoryCap, ImmutableFileCap, KnownCap, SliceCap
from grid.cli.transfer.bounded import run_pieces
from grid.directory.edits import OnReplaced, SetChild, previous_of
from grid.directory.pack import Child
from grid.directory.stats import Stats
from grid.directory.store import Store
from grid.directory.walk import Path, walk
from grid.errors import GridError, MayHoldError
from grid.extents.pack_reader import BoundedSink
from grid.extents.pack_writer import SEGMENT_SIZE, Extent, PackContents, is_packed
from grid.mutable.sources import MemorySource
from grid.values import define, frozen

JOBS = 8
"""Files read or stored in parallel."""

Choose = Callable[[KnownCap], bool]
"""Selects the files to convert."""

Failed = Callable[[str, GridError], None]
"""Called with a path and the reason why something there stays as it was."""


@define(eq=False)
class _Directory:
    """A directory: the names of its chosen files and of its immutable subdirectories."""

    path: Path
    cap: DirectoryCap
    files: dict[str, ImmutableFileCap] = field(factory=dict)
    below: dict[str, DirectoryCap] = field(factory=dict)


@frozen(kw_only=True)
class Found:
    """The contents of a tree. order: its directories in the order of the walk. stats: of the whole tree."""

    order: list[_Directory]
    stats: Stats

    def chosen(self) -> dict[ImmutableFileCap, str]:
        """Each distinct chosen file, with a path to it."""
        found: dict[ImmutableFileCap, str] = {}
        for directory in self.order:
            for name, cap in directory.files.items():
                found.setdefault(cap, "/".join((*directory.path, name)))
        return found


@define
class Rewritten:
    """What was done. root: the tree's capability afterwards."""

    root: DirectoryCap
    files: int = 0
    packs: int = 0
    stored_bytes: int = 0
    directories: int = 0

    def to_json(self) -> dict[str, object]:
        """The result as a JSON object, without the capability."""
        return {
            "files": self.files,
            "packs": self.packs,
            "bytes": self.stored_bytes,
            "directories": self.directories,
        }


class Converter(Protocol):
    """Makes new files from old ones."""

    def convert(
        self, files: Mapping[ImmutableFileCap, str]
    ) -> AsyncGenerator[dict[ImmutableFileCap, ImmutableFileCap], None]:
        """Yield batches that map old files to new ones, which are durably stored."""


MakeConverter = Callable[[Store, Rewritten, Failed], Converter]
"""Makes a converter that counts what it stores."""


async def find(store: Store, root: DirectoryCap, choose: Choose) -> Found:
    """Read the tree below a directory. choose: called for each immutable file.

    GridError if a directory cannot be read.
    """
    order: list[_Directory] = []
    stats = Stats()
    async with aclosing(walk(store, root)) as visits:
        async for visited in visits:
            stats.add(visited)
            if not isinstance(visited.target, DirectoryCap):
                continue
            directory = _Directory(visited.path, visited.target)
            for name, child in (visited.children or {}).items():
                target = child.target
                if isinstance(target, DirectoryCap):
                    if not target.is_mutable:
                        directory.below[name] = target
                elif isinstance(target, ImmutableFileCap) and choose(target):
                    directory.files[name] = target
            order.append(directory)
    return Found(order=order, stats=stats)


class Rewriter:
    """Rewrites one tree. failed: called for everything that stays as it was. on_replaced: for what was replaced."""

    def __init__(
        self, store: Store, found: Found, failed: Failed, on_replaced: OnReplaced = lambda directory, entries: None
    ) -> None:
        self._store = store
        self._on_replaced = on_replaced
        self._found = found
        self._failed = failed
        self._new: dict[ImmutableFileCap, ImmutableFileCap] = {}
        self._moved: dict[DirectoryCap, DirectoryCap] = {}
        self._is_linked: set[int] = set()
        self.done = Rewritten(found.order[0].cap)

    async def run(self, converter: Converter) -> Rewritten:
        """Store and link the new files; GridError if new files cannot be stored."""
        async with aclosing(converter.convert(self._found.chosen())) as converted:
            async for some in converted:
                self._new.update(some)
                self.done.files += len(some)
                await self._link_what_is_complete()
        await self._rebuild()
        for directory in self._found.order:
            if directory.cap.is_mutable:
                await self._link(directory, {**self._changed_files(directory), **self._changed_below(directory)})
        self.done.root = self._moved.get(self.done.root, self.done.root)
        return self.done

    async def _link_what_is_complete(self) -> None:
        """Link the new files of those mutable directories whose chosen files have all been converted."""
        for directory in self._found.order:
            if directory.cap.is_mutable and id(directory) not in self._is_linked and directory.files:
                changed = self._changed_files(directory)
                if len(changed) == len(directory.files):
                    self._is_linked.add(id(directory))
                    await self._link(directory, changed)

    def _changed_files(self, directory: _Directory) -> dict[str, KnownCap]:
        if id(directory) in self._is_linked and directory.cap.is_mutable:
            return {}
        return {name: self._new[cap] for name, cap in directory.files.items() if cap in self._new}

    def _changed_below(self, directory: _Directory) -> dict[str, KnownCap]:
        return {name: self._moved[cap] for name, cap in directory.below.items() if cap in self._moved}

    async def _link(self, directory: _Directory, changed: Mapping[str, KnownCap]) -> None:
        if not changed:
            return
        old: dict[str, KnownCap] = {**directory.files, **directory.below}
        try:
            replaced = await self._store.directory(directory.cap).edit(
                [SetChild(name, cap, only=old[name]) for name, cap in changed.items()]
            )
        except GridError as error:
            self._failed("/".join(directory.path), error)
            if isinstance(error, MayHoldError):
                self._note(directory, changed, previous_of(error))
        else:
            self.done.directories += 1
            self._note(directory, changed, replaced or {})

    def _note(self, directory: _Directory, changed: Mapping[str, KnownCap], replaced: Mapping[str, Child]) -> None:
        found = [((*directory.path, name), child, changed.get(name)) for name, child in replaced.items()]
        self._on_replaced(directory.cap, found)

    async def _rebuild(self) -> None:
        """Store immutable directories with new entries again, children before parents."""
        directories = {directory.cap: directory for directory in self._found.order if not directory.cap.is_mutable}
        for directory in _deepest_first(directories):
            changed = {**self._changed_files(directory), **self._changed_below(directory)}
            if not changed:
                continue
            try:
                children = await self._store.directory(directory.cap).list()
                new = {
                    name: Child(target=changed.get(name, child.target), metadata=child.metadata)
                    for name, child in children.items()
                }
                self._moved[directory.cap] = await self._store.create_immutable_directory(new)
            except GridError as error:
                self._failed("/".join(directory.path), error)
            else:
                self.done.directories += 1


def _deepest_first(directories: Mapping[DirectoryCap, _Directory]) -> Iterator[_Directory]:
    """Yield each directory after those that it contains; immutable directories form no cycles."""
    done: set[DirectoryCap] = set()
    for start in directories.values():
        waiting = [(start, False)]
        while waiting:
            directory, is_ready = waiting.pop()
            if directory.cap in done:
                continue
            if is_ready:
                done.add(directory.cap)
                yield directory
                continue
            waiting.append((directory, True))
            waiting += [
                (directories[cap], False) for cap in directory.below.values() if cap in directories and cap not in done
            ]


class ToPacks:
    """Writes files into new packs. done: counts them and their bytes."""

    def __init__(self, store: Store, done: Rewritten, failed: Failed) -> None:
        self._store = store
        self._done = done
        self._failed = failed

    async def convert(
        self, files: Mapping[ImmutableFileCap, str]
    ) -> AsyncGenerator[dict[ImmutableFileCap, ImmutableFileCap], None]:
        """As `Converter.convert`."""
        contents, extents = self._begin()
        caps = iter(sorted(files, key=_by_pack))
        while group := list(islice(caps, 4 * JOBS)):
            for cap, data in (await read_files(self._store, group, files, self._failed)).items():
                extents[cap] = await self._store.runtime.cpu.run(contents.add, data)
            if contents.is_full:
                yield await self._put(contents, extents)
                contents, extents = self._begin()
        if extents:
            yield await self._put(contents, extents)

    def _begin(self) -> tuple[PackContents, dict[ImmutableFileCap, Extent]]:
        return PackContents(self._store.convergence, self._store.runtime.entropy.random_bytes), {}

    async def _put(
        self, contents: PackContents, extents: Mapping[ImmutableFileCap, Extent]
    ) -> dict[ImmutableFileCap, ImmutableFileCap]:
        pack = await self._store.put_immutable(MemorySource(contents.data), segment_size=SEGMENT_SIZE)
        self._done.packs += 1
        self._done.stored_bytes += contents.size
        return {cap: extent.slice_of(pack) for cap, extent in extents.items()}


class ToFiles:
    """Stores each file separately. done: counts their bytes."""

    def __init__(self, store: Store, done: Rewritten, failed: Failed) -> None:
        self._store = store
        self._done = done
        self._failed = failed

    async def convert(
        self, files: Mapping[ImmutableFileCap, str]
    ) -> AsyncGenerator[dict[ImmutableFileCap, ImmutableFileCap], None]:
        """As `Converter.convert`."""
        caps = iter(sorted(files, key=_by_pack))
        while group := list(islice(caps, 4 * JOBS)):
            contents = iter((await read_files(self._store, group, files, self._failed)).items())
            stored: dict[ImmutableFileCap, ImmutableFileCap] = {}

            async def put(cap: ImmutableFileCap, data: bytes, into: dict[ImmutableFileCap, ImmutableFileCap]) -> None:
                into[cap] = await self._store.put_immutable(MemorySource(data))
                self._done.stored_bytes += len(data)

            def next_put(
                contents: Iterator[tuple[ImmutableFileCap, bytes]] = contents,
                stored: dict[ImmutableFileCap, ImmutableFileCap] = stored,
            ) -> Coroutine[Any, Any, None] | None:
                found = next(contents, None)
                return None if found is None else put(*found, stored)

            await run_pieces(next_put, JOBS)
            yield stored


async def read_files(
    store: Store, caps: list[ImmutableFileCap], paths: Mapping[ImmutableFileCap, str], failed: Failed
) -> dict[ImmutableFileCap, bytes]:
    """The contents of the readable files, in their order."""
    read: dict[ImmutableFileCap, bytes] = {}
    waiting = iter(caps)

    async def read_one(cap: ImmutableFileCap) -> None:
        sink = BoundedSink(cap.size)
        try:
            await store.read(cap, sink)
        except GridError as error:
            failed(paths[cap], error)
        else:
            read[cap] = bytes(sink.data)

    def next_piece() -> Coroutine[Any, Any, None] | None:
        cap = next(waiting, None)
        return None if cap is None else read_one(cap)

    await run_pieces(next_piece, JOBS)
    return {cap: read[cap] for cap in caps if cap in read}


def is_small_file(cap: KnownCap) -> bool:
    """Whether `grid pack` would pack it."""
    return isinstance(cap, ChkCap) and is_packed(cap.size)


def is_slice(cap: KnownCap) -> bool:
    """Whether `grid unpack` would unpack it."""
    return isinstance(cap, SliceCap)


def sparse_only(found: Found, threshold: float) -> Found:
    """Restrict the work to slices of packs whose used fraction is below the threshold, 0 to 1."""

    def is_sparse(cap: ImmutableFileCap) -> bool:
        return isinstance(cap, SliceCap) and found.stats.packs.live_share(cap.pack) < threshold

    for directory in found.order:
        directory.files = {name: cap for name, cap in directory.files.items() if is_sparse(cap)}
    return evolve(found)


def _by_pack(cap: ImmutableFileCap) -> tuple[bytes, int]:
    """A sort key that groups files by pack, in the pack's order, so each pack is read once."""
    if isinstance(cap, SliceCap):
        return bytes(cap.storage_index), cap.offset
    return b"", 0
