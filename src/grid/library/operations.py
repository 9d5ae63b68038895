"""The library's operations on files and directories: they take capabilities as text, and return plain values.

It owns the meaning of the arguments. It runs on the reactor's thread, and never puts a capability into an error.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import Any, BinaryIO, Literal

from grid.caps import (
    ChkVerifyCap,
    DirectoryCap,
    ImmutableFileCap,
    KnownCap,
    LitCap,
    UnknownCap,
    UnknownChild,
    parse_cap,
)
from grid.directory.edits import RemoveChild, SetChild
from grid.directory.file_store import FileHealth, FileStore
from grid.directory.moving import follow_trail
from grid.directory.node import Directory
from grid.directory.pack import Child
from grid.directory.store import Trail
from grid.errors import AuthorityError, CapError, ConfigError, GridError
from grid.extents.files import OpenImmutable, open_immutable
from grid.mutable.node import MutableFile
from grid.mutable.sources import MemorySource
from grid.node.client import Client, LiveServers
from grid.node.directory import NodeDirectory, NodeKind, open_directory
from grid.node.files import Rereads
from grid.ports import Buffer, CpuPool, Runtime, Source
from grid.sinks import FrozenBytesSink
from grid.values import field, frozen

Contents = bytes | bytearray | memoryview | os.PathLike[str] | BinaryIO
"""Bytes, the path of a file, or a binary file that can seek."""

Format = Literal["chk", "sdmf", "mdmf"]
"""`chk` is immutable; `sdmf` and `mdmf` are mutable, for small and for large files."""

Kind = Literal["file", "directory", "unknown"]


@frozen(kw_only=True)
class Entry:
    """One entry of a directory. cap: the strongest capability that the directory grants. size: None if unknown."""

    name: str
    kind: Kind
    cap: str = field(repr=False)
    is_mutable: bool
    is_writable: bool
    size: int | None
    metadata: Mapping[str, object]


@frozen(kw_only=True)
class Health:
    """How a file or directory is stored. details: the results in the form of the web API's `t=check`."""

    healthy: bool
    recoverable: bool
    summary: str
    details: Mapping[str, Any] = field(repr=False)


def open_client_directory(path: str | os.PathLike[str]) -> NodeDirectory:
    """A client's node directory at a path, in which `~` is the home directory; ConfigError."""
    directory = open_directory(Path(path))
    if directory.kind is not NodeKind.CLIENT:
        raise ConfigError(f"{path} is an introducer's directory: open a client's")
    return directory


class OpenedFile:
    """A file open for reading; what one read learns makes the next one cheaper."""

    def __init__(self, file: OpenImmutable | MutableFile, size: int) -> None:
        self._file = file
        self.size = size

    async def read(self, offset: int, length: int) -> bytes:
        """The bytes from offset on, fewer at the end of the file."""
        sink = FrozenBytesSink()
        await self._file.read(sink, offset, length)
        return sink.take()


