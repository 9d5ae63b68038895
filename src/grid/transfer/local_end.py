"""Local files as an end of a transfer.

A file appears under its name complete, with its time and mode, or not at all. Symbolic links, devices and sockets are
left out. What may wait for a disk runs on threads, never on the event loop.
"""

from __future__ import annotations

import asyncio
import errno
import itertools
import os
import stat
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence, Set
from contextlib import AbstractContextManager

from attrs import evolve

from grid.errors import GridError
from grid.ports import Buffer
from grid.transfer.ends import (
    PIECE_SIZE,
    Body,
    EndError,
    Entry,
    LeftOut,
    NoParts,
    NotThereError,
    OpenedSource,
    SourceChangedError,
    as_end_errors,
)
from grid.transfer.local_files import (
    SMALL_SIZE,
    fetch_ahead,
    open_file,
    read_all,
    read_cached,
)
from grid.transfer.local_groups import LocalGroups, write_whole
from grid.transfer.local_partials import MODES, PARTIAL, Leftovers, begin, refuse_path
from grid.transfer.partial_files import can_resume, fill, held_parts
from grid.transfer.spool import Stack

LISTED_AT_ONCE = 500
"""Entries of a directory examined in one call on a thread."""

SORTED_AT_ONCE = 1000
"""Entries of a directory that are listed in the order of their names: small files then lie in a pack almost in the order
in which a directory of the grid lists them.
"""

MOST_UNCACHED = 32
"""Files in a row that were fetched ahead and yet not cached, after which the cache is not tried any more."""

KEPT_NS = range(315_619_200 * 10**9, 4_102_444_800 * 10**9)
"""Times that every file system keeps: from 1980 to 2099."""

UNSETTLED = "it was written a moment ago"


