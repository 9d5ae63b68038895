"""Operations over a whole tree that run in the background under handles. [spec webapi 7, 7.1]

Owns the bounds: how many operations run and are remembered, for how long, and how many objects all of them remember.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from contextlib import aclosing
from typing import Generic, Literal, Protocol, TypeVar

from grid.caps import DirectoryCap
from grid.codec.base32 import encode
from grid.directory.deep_check import CheckCounters, Checked, deep_check, good_shares
from grid.directory.stats import Manifest, Stats
from grid.directory.store import Health
from grid.directory.walk import Path, Visited, walk
from grid.errors import CancelledError, GridError
from grid.gateway.faults import NotFound, PayloadTooLarge, TooManyRequests
from grid.gateway.history.recorded_store import RecordedStore
from grid.gateway.tree.checks import CheckOptions, Json, UnreadDirectories, check_document, repair_document
from grid.limits import MAX_OPERATION_RECORDS, MAX_OPERATIONS, MAX_RUNNING_OPERATIONS
from grid.ports import Clock, Timer
from grid.runtime import Tasks, is_cancellation
from grid.values import define, field

MAX_KEPT = 1000
"""Unhealthy objects that a check started from a page keeps; it counts the others."""

UNCOLLECTED_S = 4 * 86400.0
"""Seconds that a finished operation is kept until a client asks for it."""

COLLECTED_S = 86400.0
"""Seconds that it is kept after a client asked for it."""


class Work(Protocol):
    """Background work with a handle."""

    @property
    def finished(self) -> bool:
        """Whether it ended, successfully or not."""

    def cancel(self) -> None:
        """Cancel the work."""

    def forget(self) -> None:
        """Release its memory: no client will ask for it again."""


W = TypeVar("W", bound=Work)


@define(eq=False)
class _Entry(Generic[W]):
    work: W
    started_at: float
    retain_s: float | None
    is_collected: bool = False
    ended_at: float | None = None
    timer: Timer | None = None


class OperationTable(Generic[W]):
    """The operations of a gateway, by the handles that clients chose."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._entries: dict[str, _Entry[W]] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def make_room(self, handle: str) -> None:
        """Prepare for a new operation: remove the handle's previous one and, if necessary, the oldest finished one.

        TooManyRequests if the limit of running operations is reached.
        """
        self.release(handle)
        if sum(not entry.work.finished for entry in self._entries.values()) >= MAX_RUNNING_OPERATIONS:
            headers = (("Retry-After", "60"),)
            raise TooManyRequests(
                "too many operations are running; cancel one, or wait until one ends", headers=headers
            )
        if len(self._entries) >= MAX_OPERATIONS:
            self.forget_oldest()

    def forget_oldest(self) -> bool:
        """Release the finished operation that was started first; return whether there was one."""
        for handle, entry in self._entries.items():
            if entry.work.finished:
                self.release(handle)
                return True
        return False

    def add(self, handle: str, work: W, retain_s: float | None) -> None:
        """Add an operation. retain_s: seconds to keep it after its end, None for the defaults."""
        self._entries[handle] = entry = _Entry(work, self._clock.now(), retain_s)
        if work.finished:
            self._ended(handle, entry)

    def ended(self, work: W) -> None:
        """Start the retention period of an operation that ended by itself."""
        for handle, entry in self._entries.items():
            if entry.work is work:
                self._ended(handle, entry)
                return

    def look_at(self, handle: str, retain_s: float | None) -> W:
        """Return the operation for a client that asked for its state; NotFound."""
        entry = self._entries.get(handle)
        if entry is None:
            raise NotFound(f"unknown/expired handle {handle[:100]!r}", shape="page")
        if retain_s is not None:
            entry.retain_s = retain_s
        if entry.work.finished and (retain_s is not None or not entry.is_collected):
            entry.is_collected = True
            self._set_timer(handle, entry)
        return entry.work

    def newest(self) -> list[tuple[str, W]]:
        """All operations by handle, the newest first."""
        return [(handle, entry.work) for handle, entry in reversed(self._entries.items())]

    def release(self, handle: str) -> None:
        """Forget the operation of this handle, if any, and cancel it if it runs."""
        entry = self._entries.pop(handle, None)
        if entry is None:
            return
        if entry.timer is not None:
            entry.timer.cancel()
        if not entry.work.finished:
            entry.work.cancel()
        entry.work.forget()

    def close(self) -> None:
        """Cancel and forget all operations."""
        for handle in list(self._entries):
            self.release(handle)

    def _ended(self, handle: str, entry: _Entry[W]) -> None:
        entry.ended_at = self._clock.now()
        self._set_timer(handle, entry)

    def _set_timer(self, handle: str, entry: _Entry[W]) -> None:
        now = self._clock.now()
        ended_at = now if entry.ended_at is None else entry.ended_at
        if entry.retain_s is not None:
            stays_s = entry.retain_s
        elif entry.is_collected:
            stays_s = COLLECTED_S
        else:
            stays_s = max(UNCOLLECTED_S, ended_at - entry.started_at)
        if entry.timer is not None:
            entry.timer.cancel()
        entry.timer = self._clock.call_later(stays_s, lambda: self._expire(handle, entry))

    def _expire(self, handle: str, entry: _Entry[W]) -> None:
        entry.timer = None
        if self._entries.get(handle) is entry:
            self.release(handle)


