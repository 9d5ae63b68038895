"""Walks over everything below a directory: each object once, in one order, reading ahead. [spec directories 8]

It owns the order, the cutting of loops, and how far ahead directories are read. A slow consumer pauses the
reading: at most AHEAD directories at each depth wait for it, and AHEAD_BYTES in total.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping
from typing import TYPE_CHECKING

from attrs import evolve, field
from twisted.internet.defer import Deferred

from grid.caps import ChkCap, DirectoryCap, ImmutableFileCap, KnownCap, SequenceCap, SliceCap, UnknownChild
from grid.directory.pack import Child, Target
from grid.errors import AuthorityError, GridError
from grid.extents.health import chk_files_of
from grid.extents.reader import read_table
from grid.ports import Sink
from grid.runtime import Tasks, run_sized
from grid.values import define, frozen

if TYPE_CHECKING:
    from grid.directory.store import Store

AHEAD = 8
"""Directories read at once, and read ahead at each depth."""

AHEAD_BYTES = 8 * 2**20
"""Bytes of directories that were read and not reported yet; listings take some six times that in memory."""

REPORTED_AT_ONCE = 64
"""Objects reported without a pause; a consumer makes some hundred calls for each."""

LARGE_BYTES = AHEAD_BYTES // AHEAD
"""A directory of at least this many bytes is not kept before its turn."""

Path = tuple[str, ...]


@frozen(kw_only=True)
class Visited:
    """One object of a tree. path: names from the root, whose own path is empty.

    children: of a directory, in ascending order of their names. size: bytes of a directory's file, or of an
    immutable file; None if servers would have to be asked. stored_in: of a sequence, the CHK files that contain it, and its
    slices; None if its table cannot be read.
    """

    path: Path
    target: Target = field(repr=False)
    children: Mapping[str, Child] | None = None
    size: int | None = None
    stored_in: tuple[ChkCap | SliceCap, ...] | None = field(default=None, repr=False)

    @property
    def cap(self) -> str | None:
        """The object's cap as text; None for an unknown child without a cap."""
        if isinstance(self.target, UnknownChild):
            text = self.target.write or self.target.read
            return None if text is None else text.decode("utf-8", "replace")
        return self.target.to_string()

    @property
    def is_directory(self) -> bool:
        """Whether it is a directory."""
        return isinstance(self.target, DirectoryCap)


OnUnreadable = Callable[[Visited, GridError], None]
"""Called for a directory that cannot be read. The walk goes on unless this raises."""


@define(eq=False)
class _Pending:
    """A directory to visit, and the result of reading it."""

    path: Path
    cap: DirectoryCap
    started: bool = False
    is_large: bool = False
    outcome: tuple[Mapping[str, Child], int] | BaseException | None = None
    waiter: Deferred[None] | None = None

    def settle(self, outcome: tuple[Mapping[str, Child], int] | BaseException) -> None:
        self.outcome = outcome
        waiter, self.waiter = self.waiter, None
        if waiter is not None:
            waiter.callback(None)


async def walk(
    store: Store, root: DirectoryCap, *, on_unreadable: OnUnreadable | None = None, depth: int | None = None
) -> AsyncGenerator[Visited, None]:
    """The root and everything below it: a directory, the unknown children in it, its new files, and
    then each new subdirectory with everything below it.

    A directory that cannot be read is reported without children; then its error ends the walk, or on_unreadable
    gets it. Directories deeper than `depth` below the root are not read, and not reported separately. Closing the
    iterator cancels all reads. AuthorityError for a verify cap.
    """
    if root.authority == "verify":
        raise AuthorityError("a verify capability cannot list the directory: use its read or write capability")
    found: set[KnownCap] = {verify for verify in (root.verify_cap(),) if verify is not None}
    stack = [_Pending((), root)]
    reader = _Reader(store, stack)
    reported = 0
    try:
        while stack:
            here = stack[-1]
            outcome = await reader.outcome_of(here)
            stack.pop()
            visited = Visited(path=here.path, target=here.cap)
            if isinstance(outcome, BaseException):
                yield visited
                if not isinstance(outcome, GridError) or on_unreadable is None:
                    raise outcome
                on_unreadable(visited, outcome)
                continue
            children, size = outcome
            unknown, files, directories = await run_sized(
                store.runtime.cpu, len(children), _sort, here.path, children, found
            )
            if depth is None or len(here.path) < depth:
                stack.extend(reversed(directories))
            reader.read_ahead()
            yield evolve(visited, children=children, size=size)
            for each in (*unknown, *files):
                yield await _with_parts(store, each) if isinstance(each.target, SequenceCap) else each
                reported += 1
                if reported % REPORTED_AT_ONCE == 0:
                    await store.runtime.clock.sleep(0)  # The consumer may never pause by itself.
    finally:
        reader.cancel()


