"""A grid for programs that await: on Twisted, on asyncio that runs Twisted's reactor, or on any other asyncio loop.

It owns how callers await coroutines of the reactor. operations.py does the work.
"""

from __future__ import annotations

import asyncio
import io
import os
from collections.abc import Awaitable, Callable, Coroutine
from types import TracebackType
from typing import Any, BinaryIO, Literal, Protocol, TypeVar

from twisted.internet.asyncioreactor import AsyncioSelectorReactor
from twisted.internet.defer import Deferred
from twisted.python import threadable

from grid.library.operations import Contents, Entry, Format, Health, OpenedFile, Operations
from grid.library.reactor_thread import running_reactor, submit
from grid.node.directory import NodeDirectory
from grid.runtime import ReactorClock, RealRuntime, SystemEntropy, ThreadCpuPool

T = TypeVar("T")


class Run(Protocol):
    """How the caller awaits a coroutine of the reactor."""

    def __call__(self, coroutine: Coroutine[Any, Any, T], /) -> Awaitable[T]:
        """The result, for the caller to await."""


def make_operations(directory: NodeDirectory, reactor: Any) -> Operations:  # noqa: ANN401
    """The operations on a node directory. Call this on the reactor's thread. ConfigError."""
    pool = ThreadCpuPool(reactor)
    runtime = RealRuntime(clock=ReactorClock(reactor), cpu=pool, entropy=SystemEntropy())
    return Operations(directory, runtime, reactor, pool.stop)


class AsyncFile:
    """A file open for reading, with a position; `async with` closes it."""

    def __init__(self, file: OpenedFile, run: Run) -> None:
        self._file, self._run, self._position = file, run, 0

    @property
    def size(self) -> int:
        """Size in bytes; for a mutable file, as of when it was opened."""
        return self._file.size

    async def read(self, length: int = -1) -> bytes:
        """Read the next `length` bytes, fewer at the end; -1: all that are left."""
        if length < 0:
            length = max(0, self.size - self._position)
        data = await self.read_range(self._position, length)
        self._position += len(data)
        return data

    async def read_range(self, offset: int, length: int) -> bytes:
        """Read the bytes from offset on, whatever the position is. Several ranges may be read at the same time."""
        return await self._run(self._file.read(offset, length))

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Change the position, and return the new one."""
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self.size}[whence]
        if base + offset < 0:
            raise ValueError("a position cannot be negative")
        self._position = base + offset
        return self._position

    def tell(self) -> int:
        """Return the position."""
        return self._position

    async def __aenter__(self) -> AsyncFile:
        return self

    async def __aexit__(self, *_: object) -> None:
        return None


class AsyncGrid:
    """A grid for coroutines; made by `grid.open_asyncio` and `grid.open_twisted`, and used with `async with`.

    Capabilities are text. Every method raises a `grid.errors.GridError` that says what to do.
    """

    def __init__(self, make: Callable[[], Coroutine[Any, Any, Operations]], choose_run: Callable[[], Run]) -> None:
        self._make, self._choose_run = make, choose_run
        self._opened: tuple[Operations, Run] | None = None

    async def __aenter__(self) -> AsyncGrid:
        run = self._choose_run()
        self._opened = await run(self._make()), run
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close all connections. Running operations fail."""
        if self._opened is not None:
            operations, run = self._opened
            await run(operations.close())

    async def put(self, contents: Contents, *, format: Format = "chk") -> str:
        """Store a new file and return its capability. contents: bytes, a path, or a binary file that can seek."""
        operations, run = self._open()
        return await run(operations.put(contents, format))

    async def overwrite(self, cap: str, contents: Contents) -> None:
        """Replace the contents of a mutable file. This needs its write capability."""
        operations, run = self._open()
        await run(operations.overwrite(cap, contents))

    async def get(self, cap: str, *, offset: int = 0, length: int | None = None) -> bytes:
        """Return the bytes of a file, or of a range of it."""
        operations, run = self._open()
        return await run(operations.get(cap, offset, length))

    async def download(self, cap: str, target: os.PathLike[str] | BinaryIO) -> int:
        """Write a file to a path (completely or not at all) or to an open binary file; return its size."""
        operations, run = self._open()
        return await run(operations.download(cap, target))

    async def open(self, cap: str) -> AsyncFile:
        """Open a file to read ranges of it."""
        operations, run = self._open()
        return AsyncFile(await run(operations.open(cap)), run)

    async def list(self, directory: str, path: str = "") -> dict[str, Entry]:
        """Return the entries of a directory, or of the one at the path below it, by name."""
        operations, run = self._open()
        return await run(operations.entries(directory, path))

    async def find(self, directory: str, path: str) -> Entry:
        """Return the entry at the end of a path."""
        operations, run = self._open()
        return await run(operations.find(directory, path))

    async def mkdir(
        self, parent: str | None = None, path: str = "", *, format: Literal["sdmf", "mdmf"] | None = None
    ) -> str:
        """Make a directory and return its capability. Without a parent, nothing links to it; with one, the whole path is made."""
        operations, run = self._open()
        return await run(operations.mkdir(parent, path, format))

    async def link(self, directory: str, path: str, cap: str, *, overwrite: bool = False) -> None:
        """Add an entry at the path that leads to the capability."""
        operations, run = self._open()
        await run(operations.link(directory, path, cap, overwrite))

    async def unlink(self, directory: str, path: str) -> None:
        """Remove the entry at the path. What it links to is not deleted."""
        operations, run = self._open()
        await run(operations.unlink(directory, path))

    async def move(
        self, directory: str, path: str, new_path: str, *, to: str | None = None, overwrite: bool = False
    ) -> None:
        """Move or rename the entry at the path. to: the directory that new_path is relative to, if it is another one."""
        operations, run = self._open()
        await run(operations.move((directory, path), (to or directory, new_path), overwrite))

    async def check(self, cap: str, *, verify: bool = False, add_lease: bool = False) -> Health:
        """Check how a file or directory is stored. verify: read and prove every byte of every share."""
        operations, run = self._open()
        return await run(operations.check(cap, verify, add_lease))

    async def repair(self, cap: str, *, force: bool = False) -> Health:
        """Repair a file or directory if necessary, and return its health afterwards."""
        operations, run = self._open()
        return await run(operations.repair(cap, force))

    def _open(self) -> tuple[Operations, Run]:
        if self._opened is None:
            raise RuntimeError("open the grid first: async with ... as files")
        return self._opened


