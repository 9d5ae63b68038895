"""How long a group waits for the objects of clients that were just answered."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from twisted.internet.defer import gatherResults

from grid.caps import SliceCap
from grid.s3 import packing
from tests.s3.test_packing import NAMES, packing_door, put_while_held, putting, targets_of, waiting
from tests.s3.watched import until


async def test_a_group_waits_while_objects_come_and_begins_without_those_that_do_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with packing_door(tmp_path) as (rig, calls):
        looked: list[int] = []

        def left_s(pause: packing.Pause, now: float) -> float:
            looked.append(waiting(rig))
            return 0.001 if waiting(rig) < 3 else 0.0

        monkeypatch.setattr(packing.Pause, "left_s", left_s)
        first, rest = await put_while_held(rig, calls, NAMES[:5])
        calls.release()
        assert {reply.status for reply in await gatherResults([first, *rest])} == {200}
        after = []
        for name in NAMES[5:8]:
            await until(lambda: len(looked) > 20)
            looked.clear()
            after.append(putting(rig, name))
        assert {reply.status for reply in await gatherResults(after)} == {200}
        targets = await targets_of(rig, NAMES[5:8])
        assert len({target.pack for target in targets if isinstance(target, SliceCap)}) == 1
        rig.door.close()


@pytest.mark.parametrize(
    ("moved_at", "left_s"),
    [
        pytest.param((), packing.QUIET * 0.05, id="nothing moves"),
        pytest.param((10.04,), packing.QUIET * 0.05 + 0.04, id="something moves"),
        pytest.param((10.04, 10.09), packing.PAUSE * 0.05, id="it moves until the end"),
    ],
)
def test_a_pause_lasts_while_something_moves_and_not_for_long(moved_at: Sequence[float], left_s: float) -> None:
    pause = packing.Pause.after(9.95, 10.0)
    for moment in moved_at:
        pause.moved_at = moment
    assert pause.left_s(10.0) == pytest.approx(left_s)


def test_a_pause_after_a_slow_group_is_no_longer_than_any_pause() -> None:
    assert packing.Pause.after(0.0, 10.0).left_s(10.0) == pytest.approx(packing.LONGEST_PAUSE_S)
