"""Work that outlives its waiter."""

from __future__ import annotations

import pytest
from twisted.internet.defer import CancelledError, Deferred

from grid.storage.calls.tasks import shielded


def test_shielded_work_when_its_waiter_is_cancelled_runs_to_its_end() -> None:
    gate: Deferred[None] = Deferred()
    orphans: list[str] = []

    async def work() -> str:
        await gate
        return "result"

    task = shielded(work(), orphans.append)
    task.cancel()
    task.addErrback(lambda failure: failure.trap(CancelledError))
    assert orphans == []
    gate.callback(None)
    assert orphans == ["result"]


def test_shielded_work_when_its_waiter_is_cancelled_may_fail_unseen() -> None:
    gate: Deferred[None] = Deferred()

    async def work() -> None:
        await gate
        raise ValueError

    task = shielded(work())
    task.cancel()
    task.addErrback(lambda failure: failure.trap(CancelledError))
    gate.callback(None)


async def test_shielded_work_when_waited_for_gives_its_outcome() -> None:
    async def work(error: bool) -> int:
        if error:
            raise ValueError
        return 5

    assert await shielded(work(False)) == 5
    with pytest.raises(ValueError):
        await shielded(work(True))
