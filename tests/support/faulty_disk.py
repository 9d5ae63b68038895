"""A disk whose n-th call fails, or stops the machine."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from grid.ports import Buffer
from grid.storage.files.disk import Disk, Handle, Space

T = TypeVar("T")

GROWING = frozenset({"make_directory", "create_file", "write"})
"""Calls that need room on the disk."""


EVERY = GROWING | {
    "remove_directory", "list_directory", "sync_directory", "rename", "unlink", "exists", "usage", "open_file", "size",
    "read", "truncate", "sync_file",
}  # fmt: skip
"""Calls that may fail: all but those that begin or end something and report nothing."""


class Stopped(BaseException):
    """The machine stopped: nothing that would handle an error runs."""


class FaultyDisk:
    """Calls the disk inside, as long as `fail_in` was not called or does not apply.

    `calls` names what was called, `fired` what failed.
    """

    def __init__(self, inside: Disk) -> None:
        self.inside = inside
        self.calls: list[str] = []
        self.fired: list[str] = []
        self._countdown: int | None = None
        self._error: int | None = None
        self._names = EVERY
        self._lasting: frozenset[str] = frozenset()

    def fail_in(
        self, count: int, error: int, names: frozenset[str] = EVERY, lasting: frozenset[str] = frozenset()
    ) -> None:
        """After `count` more calls of these names the next one fails, and of the lasting ones all that follow.

        A lasting failure of `write` spares what only replaces bytes.
        """
        self._countdown, self._error, self._names, self._lasting = count, error, names, lasting

    def stop_in(self, count: int) -> None:
        """After `count` more calls the machine stops: the next call and all others raise Stopped."""
        self._countdown, self._error, self._names, self._lasting = count, None, EVERY, EVERY

    def heal(self) -> None:
        """Fail no more."""
        self._countdown = None

    def _call(self, function: Callable[..., T], *arguments: Any, **options: Any) -> T:
        name = function.__name__
        self.calls.append(name)
        if self._countdown is not None and name in (self._names if self._countdown >= 0 else self._lasting):
            if self._countdown < 0 and name == "write" and not self._grows(*arguments):
                return function(*arguments, **options)
            if self._countdown <= 0:
                self._countdown = -1
                self.fired.append(name)
                if self._error is None:
                    raise Stopped
                raise OSError(self._error, os.strerror(self._error))
            self._countdown -= 1
        return function(*arguments, **options)

    def _grows(self, handle: Handle, offset: int, pieces: Sequence[Buffer]) -> bool:
        return offset + sum(map(len, pieces)) > self.inside.size(handle)

    def make_directory(self, path: str) -> None:
        self._call(self.inside.make_directory, path)

    def remove_directory(self, path: str) -> None:
        self._call(self.inside.remove_directory, path)

    def list_directory(self, path: str) -> list[tuple[str, bool]]:
        return self._call(self.inside.list_directory, path)

    def sync_directory(self, path: str) -> None:
        self._call(self.inside.sync_directory, path)

    def rename(self, old: str, new: str) -> None:
        self._call(self.inside.rename, old, new)

    def unlink(self, path: str) -> None:
        self._call(self.inside.unlink, path)

    def exists(self, path: str) -> bool:
        return self._call(self.inside.exists, path)

    def usage(self, path: str) -> tuple[int, int]:
        return self._call(self.inside.usage, path)

    def create_file(self, path: str) -> Handle:
        return self._call(self.inside.create_file, path)

    def open_file(self, path: str, *, writable: bool = False) -> Handle:
        return self._call(self.inside.open_file, path, writable=writable)

    def close_file(self, handle: Handle) -> None:
        self._call(self.inside.close_file, handle)

    def size(self, handle: Handle) -> int:
        return self._call(self.inside.size, handle)

    def read(self, handle: Handle, offset: int, length: int) -> bytes:
        return self._call(self.inside.read, handle, offset, length)

    def write(self, handle: Handle, offset: int, pieces: Sequence[Buffer]) -> None:
        self._call(self.inside.write, handle, offset, pieces)

    def truncate(self, handle: Handle, size: int) -> None:
        self._call(self.inside.truncate, handle, size)

    def sync_file(self, handle: Handle) -> None:
        self._call(self.inside.sync_file, handle)

    def start_writeback(self, handle: Handle) -> None:
        self._call(self.inside.start_writeback, handle)

    def free_space(self) -> int | None:
        return self._call(self.inside.free_space)

    def space(self) -> Space | None:
        return self._call(self.inside.space)
