"""The file system's operations on the grid. Runs on the reactor's thread.

Directories are not cached: every lookup costs one read of each directory on the path. CHK files stay open for a while,
so the next range costs only its blocks.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Coroutine, Sequence, Set
from functools import partial
from typing import Any, TypeVar

from twisted.internet.defer import Deferred, DeferredLock, DeferredSemaphore, gatherResults

from grid.caps import ChkCap, DirectoryCap, KnownCap
from grid.directory.edits import NONCE, RemoveChild, SetChild
from grid.directory.file_store import FileStore
from grid.directory.metadata import Metadata
from grid.directory.moving import follow_trail
from grid.directory.names import normalize_name
from grid.directory.pack import Child
from grid.directory.removals import Removals, put_back
from grid.directory.store import Store
from grid.errors import ChildOfWrongTypeError, ExistingChildError, FormatError, GridError, NoSuchChildError
from grid.extents.files import OpenChkFiles
from grid.filesystem.descriptions import IsDirectoryError, file_cap
from grid.filesystem.linker import Linker
from grid.filesystem.paths import GridPath, plan_reads, settle_range
from grid.ports import Sink, Source
from grid.sinks import FrozenBytesSink
from grid.transfer.ends import refuse_name
from grid.values import field, frozen

T = TypeVar("T")

Link = tuple[GridPath, KnownCap]
"""A path, and the file to which it is to lead."""

READS_AT_ONCE = 32
"""Ranges of one batch that are read in parallel."""


@frozen(kw_only=True)
class Listed:
    """An entry of a directory. size: of a mutable file, if requested. is_loop: it leads to a directory above it."""

    name: str
    child: Child = field(repr=False)
    size: int | None = None
    is_loop: bool = False


@frozen(kw_only=True)
class Wanted:
    """A range of a file; its ends may be missing or count from the file's end."""

    path: GridPath
    start: int | None
    end: int | None


@frozen
class Opened:
    """The file that was at a path when it was opened, and its size in bytes."""

    cap: KnownCap = field(repr=False)
    size: int


@frozen
class _Piece:
    """Bytes of a file that were read together, or the error."""

    start: int
    data: bytes | GridError = field(repr=False)


