"""Compares two directories of the grid: two snapshots, or any others.

It compares capabilities, not contents: directories with the same capability are not read, and equal immutable files of
one client have equal capabilities. Bounded: a fixed number of directories is read at once, and a tree of endless links
is refused.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Coroutine, Mapping
from enum import Enum
from typing import Any

from attrs import asdict, field

from grid.caps import DirectoryCap, ImmutableFileCap, KnownCap, UnknownChild
from grid.cli.transfer.bounded import run_pieces
from grid.directory.names import MAX_DEPTH
from grid.directory.pack import Child, Target
from grid.directory.store import Store
from grid.errors import GridError
from grid.values import define, frozen

PAIRS_AT_ONCE = 8

MAX_COMPARED = 5_000_000
"""Entries in all directories read: directories that link each other can unfold without end."""


class Change(Enum):
    """A kind of change, and the mark printed before the path."""

    ADDED = "+"
    REMOVED = "-"
    MODIFIED = "M"
    RETYPED = "T"


@frozen(kw_only=True)
class Difference:
    """One path that differs. old_size, new_size: bytes of an immutable file; None if absent or without a size."""

    path: tuple[str, ...]
    change: Change
    is_directory: bool
    old_size: int | None = None
    new_size: int | None = None


@define
class Totals:
    """Counts of differences. added_bytes, removed_bytes: of new, removed and modified immutable files."""

    files_added: int = 0
    files_removed: int = 0
    files_modified: int = 0
    directories_added: int = 0
    directories_removed: int = 0
    retyped: int = 0
    added_bytes: int = 0
    removed_bytes: int = 0

    def add(self, difference: Difference) -> None:
        """Count one difference."""
        kind = "directories" if difference.is_directory else "files"
        if difference.change is Change.RETYPED:
            self.retyped += 1
        else:
            counter = f"{kind}_{difference.change.name.lower()}"
            setattr(self, counter, getattr(self, counter) + 1)
        self.added_bytes += difference.new_size or 0
        self.removed_bytes += difference.old_size or 0

    def to_json(self) -> dict[str, int]:
        """The totals as a JSON object."""
        return asdict(self)


@define
class Comparison:
    """differences: sorted by path. unread: paths of directories that could not be read, with the reasons."""

    differences: list[Difference] = field(factory=list)
    unread: list[tuple[str, GridError]] = field(factory=list)
    totals: Totals = field(factory=Totals)


@frozen
class _Pair:
    """Directories to compare; None for an absent one.

    above: verify capabilities of both and of all directories above them.
    """

    path: tuple[str, ...]
    old: DirectoryCap | None = field(repr=False)
    new: DirectoryCap | None = field(repr=False)
    above: frozenset[KnownCap] = field(repr=False, default=frozenset())


async def compare(store: Store, old: DirectoryCap, new: DirectoryCap) -> Comparison:
    """Compare the directories; GridError if one of the two cannot be read, or if the trees are endless."""
    comparer = _Comparer(store)
    if not _is_same(old, new):
        comparer.waiting.append(_Pair((), old, new))
    await run_pieces(comparer.next, PAIRS_AT_ONCE)
    found = comparer.found
    found.differences.sort(key=lambda difference: difference.path)
    for difference in found.differences:
        found.totals.add(difference)
    return found


class _Comparer:
    def __init__(self, store: Store) -> None:
        self._store = store
        self._count = 0
        self.found = Comparison()
        self.waiting: deque[_Pair] = deque()

    def next(self) -> Coroutine[Any, Any, None] | None:
        """The next directories to read, or None."""
        return self._compare(self.waiting.popleft()) if self.waiting else None

    async def _compare(self, pair: _Pair) -> None:
        try:
            old, new = await self._list(pair.old), await self._list(pair.new)
        except GridError as problem:
            if not pair.path:
                raise
            self.found.unread.append(("/".join(pair.path), problem))
            return
        self._count += len(old) + len(new)
        if self._count > MAX_COMPARED:
            raise GridError(f"there are more than {MAX_COMPARED} entries to compare: compare directories further down")
        for name in old.keys() | new.keys():
            self._compare_child(pair, name, old.get(name), new.get(name))

    async def _list(self, cap: DirectoryCap | None) -> Mapping[str, Child]:
        return {} if cap is None else await self._store.directory(cap).list()

    def _compare_child(self, pair: _Pair, name: str, old: Child | None, new: Child | None) -> None:
        before, after = (None if child is None else child.target for child in (old, new))
        if before is not None and after is not None and _is_same(before, after):
            return
        path = (*pair.path, name)
        old_directory = before if isinstance(before, DirectoryCap) else None
        new_directory = after if isinstance(after, DirectoryCap) else None
        is_directory = old_directory is not None or new_directory is not None
        is_retyped = before is not None and after is not None and (old_directory is None) != (new_directory is None)
        if not is_directory or before is None or after is None or is_retyped:
            change = Change.ADDED if before is None else Change.REMOVED if after is None else Change.MODIFIED
            self.found.differences.append(
                Difference(
                    path=path,
                    change=Change.RETYPED if is_retyped else change,
                    is_directory=is_directory,
                    old_size=_size_of(before),
                    new_size=_size_of(after),
                )
            )
        self._descend(pair, path, old_directory, new_directory)

    def _descend(self, pair: _Pair, path: tuple[str, ...], old: DirectoryCap | None, new: DirectoryCap | None) -> None:
        """Schedule a comparison of the directories' entries, unless one contains itself."""
        marks = [cap.verify_cap() for cap in (old, new) if cap is not None]
        known = {mark for mark in marks if mark is not None}
        if not marks or (known and known <= pair.above):
            return
        if len(path) > MAX_DEPTH:
            self.found.unread.append(("/".join(path), GridError("directories are nested too deeply here")))
            return
        self.waiting.append(_Pair(path, old, new, pair.above | known))


def _is_same(old: Target, new: Target) -> bool:
    """Whether both lead to the same object, with whatever authority."""
    if old == new:
        return True
    if isinstance(old, UnknownChild) or isinstance(new, UnknownChild):
        return False
    verify = old.verify_cap()
    # All slices of a pack share the pack's verify capability.
    return old.is_mutable and verify is not None and verify == new.verify_cap()


def _size_of(target: Target | None) -> int | None:
    return target.size if isinstance(target, ImmutableFileCap) else None