def _sort(
    path: Path, children: Mapping[str, Child], found: set[KnownCap]
) -> tuple[list[Visited], list[Visited], list[_Pending]]:
    """The unknown children, new files and new directories of one listing; they are added to `found`."""
    unknown: list[Visited] = []
    files: list[Visited] = []
    directories: list[_Pending] = []
    for name, child in children.items():
        target = child.target
        if isinstance(target, UnknownChild):
            unknown.append(Visited(path=(*path, name), target=target))
            continue
        # All slices of one pack have the same verify cap.
        mark = target if isinstance(target, SliceCap | SequenceCap) else target.verify_cap()
        if mark is not None:
            if mark in found:
                continue
            found.add(mark)
        if isinstance(target, DirectoryCap):
            directories.append(_Pending((*path, name), target))
        else:
            size = target.size if isinstance(target, ImmutableFileCap) else None
            files.append(Visited(path=(*path, name), target=target, size=size))
    return unknown, files, directories


async def _with_parts(store: Store, visited: Visited) -> Visited:
    """Add what a sequence is stored in, if its table can be read."""

    async def read_chk(cap: ChkCap, sink: Sink, offset: int, length: int, _: int) -> int:
        return await store.read(cap, sink, offset, length)

    assert isinstance(visited.target, SequenceCap)
    try:
        parts = (await read_table(visited.target, read_chk)).files()
    except GridError:
        return visited
    slices = sorted((part for part in parts if isinstance(part, SliceCap)), key=lambda part: part.to_string())
    return evolve(visited, stored_in=(*chk_files_of(visited.target, parts), *slices))


class _Reader:
    """Reads the directories on top of the stack, which are visited next."""

    def __init__(self, store: Store, stack: list[_Pending]) -> None:
        self._store = store
        self._stack = stack
        self._tasks = Tasks()
        self._held_bytes = 0

    async def outcome_of(self, pending: _Pending) -> tuple[Mapping[str, Child], int] | BaseException:
        """The result of reading it."""
        if pending.outcome is None:
            # Count the waiter before the read begins: it may end at once, and large results are kept only if somebody waits.
            waiter: Deferred[None] = Deferred()
            pending.waiter = waiter
            self._start(pending)
            self.read_ahead()
            await waiter
        else:
            self.read_ahead()
        outcome = pending.outcome
        assert outcome is not None
        if not isinstance(outcome, BaseException):
            self._held_bytes -= outcome[1]
        return outcome

    def read_ahead(self) -> None:
        """Begin to read the next few directories, as far as there is room."""
        for pending in reversed(self._stack[-AHEAD:]):
            if self._tasks.count >= AHEAD or self._held_bytes >= AHEAD_BYTES:
                return
            if not pending.is_large:
                self._start(pending)

    def cancel(self) -> None:
        """Cancel all reads."""
        self._tasks.cancel()

    def _start(self, pending: _Pending) -> None:
        if pending.started:
            return
        pending.started = True

        def arrived(outcome: tuple[Mapping[str, Child], int]) -> None:
            if pending.waiter is None and outcome[1] > LARGE_BYTES:
                # Eight of these would be gigabytes. It is read again when its turn comes.
                pending.started, pending.is_large = False, True
                return
            self._held_bytes += outcome[1]
            pending.settle(outcome)

        self._tasks.start(self._read(pending.cap), arrived, pending.settle)

    async def _read(self, cap: DirectoryCap) -> tuple[Mapping[str, Child], int]:
        return await self._store.directory(cap).listing()