class Tree:
    """The files and directories of one store."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._linker = Linker(store)
        self._removals = Removals()
        self._making = DeferredLock()
        self._chk_files = OpenChkFiles(store.grid) if isinstance(store, FileStore) else None

    async def find(self, path: GridPath) -> Child:
        """The object at the path. NoSuchChildError, ChildOfWrongTypeError; the errors of a listing."""
        if not path.names:
            return Child(target=path.root)
        return await self.store.directory(path.directory).get(path.names)

    async def listing(self, path: GridPath, *, sizes: bool = False) -> list[Listed]:
        """The entries of a directory whose names are valid in paths; ChildOfWrongTypeError if it is a file.

        sizes: fetch those of mutable files, with a round trip for each.
        """
        trail = await follow_trail(self.store, path.directory, path.names)
        above = {each.storage_index for each in trail.directories}
        found = await self.store.directory(trail.end).list()
        children = {name: child for name, child in found.items() if _is_shown(name)}
        asked = {name: (child.target,) for name, child in children.items() if sizes and _is_mutable_file(child)}
        answers = dict(zip(asked, await _side_by_side(self.size, list(asked.values())), strict=True))
        return [
            Listed(name=name, child=child, size=_known(answers.get(name)), is_loop=_leads_to(child, above))
            for name, child in children.items()
        ]

    async def open(self, path: GridPath) -> Opened:
        """The file at the path; raises the errors of `find`, and of an unavailable size."""
        cap = file_cap(await self.find(path))
        return Opened(cap, await self.size(cap))

    async def size(self, cap: KnownCap) -> int:
        """Bytes of a file; asks servers only if it is mutable."""
        return await self.store.size(cap)

    async def read(self, cap: KnownCap, sink: Sink, offset: int = 0, length: int | None = None) -> None:
        """Write a range of a file to the sink."""
        if self._chk_files is not None and isinstance(cap, ChkCap):
            rest = max(0, cap.size - offset)
            await self._chk_files.read(cap, sink, offset, rest if length is None else min(rest, length))
        else:
            await self.store.read(cap, sink, offset, length)

    async def read_range(self, cap: KnownCap, start: int, end: int) -> bytes:
        """The bytes of a range of a file."""
        sink = FrozenBytesSink()
        await self.read(cap, sink, start, end - start)
        return sink.take()

    async def read_ranges(self, wanted: Sequence[Wanted], gap: int) -> list[bytes | GridError]:
        """The bytes, or the error, of each range. gap: ranges at most this many bytes apart are read together.

        Each path is looked up once, and the reads of all files run in parallel, READS_AT_ONCE at a time.
        """
        paths = list(dict.fromkeys(each.path for each in wanted))
        files = dict(zip(paths, await _side_by_side(self.open, [(path,) for path in paths]), strict=True))
        spans: dict[GridPath, list[tuple[int, int]]] = {path: [] for path in paths}
        for each in wanted:
            file = files[each.path]
            if isinstance(file, Opened):
                spans[each.path].append(settle_range(each.start, each.end, file.size))
        planned = [
            (path, file, plan_reads(spans[path], gap)) for path, file in files.items() if isinstance(file, Opened)
        ]
        reads = [(path, file.cap, start, end) for path, file, ranges in planned for start, end in ranges]
        answers = await _side_by_side(self.read_range, [(cap, start, end) for _, cap, start, end in reads])
        pieces: dict[GridPath, list[_Piece]] = {path: [] for path in paths}
        for (path, _, start, _), data in zip(reads, answers, strict=True):
            pieces[path].append(_Piece(start, data))
        return [_cut(each, files[each.path], pieces[each.path]) for each in wanted]

    async def put(self, source: Source) -> KnownCap:
        """Store an immutable file."""
        return await self.store.put_immutable(source)

    async def link(self, links: Sequence[Link] = (), *, new: Sequence[Link] = ()) -> None:
        """Link files, creating missing directories. One publish per directory, which makes all of its links or none.

        ExistingChildError if a directory is in the way, or if anything is in that of a new link. If several directories
        are changed, that is also checked in all of them before the first; what changes after that undoes nothing.
        FormatError if listings would not show a link.
        """
        for path, _ in (*new, *links):
            _require_shown(path.names[-1:])
        # A gateway makes links of each kind together. Those that may be refused come first.
        edits = [(path, SetChild(path.names[-1], cap, self._nonce(), overwrite=False)) for path, cap in new]
        edits += [(path, SetChild(path.names[-1], cap, overwrite="only-files")) for path, cap in links]
        folders: dict[GridPath, list[SetChild]] = {}
        for path, edit in edits:
            folders.setdefault(path.parent, []).append(edit)
        if len(folders) > 1:
            for folder, together in folders.items():
                await self._require_free(folder, together)
        for folder, together in folders.items():
            async with self._removals.adding(partial(self.make_directories, folder)) as directory:
                await self._linker.edit(directory, together)

    def _nonce(self) -> Metadata:
        return {NONCE: self.store.runtime.entropy.random_bytes(8).hex()}

    async def _require_free(self, folder: GridPath, edits: Sequence[SetChild]) -> None:
        """ExistingChildError if something is in the way of a link now; ChildOfWrongTypeError; FormatError as in `link`."""
        try:
            end = (await follow_trail(self.store, folder.directory, folder.names)).end
            children = await self.store.directory(end).list()
        except NoSuchChildError:
            _require_shown(folder.names)
            return
        for edit in edits:
            child = children.get(normalize_name(edit.name))
            if child is not None and (edit.overwrite is False or isinstance(child.target, DirectoryCap)):
                raise ExistingChildError(f"there is already a {edit.name!r} in the directory", name=edit.name)

    async def remove(self, paths: Sequence[GridPath], *, recursive: bool = False) -> None:
        """Unlink the paths with one publish per directory. NoSuchChildError; IsDirectoryError unless recursive.

        If any of them cannot be unlinked, nothing is.
        """
        folders: dict[GridPath, list[str]] = {}
        for path in paths:
            folders.setdefault(path.parent, []).append(normalize_name(path.names[-1]))
        edits: list[tuple[DirectoryCap, list[RemoveChild]]] = []
        for folder, names in folders.items():
            cap = (await follow_trail(self.store, folder.directory, folder.names)).end
            children = await self.store.directory(cap).list()
            for name in names:
                child = children.get(name)
                if child is None:
                    raise NoSuchChildError(f"there is no {name!r} in the directory", name=name)
                if isinstance(child.target, DirectoryCap) and not recursive:
                    raise IsDirectoryError(f"{name!r} is a directory: remove it with recursive=True", name=name)
            edits.append((cap, [RemoveChild(name) for name in dict.fromkeys(names)]))
        for cap, removals in edits:
            await self._linker.edit(cap, removals)

    async def remove_empty(self, path: GridPath) -> bool:
        """Unlink a directory if it is empty; return whether it was. NoSuchChildError, ChildOfWrongTypeError.

        GridError if something was added meanwhile: the directory is still linked, perhaps under a similar name.
        """
        folder = (await follow_trail(self.store, path.directory, path.parent.names)).end
        name = normalize_name(path.names[-1])
        child = await self.store.directory(folder).get([name])
        if not isinstance(child.target, DirectoryCap):
            raise ChildOfWrongTypeError(f"{name!r} is not a directory", name=name)
        async with self._removals.removing(child.target):
            inside = self.store.directory(child.target)
            if await inside.list():
                return False
            await self._linker.edit(folder, [RemoveChild(name, only=child.target)])
            kept = await put_back(self.store.directory(folder), name, child, inside)
        if kept not in (None, name):
            raise GridError(f"something was stored in {name!r} meanwhile: the directory is now {kept!r}")
        return kept is None

    async def move(self, source: GridPath, target: GridPath) -> None:
        """Move or rename a link, creating missing directories and replacing an existing file. FormatError as in `link`."""
        _require_shown(target.names[-1:])
        here = await follow_trail(self.store, source.directory, source.parent.names)
        await self.make_directories(target.parent)
        there = await follow_trail(self.store, target.directory, target.parent.names)
        await self.store.move(here, source.names[-1], there, target.names[-1], overwrite="only-files")

    async def make_directories(self, path: GridPath) -> DirectoryCap:
        """The directory at the path, created with its missing parents. ChildOfWrongTypeError; FormatError as in `link`."""
        try:
            return (await follow_trail(self.store, path.directory, path.names)).end
        except NoSuchChildError:
            _require_shown(path.names)
        # Two tasks that create the same path would both generate keys for all of it, one of them in vain.
        await self._making.acquire()
        try:
            return (await self.store.directory(path.directory).make_directories(path.names)).cap
        finally:
            self._making.release()


def _is_shown(name: str) -> bool:
    return "/" not in name and refuse_name(name) is None


def _require_shown(names: Sequence[str]) -> None:
    for name in names:
        refusal = refuse_name(normalize_name(name))
        if refusal is not None:
            raise FormatError(f"nothing can be stored under the name {name[:40]!r}: {refusal}")


async def _side_by_side(
    function: Callable[..., Coroutine[Any, Any, T]], calls: Sequence[tuple[object, ...]]
) -> list[T | GridError]:
    """Call the function for all arguments in parallel; return results or errors of the grid, in order."""

    async def outcome(*arguments: object) -> T | GridError:
        try:
            return await function(*arguments)
        except GridError as error:
            return error

    def start(*arguments: object) -> Deferred[T | GridError]:
        return Deferred.fromCoroutine(outcome(*arguments))

    free = DeferredSemaphore(READS_AT_ONCE)
    return await gatherResults([free.run(start, *arguments) for arguments in calls], consumeErrors=True)


def _cut(wanted: Wanted, file: Opened | GridError, pieces: Sequence[_Piece]) -> bytes | GridError:
    """The requested bytes. pieces: of the file, sorted by offset, as `plan_reads` made them."""
    if isinstance(file, GridError):
        return file
    start, end = settle_range(wanted.start, wanted.end, file.size)
    if start == end:
        return b""
    piece = pieces[bisect_right(pieces, start, key=lambda each: each.start) - 1]
    return piece.data if isinstance(piece.data, GridError) else piece.data[start - piece.start : end - piece.start]


def _leads_to(child: Child, above: Set[object]) -> bool:
    return isinstance(child.target, DirectoryCap) and child.target.is_mutable and child.target.storage_index in above


def _is_mutable_file(child: Child) -> bool:
    return isinstance(child.target, KnownCap) and not isinstance(child.target, DirectoryCap) and child.target.is_mutable


def _known(size: int | GridError | None) -> int | None:
    return size if isinstance(size, int) else None
