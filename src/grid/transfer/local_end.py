"""Local files as an end of a transfer.

A file appears under its name complete, with its time and mode, or not at all. Symbolic links, devices and sockets are
left out. Disk work runs on threads, never on the event loop.
"""

from __future__ import annotations

import asyncio
import fcntl
import itertools
import os
import secrets
import stat
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence

from grid.errors import GridError
from grid.ports import Buffer
from grid.transfer.ends import (
    PIECE_SIZE,
    Body,
    EndError,
    Entry,
    LeftOut,
    NotThereError,
    OpenedSource,
    SourceChangedError,
    as_end_errors,
    refuse_name,
)

LISTED_AT_ONCE = 500
"""Entries of a directory examined in one call on a thread."""

UNSETTLED = "it was written a moment ago"

MODES = 0o777
PARTIAL = ".grid-partial-"
"""Marks incomplete files; a listing omits them."""


class LocalEnd:
    """A local file or directory."""

    def __init__(
        self, path: str, *, is_target: bool = False, is_settled: Callable[[str, os.stat_result], bool] | None = None
    ) -> None:
        """is_target: a listing removes leftovers of killed transfers. is_settled: whether a file may be sent yet."""
        self._path = os.path.abspath(os.path.expanduser(path))
        self._is_settled = is_settled or _always
        self._is_target = is_target
        self.label = path

    async def entries(self) -> AsyncIterator[Entry | LeftOut]:
        """Yield every regular file below the path; NotThereError, OSError."""
        with as_end_errors(self.label):
            status = await asyncio.to_thread(os.stat, self._path)
        if not stat.S_ISDIR(status.st_mode):
            name = os.path.basename(self._path)
            yield _entry(name, status) if stat.S_ISREG(status.st_mode) else LeftOut(name, "not a regular file")
            return
        walk = _walk(self._path, self._is_settled, sweep=self._is_target)
        while batch := await asyncio.to_thread(lambda: list(itertools.islice(walk, LISTED_AT_ONCE))):
            for found in batch:
                yield found

    async def open(self, entry: Entry) -> OpenedSource:
        """Open the file; refuse it if it is no longer a regular file."""
        path = self._path
        if os.path.isdir(path):
            path = os.path.join(path, entry.name)
        with as_end_errors(self._shown(entry.name)):
            descriptor = await asyncio.to_thread(
                os.open, path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW
            )
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            os.close(descriptor)
            raise EndError(f"{self._shown(entry.name)} is not a regular file")
        return _OpenedFile(descriptor, _entry(entry.name, status), self._shown(entry.name))

    async def close(self) -> None:
        """Do nothing: nothing is held open."""

    def refuse(self, name: str) -> str | None:
        """Names that no file system accepts, or that would lead out of the directory."""
        return refuse_name(name)

    async def adopt(self, opened: OpenedSource) -> str | None:
        """None: the bytes must be written."""
        return None

    async def store(self, entry: Entry, body: Body) -> str:
        """Write to a temporary file, sync, and rename."""
        path = os.path.join(self._path, entry.name)
        partial = await asyncio.to_thread(_begin, path)
        try:
            try:
                await _fill(partial.descriptor, body)
                await body.require_unchanged()
                await asyncio.to_thread(partial.finish, entry, body.size)
            finally:
                os.close(partial.descriptor)
            await asyncio.to_thread(os.replace, partial.path, path)
        except BaseException:
            os.unlink(partial.path)
            raise
        return ""

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

    def __init__(self, descriptor: int, entry: Entry, shown: str) -> None:
        self._descriptor, self.entry, self._shown = descriptor, entry, shown

    async def read(self, offset: int, length: int) -> AsyncIterator[Buffer]:
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


class _Partial:
    """A file being written."""

    def __init__(self, path: str, descriptor: int) -> None:
        self.path, self.descriptor = path, descriptor

    def finish(self, entry: Entry, size: int) -> None:
        """Set its length, mode and time, and make it durable."""
        os.ftruncate(self.descriptor, size)
        if entry.mode is not None:
            os.fchmod(self.descriptor, entry.mode & MODES)
        if entry.mtime_ns is not None:
            os.utime(self.descriptor, ns=(entry.mtime_ns, entry.mtime_ns))
        os.fsync(self.descriptor)


def _begin(path: str) -> _Partial:
    folder = os.path.dirname(path)
    os.makedirs(folder, exist_ok=True)
    if os.path.isdir(path):
        raise EndError(f"{path} is a directory")
    partial = os.path.join(folder, f"{PARTIAL}{secrets.token_hex(8)}")
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    mask = os.umask(0)
    os.umask(mask)
    descriptor = os.open(partial, flags, 0o666 & ~mask)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    return _Partial(partial, descriptor)


async def _fill(descriptor: int, body: Body) -> None:
    ranges = body.ranges()
    if not ranges:
        offset = 0
        async for piece in body.stream():
            await asyncio.to_thread(_write_at, descriptor, offset, piece)
            offset += len(piece)
        return

    async def fill_range(offset: int, length: int) -> None:
        async for piece in body.fetch(offset, length):
            await asyncio.to_thread(_write_at, descriptor, offset, piece)
            offset += len(piece)

    async with asyncio.TaskGroup() as group:
        for offset, length in ranges:
            group.create_task(fill_range(offset, length))


def _write_at(descriptor: int, offset: int, piece: Buffer) -> None:
    """Write a piece; leave a hole for one that is all zeros."""
    data = bytes(piece)
    if data.count(0) == len(data):
        return
    view = memoryview(data)
    while view:
        written = os.pwrite(descriptor, view, offset)
        view, offset = view[written:], offset + written


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


def _walk(root: str, is_settled: Callable[[str, os.stat_result], bool], *, sweep: bool) -> Iterator[Entry | LeftOut]:
    """Yield every file below a directory, keeping the names of one directory at a time."""
    waiting, gaps = [""], list[LeftOut]()
    while waiting:
        below = waiting.pop()
        try:
            scan = os.scandir(os.path.join(root, below))
        except OSError as error:
            why = error.strerror or "it cannot be read"
            if not below:
                raise NotThereError(f"{root}: {why}") from None
            gaps.append(LeftOut(below, why, is_gap=True))
            continue
        with scan:
            for found in scan:
                name = f"{below}/{found.name}" if below else found.name
                if found.name.startswith(PARTIAL):
                    if sweep:
                        _remove_abandoned(found.path)
                    continue
                if found.is_dir(follow_symlinks=False):
                    waiting.append(name)
                    continue
                yield _examine(found, name, is_settled)
    yield from gaps


def _remove_abandoned(path: str) -> None:
    """Remove an incomplete file unless its writer still holds the lock."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.unlink(path)
    except OSError:
        return
    finally:
        os.close(descriptor)


def _always(name: str, status: os.stat_result) -> bool:
    return True


def _examine(found: os.DirEntry[str], name: str, is_settled: Callable[[str, os.stat_result], bool]) -> Entry | LeftOut:
    try:
        status = found.stat(follow_symlinks=False)
    except OSError as error:
        return LeftOut(name, error.strerror or "it cannot be read")
    if stat.S_ISREG(status.st_mode):
        return _entry(name, status) if is_settled(name, status) else LeftOut(name, UNSETTLED)
    return LeftOut(name, "a symbolic link" if stat.S_ISLNK(status.st_mode) else "not a regular file")


def _entry(name: str, status: os.stat_result) -> Entry:
    return Entry(name=name, size=status.st_size, mtime_ns=status.st_mtime_ns, mode=stat.S_IMODE(status.st_mode) & MODES)
