"""The file system's interface to fsspec: takes paths, and returns bytes, descriptions and errors of the operating
system.

It owns the meaning of fsspec's calls on a grid; tree.py carries them out on the reactor's thread. fsspec's methods
without an underscore wait for the coroutine of the same name with one.
"""

from __future__ import annotations

import errno
import hashlib
import os
import secrets
from collections.abc import Callable, Coroutine, Iterable, Sequence
from datetime import datetime
from typing import Any, TypeVar

from fsspec.asyn import AsyncFileSystem, sync_wrapper
from fsspec.callbacks import DEFAULT_CALLBACK

from grid.caps import DirectoryCap, ImmutableFileCap, KnownCap, has_cap_prefix
from grid.directory.pack import Child
from grid.errors import GridError
from grid.filesystem.descriptions import describe, describe_root, file_cap, moment_of, os_error, refusal
from grid.filesystem.open_files import GridFile, GridStreamedFile, GridTransaction
from grid.filesystem.paths import (
    CAP_PROTOCOL,
    PROTOCOL,
    GridPath,
    parse_path,
    protocol_of,
    settle_range,
    without_those_below,
)
from grid.filesystem.session import GridAddress, Session, on_reactor_thread, open_session
from grid.filesystem.spool import Spool
from grid.filesystem.tree import Link, Listed, Opened, Tree, Wanted
from grid.library.operations import FileSink, FileSource
from grid.mutable.sources import MemorySource
from grid.ports import Source

T = TypeVar("T")

NEAR = 2**16
"""Ranges at most this many bytes apart are read together."""

_MAGIC = frozenset("*?[")
_TAKEN = "there is already something at this path"


