"""Very large directories in Python's memory: no garbage collection walks all their objects, and no single call frees them.

Both would block the interpreter, and so the event loop. With a million entries a collection takes seconds, and freeing the
dictionary takes one more. While a large directory is parsed or packed, collection is off. Afterwards its objects are frozen,
so that collections skip them. Its dictionaries are emptied on a thread, piece by piece, when nothing refers to
them any more. When the last of them is gone, the objects are unfrozen.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from threading import Lock, Thread
from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")

LARGE = 2**14
"""A directory with at least this many entries is large; freeing fewer takes some milliseconds."""

LARGE_SIZE = 2**22
"""A directory of this many bytes may have that many entries."""

PIECE = 2**11
"""Entries to free at once before other threads may run."""


class _Collector:
    """Controls Python's garbage collector while large directories exist."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._working = 0
        self._held = 0
        self._was_enabled = False

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Turn collection off meanwhile, and freeze the objects that exist now until no large dictionary is left."""
        with self._lock:
            if not self._working:
                self._was_enabled = gc.isenabled()
                gc.disable()
            self._working += 1
        try:
            yield
        finally:
            with self._lock:
                self._working -= 1
                if not self._working:
                    if self._held:
                        gc.freeze()
                    if self._was_enabled:
                        gc.enable()

    def hold(self) -> None:
        """Count a new large dictionary."""
        with self._lock:
            self._held += 1

    def release(self) -> None:
        """Count a large dictionary that is gone. After the last one, everything may be collected again."""
        with self._lock:
            self._held -= 1
            if not self._held and not self._working:
                gc.unfreeze()


collector = _Collector()


class Emptied(dict[K, V]):
    """A dictionary that, if it is large, is emptied piece by piece on a thread once nothing refers to it."""

    __slots__ = ("_is_held",)

    def __init__(self, items: Mapping[K, V] | Iterable[tuple[K, V]] = ()) -> None:
        super().__init__(items)
        self._is_held = False

    def completed(self) -> Emptied[K, V]:
        """Mark the dictionary as complete, and return it."""
        if len(self) > LARGE and not self._is_held:
            self._is_held = True
            collector.hold()
        return self

    def __del__(self) -> None:
        # When the interpreter exits, threads no longer start, and all its memory is freed with it.
        if self._is_held and not sys.is_finalizing():
            Thread(target=_empty, args=(self,), name="grid-free", daemon=True).start()


def _empty(mapping: Emptied[K, V]) -> None:
    while mapping:
        for _ in range(min(PIECE, len(mapping))):
            mapping.popitem()
    collector.release()
