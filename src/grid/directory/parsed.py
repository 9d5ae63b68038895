"""Parsed directories, kept for the next use: a directory that has not changed is not parsed again.

They are found by capability and by the very bytes they were parsed from, which a read has just proven to be the
newest. So nothing stale is returned, and what a write capability unseals reaches nobody who only reads.

Cost: memory: MOST_KEPT_BYTES per process, those used last. A directory with LARGE_SIZE bytes or LARGE entries is not kept, since
the garbage collector would have to pass over it for as long.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from threading import Lock

from grid.caps import DirectoryCap
from grid.directory.large import LARGE, LARGE_SIZE, Emptied
from grid.directory.metadata import metadata_memory
from grid.directory.names import sort_names
from grid.directory.pack import Child, Entry
from grid.values import define, field

MOST_KEPT_BYTES = 64 * 2**20
"""Memory for kept directories: 10,000 typical objects of a bucket."""

ENTRY_BYTES = 1700
"""Most memory that an entry takes besides its metadata."""

_COMPARED_AT_ONCE = 2**22


@define(kw_only=True, eq=False)
class Parsed:
    """A directory as bytes, and as entries, which nobody changes."""

    data: bytes = field(repr=False)
    entries: Mapping[str, Entry] = field(repr=False)
    _listed: Mapping[str, Child] | None = field(default=None, init=False, repr=False)

    @property
    def is_listed(self) -> bool:
        """Whether `listed` takes no time."""
        return self._listed is not None

    def listed(self) -> Mapping[str, Child]:
        """The children that can be listed, in ascending order of their names."""
        if self._listed is None:
            entries = self.entries
            children = ((name, entries[name].child) for name in sort_names(entries))
            self._listed = Emptied((name, child) for name, child in children if child is not None).completed()
        return self._listed

    def memory(self) -> int:
        """About how many bytes all of it takes, rather more than less."""
        return len(self.data) + metadata_memory(self.data) + ENTRY_BYTES * len(self.entries)

    def is_of(self, data: bytes) -> bool:
        """Whether these are its bytes. They are compared in pieces if they are many."""
        mine = self.data
        return mine is data or (
            len(mine) == len(data)
            and all(
                mine[at : at + _COMPARED_AT_ONCE] == data[at : at + _COMPARED_AT_ONCE]
                for at in range(0, len(mine), _COMPARED_AT_ONCE)
            )
        )


class ParsedDirectories:
    """The directories of a process that were used last, for any thread."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._kept: OrderedDict[DirectoryCap, tuple[Parsed, int]] = OrderedDict()
        self.memory = 0
        """Bytes taken."""

    def get(self, cap: DirectoryCap, data: bytes) -> Parsed | None:
        """The directory of this capability with these bytes, if it is kept."""
        with self._lock:
            parsed, _ = self._kept.get(cap, (None, 0))
            if parsed is not None:
                self._kept.move_to_end(cap)
        return parsed if parsed is not None and parsed.is_of(data) else None

    def put(self, cap: DirectoryCap, parsed: Parsed) -> None:
        """Keep the directory instead of what was kept of it before, unless it is large."""
        is_large = len(parsed.data) >= LARGE_SIZE or len(parsed.entries) > LARGE
        memory = 0 if is_large else parsed.memory()
        with self._lock:
            self._drop(cap)
            if not is_large:
                self._kept[cap] = parsed, memory
                self.memory += memory
            while self.memory > MOST_KEPT_BYTES:
                self._drop(next(iter(self._kept)))

    def _drop(self, cap: DirectoryCap) -> None:
        _, memory = self._kept.pop(cap, (None, 0))
        self.memory -= memory
