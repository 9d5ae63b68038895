"""Repeats what may succeed later: all requests of a transfer but those of its sources' listings, which have been used in part."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TypeVar

from grid.errors import GridError
from grid.transfer.choices import may_pass
from grid.transfer.ends import Entry, TargetEnd, cancelled_as_error

R = TypeVar("R")

Pause = Callable[[int], float]
"""Returns the seconds to wait after an attempt, counted from 1."""

Failures = Mapping[str, GridError | OSError]
"""Reasons by name."""


async def patiently(call: Callable[[], Awaitable[R]], retries: int, pause: Pause) -> R:
    """The result of a call, which is repeated if that may help. The last error counts."""
    attempt = 0
    while True:
        attempt += 1
        try:
            return await call()
        except (GridError, OSError) as error:
            if attempt > retries or not may_pass(error):
                raise
        await asyncio.sleep(pause(attempt))


class Settling:
    """Moves files into place, one batch at a time, again and again if that may help.

    Once a whole batch has failed in spite of all pauses, others do not wait for that to pass until one succeeds.
    """

    def __init__(self, target: TargetEnd, retries: int, pause: Pause) -> None:
        self._target, self._retries, self._pause = target, retries, pause
        self._is_hopeless = False
        self.turn = asyncio.Lock()

    async def settle(self, stored: Sequence[tuple[Entry, str]]) -> Failures:
        """Move files into place by their tokens. Returns the last errors; raises one of all files that no later attempt could
        overcome.
        """
        failed = await self._settle(stored, 0 if self._is_hopeless else self._retries)
        if stored:
            self._is_hopeless = len(failed) == len(stored)
        return failed

    async def _settle(self, stored: Sequence[tuple[Entry, str]], retries: int) -> Failures:
        failed: dict[str, GridError | OSError] = {}
        attempt = 0
        while stored:
            attempt += 1
            found: Failures
            try:
                with cancelled_as_error(self._target.label):
                    found = await self._target.settle(stored)
            except (GridError, OSError) as error:
                if not may_pass(error):
                    raise
                found = {entry.name: error for entry, _ in stored}
            for entry, _ in stored:
                failed.pop(entry.name, None)
            failed |= found
            again = [each for each in stored if each[0].name in found and may_pass(found[each[0].name])]
            stored = again if attempt <= retries else []
            if stored:
                await asyncio.sleep(self._pause(attempt))
        return failed
