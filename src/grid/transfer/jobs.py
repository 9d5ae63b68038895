"""How many files to copy in parallel: a fixed number, or the best one, found during the copy (`--jobs auto`).

The automatic number doubles while that makes the copy faster, and settles on the smallest number whose rate is nearly
the best. The campaign `streams-knee` uses the same rule.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from grid.transfer.ends import first_error

KNEE = 0.05
"""A number of jobs suffices if its rate is within this fraction of the best."""

FIRST_JOBS = 2
MOST_JOBS = 32

WINDOW_S = 1.0
"""Seconds for which a rate is measured at least, and until as many files have ended as there are jobs."""

PATIENCE_S = 10.0
"""Large files end rarely; after this many seconds, their bytes suffice."""

FILE_BYTES = 256 * 1024
"""The cost of a file in bytes regardless of its size: requests, hashes of its header, a directory entry."""

Progress = Callable[[], tuple[int, float]]
"""Returns the number of ended files and of moved bytes."""


class AutomaticJobs:
    """Doubles the number of jobs while that helps. Its limit is read whenever a job ends or could begin."""

    def __init__(
        self,
        progress: Progress,
        *,
        clock: Callable[[], float] = time.monotonic,
        settled: Callable[[int], None] = lambda limit: None,
    ) -> None:
        """settled: called with the number once it is found."""
        self._progress = progress
        self._clock = clock
        self._settled = settled
        self._limit = self._best = FIRST_JOBS
        self._best_rate = 0.0
        self._is_settled = False
        self._since: tuple[float, int, float] | None = None

    @property
    def limit(self) -> int:
        """How many jobs may run now."""
        if not self._is_settled:
            self._observe()
        return self._limit

    def _observe(self) -> None:
        now, (files, moved) = self._clock(), self._progress()
        if self._since is None:
            self._since = (now, files, moved)
            return
        began, files_before, moved_before = self._since
        elapsed_s = now - began
        if elapsed_s < WINDOW_S or (files - files_before < self._limit and elapsed_s < PATIENCE_S):
            return
        rate = (moved - moved_before + FILE_BYTES * (files - files_before)) / elapsed_s
        if rate > (1 + KNEE) * self._best_rate:
            self._best, self._best_rate = self._limit, rate
            if self._limit < MOST_JOBS:
                self._limit *= 2
                self._since = (now, files, moved)
                return
        self._limit, self._is_settled = self._best, True
        self._settled(self._best)


Jobs = int | AutomaticJobs
"""A given number, or one to be found."""


def limit_of(jobs: Jobs) -> int:
    """How many jobs may run now."""
    return jobs if isinstance(jobs, int) else jobs.limit


def choose_jobs(wanted: int | str, progress: Progress) -> Jobs:
    """Interpret the option --jobs."""
    return wanted if isinstance(wanted, int) else AutomaticJobs(progress)


T = TypeVar("T")
R = TypeVar("R")

QUEUED = 16
"""Items that wait for a worker, so listing can continue in little memory."""

Put = Callable[[T], Awaitable[None]]


class Workers(Generic[T]):
    """Processes items in parallel, as many as `jobs` permits."""

    def __init__(self, jobs: Jobs, work: Callable[[T], Awaitable[None]]) -> None:
        self._jobs, self._work = jobs, work
        self._waiting: asyncio.Queue[T | None] = asyncio.Queue(QUEUED)
        self._count = 0

    async def run(self, feed: Callable[[Put[T]], Awaitable[R]]) -> R:
        """Return `feed`'s result once all items that it put are processed; raises the first error."""
        try:
            async with asyncio.TaskGroup() as group:
                self._hire(group)
                result = await feed(self._waiting.put)
                await self._waiting.put(None)
        except BaseExceptionGroup as errors:
            raise first_error(errors) from None
        return result

    def _hire(self, group: asyncio.TaskGroup) -> None:
        while self._count < limit_of(self._jobs):
            self._count += 1
            group.create_task(self._serve(group))

    async def _serve(self, group: asyncio.TaskGroup) -> None:
        while self._count <= limit_of(self._jobs):
            item = await self._waiting.get()
            if item is None:
                await self._waiting.put(None)  # Pass the end marker on to the other workers.
                return
            await self._work(item)
            self._hire(group)
        self._count -= 1