class GridFileSystem(AsyncFileSystem):
    """A grid as an fsspec file system: `grid://alias/path` and `grid+cap://CAPABILITY/path`."""

    protocol = (PROTOCOL, CAP_PROTOCOL)
    transaction_type = GridTransaction

    def __init__(
        self,
        directory: str | os.PathLike[str] | None = None,
        gateway: str | None = None,
        gateway_ca: str | None = None,
        **options: Any,
    ) -> None:
        """directory: of a client. gateway: a URL, or `node` for the one that runs in the directory. Opens nothing yet.

        RuntimeError on the thread that runs Twisted's reactor, unless the file system is asynchronous.
        """
        super().__init__(**options)
        if not self.asynchronous and on_reactor_thread():
            raise RuntimeError("this thread runs the reactor, which a blocking call would stop: use asynchronous=True")
        named = None if directory is None else os.fspath(directory)
        self._address = GridAddress.chosen(named, gateway, gateway_ca)

    @property
    def fsid(self) -> str:
        """Identifies the grid, for programs that compare file systems."""
        return f"grid-{hashlib.sha256(repr(self._address).encode()).hexdigest()[:16]}"

    def unstrip_protocol(self, name: str) -> str:
        """The path as a URL."""
        path = self._strip_protocol(name)
        return f"{protocol_of(path)}://{path}"

    async def _info(self, path: str, **_: Any) -> dict[str, Any]:
        path = self._strip_protocol(path)
        if not path:
            return describe_root(path)
        child = await self._find_child(path)
        cap, size = child.target, None
        if isinstance(cap, KnownCap) and not isinstance(cap, DirectoryCap | ImmutableFileCap):
            asked = cap
            size = await self._run(path, lambda tree: tree.size(asked))
        return describe(path, child, size)

    async def _ls(self, path: str, detail: bool = True, **_: Any) -> list[Any]:
        path = self._strip_protocol(path)
        infos: list[dict[str, Any]]
        if not path:
            infos = [describe_root(name) for name in sorted(self._session().aliases())]
            return infos if detail else [info["name"] for info in infos]
        where = self._parse(path)
        entries: list[Listed] | None = None
        try:
            entries = await self._run(path, lambda tree: tree.listing(where, sizes=detail))
        except NotADirectoryError:
            pass
        if entries is None:
            info = await self._info(path)
            return [info] if detail else [path]
        if not detail:
            return [f"{path}/{entry.name}" for entry in entries]
        return [describe(f"{path}/{each.name}", each.child, each.size, is_loop=each.is_loop) for each in entries]

    async def _cat_file(self, path: str, start: int | None = None, end: int | None = None, **_: Any) -> bytes:
        (data,) = await self._cat_ranges([path], [start], [end], on_error="raise")
        assert isinstance(data, bytes)
        return data

    async def _cat_ranges(
        self,
        paths: list[str],
        starts: Any,  # noqa: ANN401 - a number, or one for each path
        ends: Any,  # noqa: ANN401
        max_gap: int | None = None,
        batch_size: int | None = None,
        on_error: str = "return",
        **_: Any,
    ) -> list[bytes | Exception]:
        if not isinstance(paths, list):
            raise TypeError("paths must be a list")
        firsts = list(starts) if isinstance(starts, Iterable) else [starts] * len(paths)
        lasts = list(ends) if isinstance(ends, Iterable) else [ends] * len(paths)
        if not len(paths) == len(firsts) == len(lasts):
            raise ValueError("paths, starts and ends must have the same length")
        answers: list[bytes | Exception] = []
        wanted: list[Wanted] = []
        stripped = [self._strip_protocol(path) for path in paths]
        parsed: dict[str, GridPath | OSError] = {path: self._parse_or_error(path) for path in dict.fromkeys(stripped)}
        for path, first, last in zip(stripped, firsts, lasts, strict=True):
            where = parsed[path]
            if isinstance(where, GridPath):
                wanted.append(Wanted(path=where, start=first, end=last))
        gap = NEAR if max_gap is None else max_gap
        read = iter(await self._run(stripped[0], lambda tree: tree.read_ranges(wanted, gap)) if wanted else [])
        for path in stripped:
            where = parsed[path]
            data = next(read) if isinstance(where, GridPath) else where
            answers.append(os_error(data, path) if isinstance(data, GridError) else data)
        failed = next((each for each in answers if isinstance(each, Exception)), None)
        if on_error == "raise" and failed is not None:
            raise failed
        return answers

    async def _get_file(self, rpath: str, lpath: Any, callback: Any = DEFAULT_CALLBACK, **_: Any) -> None:  # noqa: ANN401
        path = self._strip_protocol(rpath)
        if not path or isinstance((await self._find_child(path)).target, DirectoryCap):
            os.makedirs(lpath, exist_ok=True)
            return
        if hasattr(lpath, "write"):
            await self._read_into(path, lpath)
            return
        folder, name = os.path.split(os.path.abspath(os.fspath(lpath)))
        os.makedirs(folder, exist_ok=True)
        partial = os.path.join(folder, f".{name[:100]}.{secrets.token_hex(4)}")
        try:
            with open(partial, "xb") as file:
                await self._read_into(path, file)
                size = file.tell()
            os.replace(partial, os.path.join(folder, name))
        except BaseException:
            if os.path.exists(partial):
                os.unlink(partial)
            raise
        callback.set_size(size)
        callback.absolute_update(size)

    async def _put_file(
        self,
        lpath: Any,  # noqa: ANN401 - a path of this machine
        rpath: str,
        mode: str = "overwrite",
        callback: Any = DEFAULT_CALLBACK,  # noqa: ANN401
        **_: Any,
    ) -> None:
        path = self._strip_protocol(rpath)
        if os.path.isdir(lpath):
            await self._makedirs(path, exist_ok=True)
            return
        with open(lpath, "rb") as file:
            await self._pipe_file(path, file, mode)
            size = file.seek(0, os.SEEK_END)
        callback.set_size(size)
        callback.absolute_update(size)

    async def _pipe_file(self, path: str, value: Any, mode: str = "overwrite", **_: Any) -> None:  # noqa: ANN401
        path = self._strip_protocol(path)
        where = self._parse(path)
        if mode == "create" and await self._exists(path):
            raise refusal(errno.EEXIST, _TAKEN, path)
        link = (where, await self._store(value, path))
        await (self._link(path, [], [link]) if mode == "create" else self._link(path, [link]))

    async def _mkdir(self, path: str, create_parents: bool = True, **_: Any) -> None:
        path = self._strip_protocol(path)
        above = self._parent(path)
        if not create_parents and not await self._isdir(above):
            raise refusal(errno.ENOENT, "there is no such directory", above)
        await self._makedirs(path)

    async def _makedirs(self, path: str, exist_ok: bool = False, **_: Any) -> None:
        path = self._strip_protocol(path)
        where = self._parse(path)
        if not exist_ok and await self._exists(path):
            raise refusal(errno.EEXIST, _TAKEN, path)
        await self._run(path, lambda tree: tree.make_directories(where))

    async def _rm_file(self, path: str, **_: Any) -> None:
        await self._remove([self._strip_protocol(path)], recursive=False)

    async def _rm(
        self,
        path: str | list[str],
        recursive: bool = False,
        batch_size: int | None = None,
        maxdepth: int | None = None,
        **_: Any,
    ) -> None:
        if maxdepth is not None:
            paths = await self._expand_path(path, recursive=recursive, maxdepth=maxdepth)
            await self._remove([each for each in paths if not await self._isdir(each)], recursive=False)
            return
        found: list[str] = []
        for each in [path] if isinstance(path, str) else path:
            stripped = self._strip_protocol(each)
            found += await self._expand_path(stripped) if _MAGIC & set(stripped) else [stripped]
        await self._remove(found, recursive=recursive)

    async def _rmdir(self, path: str) -> None:
        path = self._strip_protocol(path)
        where = self._parse(path)
        if not await self._run(path, lambda tree: tree.remove_empty(where)):
            raise refusal(errno.ENOTEMPTY, "the directory is not empty", path)

    async def _cp_file(self, path1: str, path2: str, **_: Any) -> None:
        source, target = self._strip_protocol(path1), self._strip_protocol(path2)
        where = self._parse(target)
        cap = (await self._find_child(source)).target
        if isinstance(cap, DirectoryCap):
            await self._makedirs(target, exist_ok=True)
        elif isinstance(cap, ImmutableFileCap):
            await self._link(target, [(where, cap)])
        else:
            # A second link to a mutable file would not be a copy.
            with Spool(target) as spool:
                await self._read_into(source, spool)
                await self._pipe_file(target, spool)

    async def _mv(
        self,
        path1: Any,  # noqa: ANN401 - one path, or several
        path2: Any,  # noqa: ANN401
        recursive: bool = False,
        maxdepth: int | None = None,
        **_: Any,
    ) -> None:
        if not isinstance(path1, str) or not isinstance(path2, str) or maxdepth is not None or _MAGIC & set(path1):
            await self._copy(path1, path2, recursive=recursive, maxdepth=maxdepth, on_error="raise")
            await self._rm(path1, recursive=recursive)
            return
        source, target = self._strip_protocol(path1), self._strip_protocol(path2)
        if source == target:
            return
        if path2.endswith("/") or await self._isdir(target):
            target = f"{target}/{source.rpartition('/')[2]}"
        here, there = self._parse(source), self._parse(target)
        await self._run(source, lambda tree: tree.move(here, there))

    async def _expand_path(self, path: Any, *arguments: Any, **options: Any) -> list[str]:  # noqa: ANN401
        try:
            expanded: list[str] = await super()._expand_path(path, *arguments, **options)
        except FileNotFoundError:
            # fsspec's own message would contain the capability.
            first = path if isinstance(path, str) else path[0] if path else ""
            raise refusal(errno.ENOENT, "there is nothing at this path", self._strip_protocol(first)) from None
        return expanded

    async def _created(self, path: str) -> datetime:
        return moment_of(await self._info(path), "created")

    async def _modified(self, path: str) -> datetime:
        return moment_of(await self._info(path), "mtime")

    mv = sync_wrapper(_mv)
    rmdir = sync_wrapper(_rmdir)
    created = sync_wrapper(_created)
    modified = sync_wrapper(_modified)

    def _open(self, path: str, mode: str = "rb", **options: Any) -> GridFile:
        return GridFile(self, path, mode, **options)

    async def open_async(self, path: str, mode: str = "rb", **options: Any) -> GridStreamedFile:
        """Open a file for coroutines. A written file is stored and linked when it is closed."""
        path = self._strip_protocol(path)
        opened = await self._open_now(path) if mode == "rb" else None
        file = GridStreamedFile(self, path, mode, opened, **options)
        if mode == "ab" and await self._exists(path):
            await file.begin_with_what_is_there()
        return file

    async def _open_now(self, path: str) -> Opened:
        """The file that is at the path now."""
        where = self._parse(path)
        return await self._run(path, lambda tree: tree.open(where))

    async def _read_opened(self, opened: Opened, path: str, start: int, end: int) -> bytes:
        first, last = settle_range(start, end, opened.size)
        return await self._run(path, lambda tree: tree.read_range(opened.cap, first, last))

    async def _store(self, contents: Any, path: str) -> KnownCap:  # noqa: ANN401 - bytes, or a binary file
        async def put(tree: Tree) -> KnownCap:
            source: Source
            if isinstance(contents, bytes | bytearray | memoryview):
                source = MemorySource(contents)
            else:
                source = FileSource(contents, tree.store.runtime.cpu)
            return await tree.put(source)

        return await self._run(path, put)

    async def _link_files(self, files: list[Any]) -> None:
        """Link stored files at their paths."""
        stored = [file for file in files if file.stored is not None]
        links = [(self._parse(file.path), file.stored) for file in stored if file.mode != "xb"]
        new = [(self._parse(file.path), file.stored) for file in stored if file.mode == "xb"]
        if stored:
            await self._link(stored[0].path, links, new)

    async def _link(self, path: str, links: Sequence[Link], new: Sequence[Link] = ()) -> None:
        """Link files. path: named in errors. new: links that must replace nothing."""
        await self._run(path, lambda tree: tree.link(links, new=new))

    async def _read_into(self, path: str, file: Any) -> None:  # noqa: ANN401
        """Write a file's bytes to an open local file."""
        where = self._parse(path)

        async def read(tree: Tree) -> None:
            await tree.read(file_cap(await tree.find(where)), FileSink(file, tree.store.runtime.cpu))

        await self._run(path, read)

    async def _remove(self, paths: list[str], *, recursive: bool) -> None:
        places = without_those_below([self._parse(path) for path in paths])
        if places:
            await self._run(paths[0], lambda tree: tree.remove(places, recursive=recursive))

    async def _find_child(self, path: str) -> Child:
        where = self._parse(path)
        return await self._run(path, lambda tree: tree.find(where))

    def _session(self) -> Session:
        return open_session(self._address)

    def _parse(self, path: str) -> GridPath:
        parsed = self._parse_or_error(path)
        if isinstance(parsed, OSError):
            raise parsed
        return parsed

    def _parse_or_error(self, path: str) -> GridPath | OSError:
        try:
            return parse_path(path, {} if has_cap_prefix(path) else self._session().aliases())
        except GridError as error:
            return os_error(error, path)

    async def _run(self, path: str, operation: Callable[[Tree], Coroutine[Any, Any, T]]) -> T:
        """Run the operation and return its result. path: named in its errors."""
        try:
            return await self._session().run(operation)
        except GridError as error:
            raise os_error(error, path) from error