class LocalEnd:
    """A local file or directory."""

    keeps_times = True

    def __init__(
        self, path: str, *, is_target: bool = False, is_settled: Callable[[str, os.stat_result], bool] | None = None
    ) -> None:
        """is_target: a listing removes leftovers of killed transfers, once `spare` says which may go.

        is_settled: whether a file may be sent yet.
        """
        self._path = os.path.abspath(os.path.expanduser(path))
        self._is_settled = is_settled or _always
        self._is_target = is_target
        self._removes: Callable[[str], bool] | None = None
        self._uncached = 0
        self._groups = LocalGroups(self._path)
        self.label = path

    @property
    def location(self) -> Sequence[str]:
        """The path without symbolic links."""
        return "file", *filter(None, os.path.realpath(self._path).split("/"))

    @property
    def identity(self) -> str:
        """The absolute path."""
        return self._path

    async def entries(self) -> AsyncIterator[Entry | LeftOut]:
        """Yield every regular file below the path; NotThereError, OSError."""
        with as_end_errors(self.label):
            status = await asyncio.to_thread(os.stat, self._path)
        if not stat.S_ISDIR(status.st_mode):
            name = os.path.basename(self._path)
            yield _entry(name, status) if stat.S_ISREG(status.st_mode) else LeftOut(name, "not a regular file")
            return
        walk = _walk(self._path, self._is_settled, self._removes if self._is_target else None)
        while batch := await asyncio.to_thread(lambda: list(itertools.islice(walk, LISTED_AT_ONCE))):
            for found in batch:
                yield found

    async def open(self, entry: Entry) -> OpenedSource:
        """Open the file; refuse it if it is no longer a regular file."""
        shown = self._shown(entry.name)
        with as_end_errors(shown):
            descriptor, status, start = await asyncio.to_thread(open_file, self._path, entry.name)
        if not stat.S_ISREG(status.st_mode):
            os.close(descriptor)
            raise EndError(f"{shown} is not a regular file")
        return _OpenedFile(descriptor, _entry(entry.name, status), shown, start)

    def reads_together(self, entry: Entry) -> bool:
        """Any small file."""
        return entry.size is not None and entry.size <= SMALL_SIZE

    def gives_shortcuts(self, target: object) -> bool:
        """Never: the bytes must be read."""
        return False

    async def read_together(self, entries: Sequence[Entry]) -> Sequence[Buffer | None]:
        """Read small files: what is cached at once. Of the others, which the kernel fetches together, a thread waits for one, until
        the next are cached.
        """
        found = self._read_cached(entries)
        if len(found) < len(entries) and self._tries_cache:
            fetch_ahead(self._path, entries[len(found) :])
        while len(found) < len(entries):
            end = len(found) + 1 if self._tries_cache else len(entries)
            found += await asyncio.to_thread(read_all, self._path, entries[len(found) : end])
            more = self._read_cached(entries[len(found) :])
            self._uncached = 0 if more else self._uncached + 1
            found += more
        return found

    @property
    def _tries_cache(self) -> bool:
        return self._uncached < MOST_UNCACHED

    def _read_cached(self, entries: Sequence[Entry]) -> list[bytes | None]:
        return read_cached(self._path, entries) if self._tries_cache else []

    async def close(self) -> None:
        """Let go of the file system that groups of small files are synced with."""
        self._groups.close()

    def spare(self, tokens: Set[str], mark: str) -> None:
        """Keep these in the next listing, and what another transfer may resume."""
        self._removes = Leftovers(tokens, mark).remove

    def refuse(self, name: str) -> str | None:
        """Names that no file system accepts, or that would lead out of the directory."""
        return refuse_path(name)

    def place_of(self, name: str) -> str:
        """The name itself."""
        return name

    def memory_of(self, size: int) -> int:
        """None: pieces are written as they come."""
        return 0

    async def adopt(self, opened: OpenedSource) -> str | None:
        """None: the bytes must be written."""
        return None

    def as_listed(self, entry: Entry) -> Entry:
        """By its time, if every file system keeps that."""
        is_kept = entry.mtime_ns is not None and entry.mtime_ns in KEPT_NS
        return evolve(entry, mtime_ns=entry.mtime_ns if is_kept else None, tag="")

    async def store(self, entry: Entry, body: Body) -> str:
        """Write to a temporary file, sync, and rename."""
        if body.size <= SMALL_SIZE and isinstance(body.parts, NoParts):
            data = b"".join([bytes(piece) async for piece in body.stream()])
            await body.require_unchanged()
            await asyncio.to_thread(write_whole, self._path, body.scratch, entry, data)
            return ""
        partial = await asyncio.to_thread(begin, self._path, entry.name, body.scratch, resumes=bool(body.parts.load()))
        try:
            await fill(partial, body, await held_parts(partial, body), in_order=body.is_ahead)
            await body.require_unchanged()
            await partial.place(entry, body.size)
        except BaseException as error:
            if not can_resume(body, error):
                partial.drop()
                body.parts.forget()
            raise
        finally:
            os.close(partial.descriptor)
        return ""

    def stores_together(self, size: int) -> bool:
        """Any small file."""
        return size <= SMALL_SIZE

    async def store_together(
        self, files: Sequence[tuple[Entry, Buffer]], scratch: Callable[[str], str]
    ) -> Sequence[str | None]:
        """Write small files in one call on a thread: all are synced, and renamed."""
        return await asyncio.to_thread(self._groups.write, files, scratch)

    def is_stored(self, name: str) -> bool:
        """Always true: every stored file is in place."""
        return True

    async def settle(self, stored: Sequence[tuple[Entry, str]]) -> Mapping[str, GridError]:
        """Do nothing: files are already in place."""
        return {}

    async def remove(self, name: str) -> None:
        """Remove the file, and directories that become empty."""
        path = os.path.join(self._path, name)
        await asyncio.to_thread(_remove, path, self._path)

    def _shown(self, name: str) -> str:
        return name if os.path.basename(self._path) == name else os.path.join(self.label, name)