TreeKind = Literal["manifest", "deep-check", "deep-size", "deep-stats"]


@define
class Budget:
    """How many more objects all operations of a gateway may remember."""

    left: int = MAX_OPERATION_RECORDS

    def take(self) -> None:
        """Take one; PayloadTooLarge if none is left."""
        if self.left <= 0:
            words = "the tree is too large for an operation with a handle; the stream-* requests have no limit"
            raise PayloadTooLarge(words)
        self.left -= 1


@define
class HealthReport:
    """The results of a deep check. results: by storage index. shares: good ones, after repairs.

    found: the objects known so far, and those linked twice. under_way: the paths of those that are being checked.
    """

    counters: CheckCounters = field(factory=CheckCounters)
    corrupt: list[list[object]] = field(factory=list)
    remaining: list[list[object]] = field(factory=list)
    unhealthy: list[list[object]] = field(factory=list, repr=False)
    results: dict[str, Json] = field(factory=dict, repr=False)
    shares: int = 0
    found: int = 1
    under_way: deque[Path] = field(factory=deque, repr=False)

    def begin(self, visited: Visited) -> None:
        """Note that the check of an object begins. Results come in the same order."""
        self.found += len(visited.children or ())
        self.under_way.append(visited.path)

    def count(self, checked: Checked) -> None:
        """Count the result of one object."""
        self.under_way.popleft()
        self.counters.add(checked)
        self.shares += good_shares(checked)

    def keep(self, checked: Checked, *, repair: bool) -> None:
        """Keep the result of one object."""
        index = getattr(checked.visited.target, "storage_index", None)
        if index is None:
            return
        named = encode(index)
        before = check_document(checked, named)
        self.results[named] = repair_document(checked, named, in_tree=True) if repair else before
        self.corrupt.extend(_corrupt(checked.health))
        self.remaining.extend(_corrupt(checked.repair.after if checked.repair is not None else checked.health))
        if checked.health is None or not checked.health.healthy:
            self.unhealthy.append([list(checked.visited.path), before])


def is_unhealthy(checked: Checked) -> bool:
    """Whether it was found with shares missing or damaged, or could not be checked; literal files have no shares."""
    return checked.counts and (checked.health is None or not checked.health.healthy)