class Operations:
    """An open node directory on the reactor's thread. `close` closes its connections."""

    def __init__(self, directory: NodeDirectory, runtime: Runtime, reactor: Any, stop: Callable[[], None]) -> None:  # noqa: ANN401
        """stop: stops what the runtime has started. ConfigError."""
        self._client = Client(directory, runtime, reactor)
        self._stop = stop
        self._is_open = True
        grid = self._client.grid(LiveServers(self._client))
        is_mdmf = directory.settings.client.mutable_format == "MDMF"
        self._store = FileStore(grid=grid, mutable_format="mdmf" if is_mdmf else "sdmf")
        self._client.start_probing()

    async def close(self) -> None:
        """Close all connections. A second call does nothing."""
        if self._is_open:
            self._is_open = False
            await self._client.close()
            self._stop()

    async def put(self, contents: Contents, format: Format) -> str:
        """Store a new file and return its capability."""
        with _Opened(contents, self._store.runtime.cpu) as source:
            store = await self._ready()
            if format == "chk":
                return (await store.put_immutable(source)).to_string()
            return (await store.put_mutable(source, format=format)).to_string()

    async def overwrite(self, cap: str, contents: Contents) -> None:
        """Replace the contents of a mutable file."""
        known = _file_cap(cap)
        with _Opened(contents, self._store.runtime.cpu) as source:
            await (await self._ready()).open_mutable(known).overwrite(source)

    async def get(self, cap: str, offset: int, length: int | None) -> bytes:
        """Return a range of a file."""
        sink = FrozenBytesSink()
        known = _file_cap(cap)
        await (await self._ready(known)).read(known, sink, offset, length)
        return sink.take()

    async def download(self, cap: str, target: os.PathLike[str] | BinaryIO) -> int:
        """Write a file to a path, completely or not at all, or to an open file; return its size."""
        known = _file_cap(cap)
        store = await self._ready(known)
        cpu = store.runtime.cpu
        if not isinstance(target, os.PathLike):
            return await store.read(known, FileSink(target, cpu))
        path = Path(target)
        partial = tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False)  # noqa: SIM115
        try:
            with partial:
                size = await store.read(known, FileSink(partial, cpu))
            os.replace(partial.name, path)
        except BaseException:
            os.unlink(partial.name)
            raise
        return size

    async def open(self, cap: str) -> OpenedFile:
        """Open a file to read ranges of it."""
        known = _file_cap(cap)
        store = await self._ready(known)
        if known.authority == "verify":
            raise AuthorityError(
                "this is a verify capability: reading takes the read capability or the write capability"
            )
        if isinstance(known, ImmutableFileCap):
            file = open_immutable(known, store.grid)
            return OpenedFile(file, file.size)
        mutable = store.open_mutable(known)
        return OpenedFile(mutable, await mutable.size())

    async def entries(self, cap: str, path: str) -> dict[str, Entry]:
        """The entries of a directory, in the order of their names."""
        directory = (await self._follow(cap, path)).end
        children = await self._store.directory(directory).list()
        return {name: _entry(name, child) for name, child in children.items()}

    async def find(self, cap: str, path: str) -> Entry:
        """The entry at the end of a path."""
        names = _names(path)
        child = await (await self._directory(cap)).get(names)
        return _entry(names[-1] if names else "", child)

    async def mkdir(self, parent: str | None, path: str, format: Literal["sdmf", "mdmf"] | None) -> str:
        """Make a directory and return its capability: one that nothing links to, or the one at the path with its missing parents."""
        if parent is None:
            return (await (await self._ready()).create_directory(format=format)).to_string()
        made = await (await self._directory(parent)).make_directories(_names(path), format=format)
        return made.cap.to_string()

    async def link(self, directory: str, path: str, cap: str, overwrite: bool) -> None:
        """Add an entry that leads to the capability."""
        target = _known(cap)
        *above, name = _names(path, "link")
        parent = (await self._follow(directory, above)).end
        await self._store.directory(parent).edit([SetChild(name, target, overwrite=overwrite)])

    async def unlink(self, directory: str, path: str) -> None:
        """Remove an entry. What it links to is not deleted."""
        *above, name = _names(path, "remove")
        parent = (await self._follow(directory, above)).end
        await self._store.directory(parent).edit([RemoveChild(name)])

    async def move(self, source: tuple[str, str], target: tuple[str, str], overwrite: bool) -> None:
        """Move or rename an entry. Each side is a directory's capability and a path below it."""
        *above, name = _names(source[1], "move")
        *new_above, new_name = _names(target[1], "move to")
        here = await self._follow(source[0], above)
        there = await self._follow(target[0], new_above)
        await self._store.move(here, name, there, new_name, overwrite=overwrite)

    async def check(self, cap: str, verify: bool, add_lease: bool) -> Health:
        """Check the health of a file or directory."""
        known = _known(cap)
        return _health(await (await self._ready(known)).check(known, verify=verify, add_lease=add_lease))

    async def repair(self, cap: str, force: bool) -> Health:
        """Repair a file or directory if necessary, and return its health afterwards."""
        known = _known(cap)
        return _health((await (await self._ready(known)).repair(known, force=force)).after)

    async def _ready(self, cap: KnownCap | None = None) -> FileStore:
        """The store, once the servers that the capability needs are known; NoServersError."""
        if not self._is_open:
            raise GridError("this grid is closed: open the node directory again")
        if not isinstance(cap, LitCap) and not isinstance(getattr(cap, "body", None), LitCap):
            await self._client.servers()
        return self._store

    async def _directory(self, cap: str) -> Directory:
        known = _directory_cap(cap)
        return (await self._ready(known)).directory(known)

    async def _follow(self, cap: str, path: str | list[str]) -> Trail:
        root = _directory_cap(cap)
        store = await self._ready(root)
        return await follow_trail(store, root, _names(path) if isinstance(path, str) else path)


