"""Changes and reads while many servers of a busy grid answer late once: they ask them again before they fail."""

from __future__ import annotations

import pytest

from grid.engine.grid import Encoding
from tests.support.mutable_grid import MutableGrid
from tests.support.scripted_slots import SlotServer


class LateOnce(SlotServer):
    """Answers the next question very late, and all others at once."""

    late = False

    async def _enter(self, method: str, delay_s: float | None = None) -> None:
        late, self.late = self.late, False
        await super()._enter(method, 60.0 if late else delay_s)


@pytest.mark.parametrize("k", [3, 6])
@pytest.mark.parametrize("count", [4, 5])
def test_overwrite_when_too_few_servers_answer_in_time_then_asks_the_silent_ones_again(k: int, count: int) -> None:
    grid = MutableGrid(10, Encoding(k=k, n=10, happy=7))
    grid.servers[:] = servers = [LateOnce(f"server{index}", grid.runtime.clock) for index in range(10)]
    cap = grid.create(b"before")
    for server in servers[:count]:
        server.late = True
    grid.run(grid.open(cap, process=1).overwrite(b"after"))
    assert grid.read(cap) == b"after"


@pytest.mark.parametrize("count", [8, 9])
def test_read_when_too_few_servers_answer_in_time_then_asks_the_silent_ones_again(count: int) -> None:
    grid = MutableGrid(10, Encoding(k=3, n=10, happy=7))
    grid.servers[:] = servers = [LateOnce(f"server{index}", grid.runtime.clock) for index in range(10)]
    cap = grid.create(b"listing")
    for process, asked in enumerate((cap, cap.read_cap()), 1):
        for server in servers[:count]:
            server.late = True
        assert grid.run(grid.open(asked, process=process).read_all()) == b"listing"
