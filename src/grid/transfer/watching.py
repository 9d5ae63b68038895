"""Watches a folder: each pass sends the files that have settled, and checks what was sent.

It owns when a file counts as complete, the order of the passes, and the pauses between them. A pass is a transfer with
a journal, so a killed watch resumes where it was. Nothing that happens in a pass ends the watch, unless the first one could
not begin.
"""

from __future__ import annotations

import asyncio
import os
import random
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from attrs import evolve

from grid.errors import GridError
from grid.transfer.choices import may_pass, pause_before
from grid.transfer.ends import Entry, PassingError, TargetEnd
from grid.transfer.engine import Transfer
from grid.transfer.journal import FAILED, Journal
from grid.transfer.local_end import LocalEnd
from grid.transfer.outcome import GapError, Observer, Outcome, Plan
from grid.transfer.rates import Slow, unlimited
from grid.transfer.spool import Stack
from grid.transfer.traits import identity_of
from grid.values import frozen

if TYPE_CHECKING:
    from grid.transfer.grid_session import Doubt

CHECKED_TOGETHER = 256
"""Files whose checks start together."""
TOLD_COUNT = 10_000
"""Warnings remembered, so none is repeated in every pass."""

Facts = tuple[int, int, int]

Check = Callable[[Sequence[str]], Awaitable["Mapping[str, Doubt]"]]
"""Checks files by name, and returns why each doubtful one is not known to be healthy."""
Sleep = Callable[[float], Awaitable[None]]