class _OpenedFile:
    """An open local file."""

    shortcut: object = None

    def __init__(self, descriptor: int, entry: Entry, shown: str, start: bytes) -> None:
        """start: its first bytes, if they have been read; given to the first reader of all of them, and not kept."""
        self._descriptor, self.entry, self._shown, self._start = descriptor, entry, shown, start

    async def read(self, offset: int, length: int) -> AsyncIterator[Buffer]:
        start, self._start = self._start, b""
        if start and offset == 0 and len(start) <= length:
            yield start
            offset, length = len(start), length - len(start)
        while length > 0:
            data = await asyncio.to_thread(os.pread, self._descriptor, min(length, PIECE_SIZE), offset)
            if not data:
                return
            yield data
            offset += len(data)
            length -= len(data)

    async def require_unchanged(self) -> None:
        if _entry(self.entry.name, os.fstat(self._descriptor)).facts != self.entry.facts:
            raise SourceChangedError(f"{self._shown} changed while it was read")

    async def close(self) -> None:
        os.close(self._descriptor)


def _remove(path: str, root: str) -> None:
    try:
        os.unlink(path)
    except FileNotFoundError:
        return
    folder = os.path.dirname(path)
    while folder != root and folder.startswith(root):
        try:
            os.rmdir(folder)
        except OSError:
            return
        folder = os.path.dirname(folder)


def _opened(path: str) -> AbstractContextManager[Iterator[os.DirEntry[str]]] | str:
    """The entries of a directory, or why it cannot be read."""
    try:
        return os.scandir(path)
    except OSError as error:
        return error.strerror or "it cannot be read"


def _walk(
    root: str, is_settled: Callable[[str, os.stat_result], bool], remove: Callable[[str], object] | None
) -> Iterator[Entry | LeftOut]:
    """Yield every file below a directory, keeping few of its names in memory.

    remove: removes an incomplete file, unless it is to be kept; None to keep all.
    """
    waiting = Stack([""])
    while waiting:
        below = waiting.pop()
        scan = _opened(os.path.join(root, below))
        if isinstance(scan, str):
            if not below:
                raise NotThereError(f"{root}: {scan}")
            yield LeftOut(below, scan, is_gap=True)
            continue
        trouble = ""
        with scan as entries:
            try:
                for found in _in_order(entries):
                    name = f"{below}/{found.name}" if below else found.name
                    if found.name.startswith(PARTIAL):
                        if remove is not None:
                            remove(found.path)
                    elif _is_directory(found):
                        waiting.append(name)
                    else:
                        yield _examine(found, name, is_settled)
            except OSError as error:
                if not below:
                    raise
                trouble = error.strerror or "it cannot be read"
        if trouble:
            yield LeftOut(below, trouble, is_gap=True)


def _is_directory(found: os.DirEntry[str]) -> bool:
    """Whether an entry is a directory; not if nobody can say."""
    try:
        return found.is_dir(follow_symlinks=False)
    except OSError:
        return False


def _in_order(scan: Iterator[os.DirEntry[str]]) -> Iterator[os.DirEntry[str]]:
    """The entries of a directory in the order of their names, as far as memory permits."""
    while some := list(itertools.islice(scan, SORTED_AT_ONCE)):
        yield from sorted(some, key=lambda found: found.name)


def _always(name: str, status: os.stat_result) -> bool:
    return True


def _examine(found: os.DirEntry[str], name: str, is_settled: Callable[[str, os.stat_result], bool]) -> Entry | LeftOut:
    try:
        status = found.stat(follow_symlinks=False)
    except OSError as error:
        return LeftOut(name, error.strerror or "it cannot be read", is_gap=error.errno != errno.ENOENT)
    if stat.S_ISREG(status.st_mode):
        return _entry(name, status) if is_settled(name, status) else LeftOut(name, UNSETTLED, is_later=True)
    return LeftOut(name, "a symbolic link" if stat.S_ISLNK(status.st_mode) else "not a regular file")


def _entry(name: str, status: os.stat_result) -> Entry:
    return Entry(name=name, size=status.st_size, mtime_ns=status.st_mtime_ns, mode=stat.S_IMODE(status.st_mode) & MODES)
