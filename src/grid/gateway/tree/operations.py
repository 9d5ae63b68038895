"""Operations over a whole tree that run by themselves, and what they have come to. [spec webapi 7]

Owns what each kind remembers, and the bound on it: statistics are a few numbers, manifests and health grow with the tree.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import aclosing
from typing import Literal

from attrs import define, field

from grid.caps import DirectoryCap
from grid.codec.base32 import encode
from grid.directory.deep_check import CheckCounters, Checked, deep_check
from grid.directory.file_store import FileStore
from grid.directory.stats import Manifest, Stats
from grid.directory.store import Health
from grid.directory.walk import Visited, walk
from grid.errors import CancelledError, GridError
from grid.gateway.faults import PayloadTooLarge
from grid.gateway.tree.check_documents import Json, check_document, repair_document
from grid.gateway.tree.check_options import CheckOptions
from grid.gateway.tree.operation_table import OperationTable
from grid.gateway.tree.unreadable import UnreadDirectories
from grid.limits import MAX_OPERATION_RECORDS
from grid.ports import Clock
from grid.runtime import Tasks, is_cancellation

TreeKind = Literal["manifest", "deep-check", "deep-size", "deep-stats"]


@define
class Budget:
    """How many objects all operations of a gateway may still remember."""

    left: int = MAX_OPERATION_RECORDS

    def take(self) -> None:
        """One more; PayloadTooLarge if that is too many."""
        if self.left <= 0:
            words = "the tree is too large for an operation with a handle; the stream-* requests have no bound"
            raise PayloadTooLarge(words)
        self.left -= 1


@define
class HealthReport:
    """What a deep check remembers. results: by storage index."""

    counters: CheckCounters = field(factory=CheckCounters)
    corrupt: list[list[object]] = field(factory=list)
    remaining: list[list[object]] = field(factory=list)
    unhealthy: list[list[object]] = field(factory=list, repr=False)
    results: dict[str, Json] = field(factory=dict, repr=False)

    def add(self, checked: Checked, *, repair: bool) -> None:
        """One more object."""
        self.counters.add(checked)
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


@define(eq=False)
class TreeWork:
    """One operation. failure: what ended it before its time; what it had come to stays. finished: it ended."""

    kind: TreeKind
    root: DirectoryCap = field(repr=False)
    options: CheckOptions
    _store: FileStore = field(repr=False)
    _budget: Budget = field(repr=False)
    stats: Stats = field(factory=Stats)
    manifest: Manifest = field(factory=Manifest, repr=False)
    report: HealthReport = field(factory=HealthReport, repr=False)
    finished: bool = False
    failure: GridError | None = None
    _taken: int = 0
    _tasks: Tasks = field(factory=Tasks, repr=False)

    def start(self, on_end: Callable[[], None]) -> None:
        """Begin. on_end: called when it ended, well or not."""

        def end(error: BaseException | None) -> None:
            self._end(error)
            on_end()

        self._tasks.start(self._run(), end, end)

    def cancel(self) -> None:
        """Give it up."""
        self._tasks.cancel()

    @property
    def records(self) -> int:
        """Objects that it remembers."""
        return self._taken

    def forget(self) -> None:
        """Give back what was taken of the budget: nobody will ask any more."""
        self._budget.left += self._taken
        self._taken = 0

    def _end(self, error: BaseException | None) -> None:
        self.finished = True
        if error is None:
            return
        if isinstance(error, GridError):
            self.failure = error
        elif is_cancellation(error):
            self.failure = CancelledError("the operation was cancelled")
        else:
            self.failure = GridError("an error inside the gateway ended the operation")

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
            )
            async with aclosing(checks):
                async for checked in checks:
                    self._remember()
                    self.stats.add(checked.visited)
                    self.report.add(checked, repair=options.repair)
        else:
            async with aclosing(walk(self._store, self.root, on_unreadable=unread.note)) as visits:
                async for visited in visits:
                    self._visit(visited)

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
    """The operations of one gateway, by their handles."""

    def __init__(self, clock: Clock) -> None:
        self.table: OperationTable[TreeWork] = OperationTable(clock)
        self.budget = Budget()

    def start(
        self,
        handle: str,
        kind: TreeKind,
        root: DirectoryCap,
        options: CheckOptions,
        store: FileStore,
        retain_s: float | None,
    ) -> None:
        """Start one in the place of whatever had the handle. TooManyRequests."""
        self.table.make_room(handle)
        while self.budget.left < MAX_OPERATION_RECORDS // 10 and self.table.forget_oldest():
            pass  # What ended makes room for what begins.
        work = TreeWork(kind, root, options, store, self.budget)
        self.table.add(handle, work, retain_s)
        work.start(lambda: self.table.ended(work))

    def close(self) -> None:
        """Cancel and forget them all."""
        self.table.close()
