"""Whether a put leaves out a server that a read has given up on."""

from __future__ import annotations

import pytest

from grid.immutable.share.requests import ReadShares
from tests.support.scripted_grid import ScriptedGrid, noise


@pytest.mark.parametrize(("delay_s", "held"), [(0.03, 1), (0.001, 0)])
def test_put_right_after_a_read_gave_up_on_a_server_leaves_it_out_only_if_it_is_near(delay_s: float, held: int) -> None:
    grid = ScriptedGrid()
    for index in range(10):
        grid.script(index, delay_s=delay_s, known=True)
    slow, memory = grid.servers[0], grid.grid.memory
    server_id = slow.identity.server_id
    memory.latency(server_id).quickest_s = delay_s
    memory.silent(server_id, ReadShares.__name__, grid.now)
    stored = grid.put(noise(3_000_000))
    assert stored.happiness == 9 + held
    assert len(slow.shares.get(stored.cap.storage_index, {})) == held  # type: ignore[arg-type]