def open_twisted(directory: NodeDirectory, reactor: Any) -> AsyncGrid:  # noqa: ANN401
    """A grid for coroutines that run on this reactor; None: the global one."""
    if reactor is None:
        from twisted.internet import reactor

    async def make() -> Operations:
        return make_operations(directory, reactor)

    return AsyncGrid(make, lambda: _await)


def open_asyncio(directory: NodeDirectory) -> AsyncGrid:
    """A grid for asyncio: on the reactor if that runs the event loop, otherwise with the reactor in a thread of its own."""
    reactors: list[Any] = []

    async def make() -> Operations:
        return make_operations(directory, reactors[0])

    def choose_run() -> Run:
        from twisted.internet import reactor

        loop = asyncio.get_running_loop()
        if isinstance(reactor, AsyncioSelectorReactor) and threadable.isInIOThread() and reactor.running:
            reactors.append(reactor)
            return _Native(loop)
        reactors.append(running_reactor())
        return _Beside(reactors[0])

    return AsyncGrid(make, choose_run)


def _await(coroutine: Coroutine[Any, Any, T], /) -> Awaitable[T]:
    return coroutine


class _Native:
    """For asyncio on the reactor's own loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    def __call__(self, coroutine: Coroutine[Any, Any, T], /) -> Awaitable[T]:
        return Deferred.fromCoroutine(coroutine).asFuture(self._loop)


class _Beside:
    """For asyncio in another thread than the reactor."""

    def __init__(self, reactor: Any) -> None:  # noqa: ANN401
        self._reactor = reactor

    def __call__(self, coroutine: Coroutine[Any, Any, T], /) -> Awaitable[T]:
        return asyncio.wrap_future(submit(self._reactor, coroutine))
