"""Checks, verifies and repairs everything below a directory, several objects at once. [spec directories 9]

Results come in the order of the walk, whichever check ends first. An object that cannot be checked or repaired does
not end the walk.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping
from contextlib import aclosing
from typing import Any

from attrs import evolve, field
from twisted.internet.defer import Deferred

from grid.caps import DirectoryCap, KnownCap, SequenceCap, SliceCap, UnknownChild
from grid.directory.store import Health, RepairResult, Store
from grid.directory.walk import OnUnreadable, Visited, walk
from grid.errors import GridError
from grid.runtime import Tasks
from grid.values import define, frozen

JOBS = 8
"""Objects checked at once; each check asks all its servers at once."""


@frozen(kw_only=True)
class Checked:
    """An object and its health. health: None if there is nothing to check, or if `error` says why it is unknown.

    With a repair, health is from before it. error: also why a repair was impossible. is_repeat: a file in a pack that was
    checked for another file already.
    """

    visited: Visited
    health: Health | None = None
    repair: RepairResult | None = None
    error: GridError | None = None
    is_repeat: bool = False

    @property
    def counts(self) -> bool:
        """Whether it is counted; literal and unknown objects are not."""
        return self.error is not None or (self.health is not None and bool(self.health.storage_index))


async def deep_check(
    store: Store,
    root: DirectoryCap,
    *,
    verify: bool = False,
    add_lease: bool = False,
    repair: bool = False,
    on_unreadable: OnUnreadable | None = None,
    on_start: Callable[[Visited], None] | None = None,
) -> AsyncGenerator[Checked, None]:
    """Check everything that a walk visits. repair: repair what is unhealthy and recoverable, and spread what is on too few servers.

    on_start: called with each object before it is checked; at most JOBS of them have no result yet.

    A mutable object with only a read cap is checked but not repaired. The errors of `walk` are raised after everything
    visited before them was reported.
    """

    async def examine(visited: Visited) -> Checked:
        target = visited.target
        if isinstance(target, UnknownChild) or (target.storage_index is None and not isinstance(target, SequenceCap)):
            health = None if isinstance(target, UnknownChild) else await store.check(target)
            return Checked(visited=visited, health=health)
        if repair:
            return await check_and_repair(store, visited, target, verify, add_lease)
        try:
            return Checked(visited=visited, health=await store.check(target, verify=verify, add_lease=add_lease))
        except GridError as error:
            return Checked(visited=visited, error=error)

    packs = _Packs(examine)
    jobs = _Jobs()
    failure: GridError | None = None
    try:
        async with aclosing(walk(store, root, on_unreadable=on_unreadable)) as visits:
            try:
                async for visited in visits:
                    if on_start is not None:
                        on_start(visited)
                    jobs.start(packs.examine(visited))
                    if jobs.count >= JOBS:
                        yield await jobs.next()
            except GridError as error:
                failure = error
        while jobs.count:
            yield await jobs.next()
        if failure is not None:
            raise failure
    finally:
        jobs.cancel()


async def check_and_repair(store: Store, visited: Visited, cap: KnownCap, verify: bool, add_lease: bool) -> Checked:
    """Check, and repair if necessary. The first check verifies, unless a check without verification finds everything.

    Errors are part of the result.
    """
    before: Health | None = None
    try:
        before = await store.check(cap, verify=verify, add_lease=add_lease)
        is_whole = before.healthy and not before.corrupt and not before.can_spread
        if is_whole or (cap.is_mutable and cap.authority != "write"):
            return Checked(visited=visited, health=before, repair=_LeftAlone(before))
        mended = await store.repair(cap)
    except GridError as error:
        return Checked(visited=visited, health=before, error=error)
    return Checked(visited=visited, health=mended.before, repair=mended)


def good_shares(checked: Checked) -> int:
    """The good shares of an object after a repair; 0 for a file in a pack that was already counted."""
    health = checked.health if checked.repair is None else checked.repair.after
    if health is None or checked.is_repeat or not checked.counts:
        return 0
    results = health.to_json().get("results")
    good = results.get("count-shares-good") if isinstance(results, dict) else None
    return good if isinstance(good, int) else 0


@frozen
class _LeftAlone:
    """No repair was made, because none was needed or the cap permits none."""

    before: Health
    attempted: bool = False
    successful: bool = False

    @property
    def after(self) -> Health:
        return self.before

    def to_json(self) -> dict[str, object]:
        """The CHECK-AND-REPAIR object of [spec webapi 6.3]."""
        found = self.before.to_json()
        return {
            "storage-index": self.before.storage_index,
            "repair-attempted": False,
            "repair-successful": False,
            "pre-repair-results": found,
            "post-repair-results": found,
        }


class _Packs:
    """Checks each pack once, for the first of its files."""

    def __init__(self, examine: Callable[[Visited], Coroutine[Any, Any, Checked]]) -> None:
        self._examine = examine
        self._jobs: dict[KnownCap, _Job] = {}

    async def examine(self, visited: Visited) -> Checked:
        """The findings; for a further file of a pack, those for the first."""
        if not isinstance(visited.target, SliceCap):
            return await self._examine(visited)
        pack = visited.target.verify_cap()
        job = self._jobs.get(pack)
        if job is not None:
            return evolve(await job.wait(), visited=visited, is_repeat=True)
        job = self._jobs[pack] = _Job()
        checked = await self._examine(visited)
        job.settle(checked)
        return checked


class _Jobs:
    """Coroutines that run at once, and whose results are taken in the order of their starts."""

    def __init__(self) -> None:
        self._tasks = Tasks()
        self._queue: deque[_Job] = deque()

    @property
    def count(self) -> int:
        """Results not taken yet."""
        return len(self._queue)

    def start(self, body: Coroutine[Any, Any, Checked]) -> None:
        """Start a coroutine."""
        job = _Job()
        self._queue.append(job)
        self._tasks.start(body, job.settle, job.settle)

    async def next(self) -> Checked:
        """The result of the coroutine started first, or its error."""
        return await self._queue.popleft().wait()

    def cancel(self) -> None:
        """Cancel all that run."""
        self._tasks.cancel()


@define(eq=False)
class _Job:
    outcome: Checked | BaseException | None = None
    waiters: list[Deferred[None]] = field(factory=list)

    def settle(self, outcome: Checked | BaseException) -> None:
        self.outcome = outcome
        waiters, self.waiters = self.waiters, []
        for waiter in waiters:
            if not waiter.called:
                waiter.callback(None)

    async def wait(self) -> Checked:
        """The result, or its error."""
        if self.outcome is None:
            waiter: Deferred[None] = Deferred()
            self.waiters.append(waiter)
            await waiter
        if isinstance(self.outcome, BaseException):
            raise self.outcome
        assert self.outcome is not None
        return self.outcome


@define
class HealthCounts:
    """Number of objects by health. unhealthy includes the unrecoverable ones and those whose check failed.

    crowded: the healthy ones on too few servers. spreadable: those of them that a repair can spread.
    """

    healthy: int = 0
    unhealthy: int = 0
    unrecoverable: int = 0
    corrupt_shares: int = 0
    crowded: int = 0
    spreadable: int = 0

    def add(self, found: Health | None) -> None:
        """Count one object; None if its health is unknown."""
        if found is None:
            self.unhealthy += 1
            return
        if found.healthy:
            self.healthy += 1
            self.crowded += found.crowded
            self.spreadable += found.can_spread
        else:
            self.unhealthy += 1
        self.unrecoverable += not found.recoverable
        self.corrupt_shares += len(found.corrupt)


@define
class CheckCounters:
    """The counts of a deep check. before: as found. after: when repairs were done.

    failed_checks: objects whose health is unknown.
    """

    objects_checked: int = 0
    before: HealthCounts = field(factory=HealthCounts)
    after: HealthCounts = field(factory=HealthCounts)
    repairs_attempted: int = 0
    repairs_successful: int = 0
    failed_checks: int = 0

    def add(self, checked: Checked) -> None:
        """Count one object, if objects of its kind count; each pack counts once."""
        if not checked.counts or checked.is_repeat:
            return
        self.objects_checked += 1
        self.failed_checks += checked.health is None
        self.before.add(checked.health)
        repair = checked.repair
        self.after.add(checked.health if repair is None else repair.after)
        attempted = repair is not None and repair.attempted
        self.repairs_attempted += attempted or (checked.error is not None and checked.health is not None)
        self.repairs_successful += attempted and repair is not None and repair.successful

    @property
    def repairs_unsuccessful(self) -> int:
        """Repairs that were tried and did not make the object healthy."""
        return self.repairs_attempted - self.repairs_successful

    def to_json(self, *, repair: bool) -> Mapping[str, int]:
        """The counters under 1.20's names, and the counts of unrecoverable objects. repair: with repairs.

        If there are healthy objects on too few servers, before or after, they are counted under `count-objects-crowded`.
        """
        counts = {"count-objects-checked": self.objects_checked}
        if not repair:
            return counts | _named(self.before, "")
        counts |= _named(self.before, "-pre-repair") | _named(self.after, "-post-repair")
        counts["count-repairs-attempted"] = self.repairs_attempted
        counts["count-repairs-successful"] = self.repairs_successful
        counts["count-repairs-unsuccessful"] = self.repairs_unsuccessful
        return counts


def _named(counts: HealthCounts, suffix: str) -> dict[str, int]:
    crowded = {f"count-objects-crowded{suffix}": counts.crowded} if counts.crowded else {}
    return crowded | {
        f"count-objects-healthy{suffix}": counts.healthy,
        f"count-objects-unhealthy{suffix}": counts.unhealthy,
        f"count-objects-unrecoverable{suffix}": counts.unrecoverable,
        f"count-corrupt-shares{suffix}": counts.corrupt_shares,
    }
