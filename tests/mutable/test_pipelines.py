"""Pieces of a large file in flight: several at a time, and a slow line is not a silent server."""

from __future__ import annotations

import random

import pytest

from grid.engine.grid import Encoding
from grid.engine.write_batches import SERVER_BYTES
from grid.mutable import publish
from grid.mutable.read import read_plan, segment_batch
from grid.mutable.share.geometry import SALT_SIZE
from grid.mutable.write import stream_plan
from grid.ports import Range, ShareNumber, SlotAnswer, SlotSecrets, StorageIndex, TestWrite
from tests.support.mutable_grid import MutableGrid
from tests.support.scripted_slots import SlotServer

SEGMENT = 131073
STRIPE = 10 * (SEGMENT // 3 + SALT_SIZE)


class DippingServer(SlotServer):
    """Takes writes at a rate that falls for good once it has taken the first."""

    rate = 30e3

    async def test_and_write(
        self,
        storage_index: StorageIndex,
        secrets: SlotSecrets,
        writes: dict[ShareNumber, TestWrite],  # type: ignore[override]
        ranges: tuple[Range, ...] = (),  # type: ignore[override]
    ) -> SlotAnswer:
        size = sum(len(data) for write in writes.values() for _, data in write.writes)
        self.script.write_delay_s = size / self.rate
        if size > SEGMENT // 3:
            self.rate = 12e3
        return await super().test_and_write(storage_index, secrets, writes, ranges)


def test_create_when_the_line_gets_slower_behind_the_first_piece_then_loses_no_server(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(publish, "WHOLE_BYTES", 100_000)
    monkeypatch.setattr(stream_plan, "WRITE_BYTES", 6 * STRIPE)
    monkeypatch.setattr(stream_plan, "LIVE_BYTES", 12 * STRIPE)
    grid = MutableGrid()
    grid.servers[:] = [DippingServer(f"server{index}", grid.runtime.clock) for index in range(10)]
    cap = grid.create(random.Random(1).randbytes(13 * SEGMENT), "mdmf")
    first, second, *_ = [event.count for event in grid.events if event.what == "send" and event.detail == "WriteSlot"][
        ::10
    ]
    assert second > 5 * first
    found = grid.run(grid.open(cap).check())
    assert found.healthy
    assert len(grid.shares(cap)) == 10


@pytest.mark.parametrize(("servers", "k", "n"), [(1, 1, 1), (1, 3, 10), (3, 3, 10)])
def test_create_when_servers_are_few_sends_none_of_them_more_than_it_should_hold_at_once(
    servers: int, k: int, n: int
) -> None:
    grid = MutableGrid(servers, Encoding(k=k, n=n, happy=1))
    cap = grid.create(random.Random(3).randbytes(30_000_000), "mdmf")
    longest = max(event.count for event in grid.events if event.detail == "WriteSlot")
    assert 2**20 < longest <= SERVER_BYTES + 2**16
    assert grid.run(grid.open(cap).check()).healthy


def test_read_when_a_batch_fills_the_window_then_has_another_on_its_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segment_batch, "full_read_bytes", lambda k: 2 * SEGMENT)
    monkeypatch.setattr(read_plan, "WINDOW_BYTES", 2 * SEGMENT)
    grid = MutableGrid()
    data = random.Random(2).randbytes(20 * SEGMENT)
    cap = grid.create(data, "mdmf")
    grid.events.clear()
    assert grid.read(cap) == data
    seen = [event for event in grid.events if event.detail in {"ReadBlocks", "Deliver"}]
    start = next(index for index, event in enumerate(seen) if event.detail == "Deliver")
    under_way = most = 0
    for event in seen[start:]:
        if event.detail == "ReadBlocks":
            under_way += {"send": 1, "answer": -1}.get(event.what, 0)
            most = max(most, under_way)
    assert most >= 2 * 3