class Settling:
    """Decides which files have settled: neither their contents nor their attributes changed for a while.

    The change time (ctime) tells: every write sets it, and no program can set it back. If times lie in the future, what
    counts is how long this process has seen them unchanged. Memory: the files whose times do.
    """

    def __init__(
        self,
        quiet_s: float,
        unix_ns: Callable[[], int] = time.time_ns,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """quiet_s: seconds without a change. unix_ns, now: the files' clock, and a monotonic one."""
        self._quiet_s, self._unix_ns, self._now = quiet_s, unix_ns, now
        self._before: dict[str, tuple[Facts, float]] = {}
        self._waiting: dict[str, tuple[Facts, float]] = {}
        self._recent_count = 0

    @property
    def waiting_count(self) -> int:
        """How many files of this pass have not settled."""
        return self._recent_count + len(self._waiting)

    def begin(self) -> None:
        """Begin a pass; files that it does not look at are forgotten."""
        self._before, self._waiting = self._waiting, {}
        self._recent_count = 0

    def is_settled(self, name: str, status: os.stat_result) -> bool:
        """Whether the file has settled."""
        past = [moment for moment in (status.st_mtime_ns, status.st_ctime_ns) if moment <= self._unix_ns()]
        if past and self._unix_ns() - max(past) >= self._quiet_s * 1e9:
            return True
        if past:
            self._recent_count += 1
            return False
        facts, now = (status.st_size, status.st_mtime_ns, status.st_ctime_ns), self._now()
        seen, since = self._before.get(name, (facts, now))
        if seen != facts:
            since = now
        if now - since >= self._quiet_s and name in self._before:
            return True
        self._waiting[name] = (facts, since)
        return False


@frozen(kw_only=True)
class Watched:
    """The subject of a watch. check: None to check nothing. slow: as for a transfer."""

    folder: str
    target: TargetEnd
    journal: Journal
    plan: Plan
    settling: Settling
    check: Check | None = None
    slow: Slow = unlimited


class FolderWatch:
    """One watch of one folder."""

    def __init__(self, watched: Watched, observer: Observer) -> None:
        self._watched = watched
        self._folder = LocalEnd(watched.folder, is_settled=watched.settling.is_settled)
        self._told: set[str] = set()
        self._warn = observer.warn
        self._fresh = Stack()
        self._observer = evolve(observer, warn=self._warn_once, stored=self._note_stored(observer.stored))
        self._has_listed = self._has_checked = False
        self.missing = ""
        """Why the last pass did not store everything that was complete; empty if it did."""

    async def once(self) -> Outcome:
        """Send settled new files and check them; files found damaged are sent once more.

        Raises the errors of a transfer.
        """
        # A task of its own: libraries cancel what waits for a connection that they drop, and task groups that fail together
        # leave a cancellation behind. Neither may look like the end of the watch.
        task = asyncio.current_task()
        try:
            return await asyncio.create_task(self._pass())
        except asyncio.CancelledError:
            if task is None or task.cancelling():
                raise
            raise PassingError(
                "a connection was dropped before everything was stored; the next pass continues there"
            ) from None

    async def _pass(self) -> Outcome:
        outcome = await self._send()
        wrong = await self._check()
        if wrong:
            outcome = _joined(outcome, await self._send())
            wrong = await self._check()
        outcome.failures.extend((name, GridError(f"{name}: {why}")) for name, why in wrong.items())
        return outcome

    async def run(self, every_s: float, passed: Callable[[Outcome], None], sleep: Sleep = asyncio.sleep) -> None:
        """Repeat passes until cancelled. every_s: from one pass to the next.

        Raises errors of the first pass that no later pass could overcome.
        """
        attempt = 0
        while True:
            try:
                outcome = await self.once()
            except (GridError, OSError) as error:
                if not self._has_listed and not may_pass(error):
                    raise
                attempt += 1
                self.missing = str(error)
                self._warn(f"{error}; trying again")
            else:
                attempt = attempt + 1 if any(not isinstance(why, GapError) for _, why in outcome.failures) else 0
                self.missing = str(outcome.failures[0][1]) if outcome.failures else ""
                for name, why in outcome.failures:
                    text = str(why)
                    self._warn_once(text if name in text else f"{name}: {text}")
                passed(outcome)
            await sleep(every_s if not attempt else max(every_s, pause_before(attempt, random.random())))

    async def _send(self) -> Outcome:
        watched = self._watched
        watched.settling.begin()
        outcome = await Transfer(
            [self._folder],
            watched.target,
            watched.journal,
            watched.plan,
            observer=self._observer,
            slow=watched.slow,
            lists_target=not self._has_listed,
        ).run()
        self._has_listed = True
        return outcome

    async def _check(self) -> dict[str, str]:
        """What is wrong with files that are not healthy.

        The first pass checks all done files, later ones only new files.
        """
        fresh, self._fresh = self._fresh, Stack()
        if self._watched.check is None:
            return {}
        wrong: dict[str, str] = {}
        if self._has_checked:
            while fresh:
                some = [fresh.pop() for _ in range(min(len(fresh), CHECKED_TOGETHER))]
                wrong |= await self._check_batch(self._watched.check, some)
            return wrong
        name = ""
        while batch := self._watched.journal.done_after(identity_of(self._folder), name, CHECKED_TOGETHER):
            wrong |= await self._check_batch(self._watched.check, [entry.name for entry in batch])
            name = batch[-1].name
        self._has_checked = True
        return wrong

    async def _check_batch(self, check: Check, names: Sequence[str]) -> dict[str, str]:
        """Check files in parallel. Damaged ones are sent again; doubtful ones are checked again."""
        found = await check(names)
        certain = [name for name, doubt in found.items() if doubt.is_certain]
        rows = [self._watched.journal.find(identity_of(self._folder), name) for name in certain]
        failed = [evolve(row, state=FAILED, error=found[row.entry.name].why[:500]) for row in rows if row is not None]
        if failed:
            self._watched.journal.note(failed)
        for name, doubt in found.items():
            if not doubt.is_certain:
                self._fresh.append(name)
        return {name: doubt.why for name, doubt in found.items()}

    def _note_stored(self, stored: Callable[[Entry], None]) -> Callable[[Entry], None]:
        def note(entry: Entry) -> None:
            if self._watched.check is not None and self._has_checked:
                self._fresh.append(entry.name)
            stored(entry)

        return note

    def _warn_once(self, line: str) -> None:
        if line in self._told:
            return
        if len(self._told) >= TOLD_COUNT:
            self._told.clear()
        self._told.add(line)
        self._warn(line)


def _joined(first: Outcome, second: Outcome) -> Outcome:
    """Two passes as one. Failures of the first were retried in the second."""
    return evolve(
        second,
        copied=first.copied + second.copied,
        linked=first.linked + second.linked,
        unchanged=min(first.unchanged, second.unchanged),
        sent_bytes=first.sent_bytes + second.sent_bytes,
    )