class FileSource:
    """A local file as the source of a put."""

    def __init__(self, file: BinaryIO, cpu: CpuPool) -> None:
        self._file, self._cpu, self._lock = file, cpu, Lock()
        self._size = file.seek(0, os.SEEK_END)
        self._rereads: Rereads | None = None
        with suppress(OSError, AttributeError):  # Not every file has a descriptor.
            self._rereads = Rereads(file.fileno())

    @property
    def size(self) -> int:
        """Bytes of the file."""
        return self._size

    async def read_at(self, offset: int, length: int) -> Buffer:
        """The bytes from offset on; GridError if the file became shorter, or changed before the end of a second reading."""
        return await self._cpu.run(self._read, offset, length)

    def _read(self, offset: int, length: int) -> bytes:
        with self._lock:
            self._file.seek(offset)
            data = self._file.read(length)
        if len(data) < length:
            raise GridError("the file became shorter while it was being stored")
        if self._rereads is not None:
            self._rereads.note(offset, length)
        return data


class FileSink:
    """A local file as the target of a get."""

    def __init__(self, file: Any, cpu: CpuPool) -> None:  # noqa: ANN401
        self._file, self._cpu = file, cpu

    async def write(self, data: Buffer) -> None:
        """Write the bytes."""
        await self._cpu.run(self._file.write, data)


class _Opened:
    """The contents to store, open while the context lasts."""

    def __init__(self, contents: Contents, cpu: CpuPool) -> None:
        if isinstance(contents, str):
            raise TypeError("text is neither bytes nor a path: encode it, or pass a pathlib.Path")
        self._contents, self._cpu = contents, cpu
        self._file: BinaryIO | None = None

    def __enter__(self) -> Source:
        if isinstance(self._contents, bytes | bytearray | memoryview):
            return MemorySource(self._contents)
        if isinstance(self._contents, os.PathLike):
            self._file = Path(self._contents).open("rb")
            return FileSource(self._file, self._cpu)
        return FileSource(self._contents, self._cpu)

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()


def _known(cap: str) -> KnownCap:
    found = parse_cap(cap.strip())
    if isinstance(found, UnknownCap):
        raise found.error or CapError("this is not a capability of a kind known to this version")
    return found


def _file_cap(cap: str) -> KnownCap:
    known = _known(cap)
    if isinstance(known, DirectoryCap):
        raise CapError("this is the capability of a directory, not of a file")
    return known


def _directory_cap(cap: str) -> DirectoryCap:
    known = _known(cap)
    if not isinstance(known, DirectoryCap):
        raise CapError("this is the capability of a file, not of a directory")
    return known


def _names(path: str, purpose: str = "") -> list[str]:
    """The names on a path. purpose: what is impossible for the directory itself."""
    names = [name for name in path.split("/") if name]
    if purpose and not names:
        raise GridError(f"the path names no entry to {purpose}")
    return names


def _entry(name: str, child: Child) -> Entry:
    target = child.target
    if isinstance(target, UnknownChild):
        text = (target.write or target.read or b"").decode("utf-8", "replace")
        return Entry(
            name=name, kind="unknown", cap=text, is_mutable=False, is_writable=False, size=None, metadata=child.metadata
        )
    return Entry(
        name=name,
        kind="directory" if isinstance(target, DirectoryCap) else "file",
        cap=target.to_string(),
        is_mutable=target.is_mutable,
        is_writable=target.authority == "write",
        size=target.size if isinstance(target, ImmutableFileCap | ChkVerifyCap) else None,
        metadata=child.metadata,
    )


def _health(found: FileHealth) -> Health:
    return Health(healthy=found.healthy, recoverable=found.recoverable, summary=found.summary, details=found.to_json())
