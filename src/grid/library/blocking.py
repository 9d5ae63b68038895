"""A grid for scripts: every call waits for its result. The reactor runs in its own thread.

It owns the waiting, and files in the style of the io module. operations.py does the work.
"""

from __future__ import annotations

import io
import os
from collections.abc import Coroutine
from types import TracebackType
from typing import Any, BinaryIO, Literal, TypeVar

from grid.library.asynchronous import make_operations
from grid.library.operations import Contents, Entry, Format, Health, OpenedFile, Operations
from grid.library.reactor_thread import running_reactor, wait
from grid.node.directory import NodeDirectory

T = TypeVar("T")

BUFFER_SIZE = 2**20
"""Bytes that an open file reads ahead: about one segment."""


class _RawFile(io.RawIOBase):
    """An open file in the form that the io module expects."""

    def __init__(self, grid: BlockingGrid, file: OpenedFile) -> None:
        super().__init__()
        self._grid, self._file, self._position = grid, file, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._file.size}[whence]
        if base + offset < 0:
            raise ValueError("a position cannot be negative")
        self._position = base + offset
        return self._position

    def readinto(self, buffer: Any) -> int:  # noqa: ANN401 - a writable buffer
        view = memoryview(buffer).cast("B")
        data = self._next(len(view))
        view[: len(data)] = data
        return len(data)

    def readall(self) -> bytes:
        return self._next(max(0, self._file.size - self._position))

    def _next(self, length: int) -> bytes:
        data = self._grid.run(self._file.read(self._position, length))
        self._position += len(data)
        return data


class BlockingGrid:
    """A grid for scripts; made by `grid.open`, and used with `with`. Any thread may call it.

    Capabilities are text. Every method raises a `grid.errors.GridError` that says what to do.
    """

    def __init__(self, directory: NodeDirectory) -> None:
        """ConfigError. RuntimeError on a thread that runs Twisted's reactor."""
        self._reactor = running_reactor()

        async def make() -> Operations:
            return make_operations(directory, self._reactor)

        self._operations = self.run(make())

    def __enter__(self) -> BlockingGrid:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the reactor's thread and return its result."""
        return wait(self._reactor, lambda: coroutine)

    def close(self) -> None:
        """Close all connections. Operations of other threads fail."""
        self.run(self._operations.close())

    def put(self, contents: Contents, *, format: Format = "chk") -> str:
        """Store a new file and return its capability. contents: bytes, a path, or a binary file that can seek."""
        return self.run(self._operations.put(contents, format))

    def overwrite(self, cap: str, contents: Contents) -> None:
        """Replace the contents of a mutable file. This needs its write capability."""
        self.run(self._operations.overwrite(cap, contents))

    def get(self, cap: str, *, offset: int = 0, length: int | None = None) -> bytes:
        """Return the bytes of a file, or of a range of it."""
        return self.run(self._operations.get(cap, offset, length))

    def download(self, cap: str, target: os.PathLike[str] | BinaryIO) -> int:
        """Write a file to a path (completely or not at all) or to an open binary file; return its size."""
        return self.run(self._operations.download(cap, target))

    def open(self, cap: str) -> io.BufferedReader:
        """Open a file and read it like any other binary file. It can seek, and fetches only what is read."""
        return io.BufferedReader(_RawFile(self, self.run(self._operations.open(cap))), BUFFER_SIZE)

    def list(self, directory: str, path: str = "") -> dict[str, Entry]:
        """Return the entries of a directory, or of the one at the path below it, by name."""
        return self.run(self._operations.entries(directory, path))

    def find(self, directory: str, path: str) -> Entry:
        """Return the entry at the end of a path."""
        return self.run(self._operations.find(directory, path))

    def mkdir(self, parent: str | None = None, path: str = "", *, format: Literal["sdmf", "mdmf"] | None = None) -> str:
        """Make a directory and return its capability. Without a parent, nothing links to it; with one, the whole path is made."""
        return self.run(self._operations.mkdir(parent, path, format))

    def link(self, directory: str, path: str, cap: str, *, overwrite: bool = False) -> None:
        """Add an entry at the path that leads to the capability."""
        self.run(self._operations.link(directory, path, cap, overwrite))

    def unlink(self, directory: str, path: str) -> None:
        """Remove the entry at the path. What it links to is not deleted."""
        self.run(self._operations.unlink(directory, path))

    def move(self, directory: str, path: str, new_path: str, *, to: str | None = None, overwrite: bool = False) -> None:
        """Move or rename the entry at the path. to: the directory that new_path is relative to, if it is another one."""
        self.run(self._operations.move((directory, path), (to or directory, new_path), overwrite))

    def check(self, cap: str, *, verify: bool = False, add_lease: bool = False) -> Health:
        """Check how a file or directory is stored. verify: read and prove every byte of every share."""
        return self.run(self._operations.check(cap, verify, add_lease))

    def repair(self, cap: str, *, force: bool = False) -> Health:
        """Repair a file or directory if necessary, and return its health afterwards."""
        return self.run(self._operations.repair(cap, force))