@define(eq=False)
class TreeWork:
    """One operation. failure: what ended it early; its results so far are kept. finished: whether it ended.

    home: the address of the directory's page if a check was started there, else "". Such a check keeps the results of
    MAX_KEPT unhealthy objects and of no others, so it has no limit on the size of the tree.
    """

    kind: TreeKind
    root: DirectoryCap = field(repr=False)
    options: CheckOptions
    _store: RecordedStore = field(repr=False)
    _budget: Budget = field(repr=False)
    home: str = field(default="", repr=False)
    stats: Stats = field(factory=Stats)
    manifest: Manifest = field(factory=Manifest, repr=False)
    report: HealthReport = field(factory=HealthReport, repr=False)
    finished: bool = False
    failure: GridError | None = None
    _taken: int = 0
    _tasks: Tasks = field(factory=Tasks, repr=False)

    def start(self, on_end: Callable[[], None]) -> None:
        """Start the operation. on_end: called when it ends, successfully or not."""

        def end(error: BaseException | None) -> None:
            self._end(error)
            on_end()

        self._tasks.start(self._run(), end, end)

    def cancel(self) -> None:
        """Cancel the operation."""
        self._tasks.cancel()

    @property
    def records(self) -> int:
        """The number of objects that it remembers."""
        return self._taken

    def forget(self) -> None:
        """Return its part of the budget: no client will ask for it again."""
        self._budget.left += self._taken
        self._taken = 0

    def _end(self, error: BaseException | None) -> None:
        self.finished = True
        if error is None:
            return
        if isinstance(error, GridError):
            self.failure = error
        elif is_cancellation(error):
            self.failure = CancelledError("the operation was canceled")
        else:
            self.failure = GridError("an internal error ended the operation; see the gateway's log")

    async def _run(self) -> None:
        unread = UnreadDirectories()
        if self.kind == "deep-check":
            options = self.options
            checks = deep_check(
                self._store,
                self.root,
                verify=options.verify,
                add_lease=options.add_lease,
                repair=options.repair,
                on_unreadable=unread.note,
                on_start=self.report.begin,
            )
            async with aclosing(checks):
                async for checked in checks:
                    self._check(checked)
        else:
            async with aclosing(walk(self._store, self.root, on_unreadable=unread.note)) as visits:
                async for visited in visits:
                    self._visit(visited)

    def _check(self, checked: Checked) -> None:
        is_kept = not self.home or (is_unhealthy(checked) and len(self.report.unhealthy) < MAX_KEPT)
        if is_kept:
            self._remember()
        self.stats.add(checked.visited)
        self.report.count(checked)
        if is_kept:
            self.report.keep(checked, repair=self.options.repair)

    def _visit(self, visited: Visited) -> None:
        if self.kind == "manifest":
            self._remember()
            self.manifest.add(visited)
        self.stats.add(visited)

    def _remember(self) -> None:
        self._budget.take()
        self._taken += 1


def _corrupt(found: Health | None) -> list[list[object]]:
    if found is None:
        return []
    return [[server, found.storage_index, share] for server, share in sorted(found.corrupt)]


class Operations:
    """The operations of one gateway, by handle."""

    def __init__(self, clock: Clock) -> None:
        self.table: OperationTable[TreeWork] = OperationTable(clock)
        self.budget = Budget()

    def start(
        self,
        handle: str,
        kind: TreeKind,
        root: DirectoryCap,
        options: CheckOptions,
        store: RecordedStore,
        retain_s: float | None,
        home: str = "",
    ) -> None:
        """Start an operation, replacing any earlier one with this handle. home: see TreeWork. TooManyRequests."""
        self.table.make_room(handle)
        while self.budget.left < MAX_OPERATION_RECORDS // 10 and self.table.forget_oldest():
            pass  # A finished operation makes room for a new one.
        work = TreeWork(kind, root, options, store, self.budget, home)
        self.table.add(handle, work, retain_s)
        work.start(lambda: self.table.ended(work))

    def check_of(self, root: DirectoryCap) -> tuple[str, bool] | None:
        """The handle of the last check that was started from this directory's page, and whether it has finished."""
        for handle, work in self.table.newest():
            if work.home and work.root == root:
                return handle, work.finished
        return None

    def close(self) -> None:
        """Cancel and forget all operations."""
        self.table.close()
