"""What changes to directories replaced or removed, kept so that the page of the directory can offer to undo it.

It owns the last changes made through this gateway, in memory and, if it has one, in a file that outlives the gateway.
A page names a change by its number, never by a capability, and only who has the directory's write capability sees or
undoes its changes (decision 0359).

Cost: memory: MAX_SIZE bytes of names, capabilities and metadata.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress

from grid.caps import DirectoryCap, UnknownChild
from grid.directory.edits import Edit, SetChild
from grid.directory.names import normalize_name
from grid.directory.pack import Child, Target
from grid.errors import FormatError
from grid.gateway.history.undo_file import SealedChange, UndoFile, unseal
from grid.values import field, frozen

MAX_CHANGES = 100
"""Changes kept, in all directories together."""

MAX_ENTRIES = 1000
"""Entries of one change. A program that replaces more at once is not offered to undo it."""

MAX_SIZE = 16 * 2**20
"""Bytes of names, capabilities and metadata kept. The oldest changes go first."""


@frozen(kw_only=True)
class PastEntry:
    """One entry of a change. new: what the change left under the name; None if nothing."""

    name: str
    old: Child = field(repr=False)
    new: Target | None = field(repr=False)


@frozen(kw_only=True)
class PastChange:
    """A change of one directory. index: the directory's storage index. time: Unix time. size: bytes that it takes."""

    number: int
    index: bytes = field(repr=False)
    time: float
    entries: tuple[PastEntry, ...]
    size: int


class UndoJournal:
    """The changes that can be undone."""

    def __init__(self, file: UndoFile | None = None) -> None:
        self._file = file
        self._changes: deque[PastChange | SealedChange] = deque(file.load() if file is not None else ())
        self._last = max((change.number for change in self._changes), default=0)
        self._size = sum(change.size for change in self._changes)
        self._trim()

    def record(self, cap: DirectoryCap, edits: Sequence[Edit], previous: Mapping[str, Child], now: float) -> None:
        """Record a change just made. previous: the children that it replaced or removed, by name.

        An entry that only got another name or other metadata is not recorded.
        """
        index = cap.storage_index
        if index is None or not previous or len(previous) > MAX_ENTRIES:
            return
        left = {normalize_name(edit.name): edit.target for edit in edits if isinstance(edit, SetChild)}
        kept = set(left.values())
        entries = tuple(
            PastEntry(name=name, old=child, new=left.get(name))
            for name, child in previous.items()
            if child.target not in kept
        )
        size = sum(map(_size, entries))
        if not entries or size > MAX_SIZE:
            return
        self._last += 1
        self._changes.append(PastChange(number=self._last, index=index, time=now, entries=entries, size=size))
        self._size += size
        if self._file is not None:
            self._file.add(cap, index, self._last, now, [(entry.name, entry.old, entry.new) for entry in entries])
        self._trim()

    def _trim(self) -> None:
        while len(self._changes) > MAX_CHANGES or self._size > MAX_SIZE:
            oldest = self._changes.popleft()
            self._size -= oldest.size
            if self._file is not None:
                self._file.drop(oldest.number)
        if self._file is not None:
            self._file.trim({change.number for change in self._changes})

    def forget_moved(self, cap: DirectoryCap, names: Collection[str]) -> None:
        """Forget the newest change of the directory if it only removed these names: the entries were moved elsewhere."""
        change = next(iter(self.changes(cap)), None)
        if change is not None and {entry.name for entry in change.entries} == set(names):
            self.drop(change)

    def changes(self, cap: DirectoryCap) -> list[PastChange]:
        """The changes of a directory, the newest first; none without its write capability."""
        if cap.authority != "write" or cap.storage_index is None:
            return []
        self._unseal(cap, cap.storage_index)
        found = (change for change in reversed(self._changes) if change.index == cap.storage_index)
        return [change for change in found if isinstance(change, PastChange)]

    def _unseal(self, cap: DirectoryCap, index: bytes) -> None:
        """Open the changes of this directory that come from the file."""
        for place, change in enumerate(self._changes):
            if isinstance(change, PastChange) or change.index != index:
                continue
            with suppress(FormatError):
                entries = tuple(PastEntry(name=name, old=old, new=new) for name, old, new in unseal(cap, change))
                self._changes[place] = PastChange(
                    number=change.number, index=index, time=change.time, entries=entries, size=change.size
                )

    def find(self, cap: DirectoryCap, number: int) -> PastChange | None:
        """The change of the directory with this number, or None."""
        return next((change for change in self.changes(cap) if change.number == number), None)

    def drop(self, change: PastChange) -> None:
        """Forget a change, such as one that was undone."""
        if change in self._changes:
            self._changes.remove(change)
            self._size -= change.size
            if self._file is not None:
                self._file.drop(change.number)


def _size(entry: PastEntry) -> int:
    target = entry.old.target
    if isinstance(target, UnknownChild):
        cap_size = len(target.read or b"") + len(target.write or b"")
    else:
        cap_size = len(target.to_string())
    return len(entry.name) + cap_size + len(json.dumps(entry.old.metadata))
