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


async def settle_patiently(
    target: TargetEnd, stored: Sequence[tuple[Entry, str]], retries: int, pause: Pause
) -> Failures:
    """Move files into place by their tokens; those that fail are tried again if that may help. Returns the last errors.

    Raises an error of all files that no later attempt could overcome.
    """
    failed: dict[str, GridError | OSError] = {}
    attempt = 0
    while stored:
        attempt += 1
        found: Failures
        try:
            with cancelled_as_error(target.label):
                found = await target.settle(stored)
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
            await asyncio.sleep(pause(attempt))
    return failed
