"""Collections that may become very long: what exceeds some thousand items lies in a temporary file.

They own these files, which have no name and end with them. Items have names of files, and reasons, but no contents and
no secrets. Memory: KEPT items, or twice as many names.
"""

from __future__ import annotations

import json
import os
import tempfile
import weakref
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any, BinaryIO, Generic, TypeVar, cast

T = TypeVar("T")

KEPT = 1000
"""Items that are kept in memory."""

ON_DISK = "/var/tmp"  # noqa: S108 - the file has no name
"""Where temporary files lie unless TMPDIR says otherwise: /tmp is often in memory."""


class Spool(Generic[T]):
    """A list that can be added to, and read from its start."""

    def __init__(self, pack: Callable[[T], object], parse: Callable[[Any], T]) -> None:
        """pack, parse: between an item and a value for JSON."""
        self._pack, self._parse = pack, parse
        self._first: list[T] = []
        self._count = 0
        self._file: BinaryIO | None = None
        self._is_at_end = True

    def append(self, item: T) -> None:
        """Add an item; OSError if it must go to the disk, and that is full."""
        if self._count < KEPT:
            self._first.append(item)
        else:
            if self._file is None:
                self._file = _open_file(self)
            if not self._is_at_end:
                self._file.seek(0, os.SEEK_END)
                self._is_at_end = True
            self._file.write(json.dumps(self._pack(item)).encode() + b"\n")
        self._count += 1

    def extend(self, items: Iterable[T]) -> None:
        """Add items."""
        for item in items:
            self.append(item)

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[T]:
        """Yield the items. Nothing may be added meanwhile, nor anything else be read."""
        yield from self._first
        if self._file is not None:
            self._file.seek(0)
            self._is_at_end = False
            for line in self._file:
                yield self._parse(json.loads(line))

    def __getitem__(self, index: int) -> T:
        """One item: only the first ones are found quickly."""
        if index < len(self._first):
            return self._first[index]
        try:
            return next(islice(self, index, None))
        except StopIteration:
            raise IndexError(index) from None

    def __repr__(self) -> str:
        return f"Spool({self._first!r}{', ...' if self._file is not None else ''})"


class Stack:
    """Names of which the last one added is taken first."""

    def __init__(self, names: Iterable[str] = ()) -> None:
        self._last = list(names)
        self._blocks: list[int] = []
        self._file: BinaryIO | None = None

    def append(self, name: str) -> None:
        """Add a name; OSError if others must go to the disk, and that is full."""
        if len(self._last) >= 2 * KEPT:
            if self._file is None:
                self._file = _open_file(self)
            self._blocks.append(self._file.seek(0, os.SEEK_END))
            self._file.write(json.dumps(self._last[:KEPT]).encode() + b"\n")
            del self._last[:KEPT]
        self._last.append(name)

    def pop(self) -> str:
        """Take the last name; IndexError if there is none."""
        if not self._last and self._file is not None and self._blocks:
            begin = self._blocks.pop()
            self._file.seek(begin)
            self._last = json.loads(self._file.readline())
            self._file.truncate(begin)
        return self._last.pop()

    def __len__(self) -> int:
        return len(self._last) + KEPT * len(self._blocks)


def _open_file(owner: object) -> BinaryIO:
    """A file without a name, which is closed when its owner is gone."""
    folder = ON_DISK if "TMPDIR" not in os.environ and os.access(ON_DISK, os.W_OK | os.X_OK) else None
    file = cast(BinaryIO, tempfile.TemporaryFile(dir=folder))  # noqa: SIM115
    weakref.finalize(owner, file.close)
    return file
