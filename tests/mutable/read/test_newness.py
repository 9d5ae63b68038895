"""The newest version: which servers to wait for, what to remember, and when to warn the user. See decision 0150."""

from __future__ import annotations

from functools import partial

import pytest

from grid.caps import KnownCap
from grid.engine.grid import Encoding
from grid.mutable.read.map_wait import ANSWER_LIMIT_S, DOUBTFUL_S, HONEST_SLOW_S, KNOWN_FLOOR_S, UNREACHED_S
from grid.mutable.read.newest import ACCEPTED_S, MOST_FILES, NewestSeen
from grid.mutable.share.geometry import FormatName
from grid.mutable.share.versions import VersionMap
from grid.ports import StorageIndex
from grid.wire.connections.connect_watch import QUIET_S
from tests.support.mutable_grid import MutableGrid
from tests.support.scripted_slots import SlotScript

FORMATS: list[FormatName] = ["sdmf", "mdmf"]
OLD, NEW = b"old" * 1000, b"new" * 1000


def rolled_back(grid: MutableGrid, cap: KnownCap, count: int, contents: bytes = NEW) -> None:
    """A new version everywhere, which the first `count` servers hide."""
    for server in grid.servers[:count]:
        server.freeze()
    grid.run(grid.open(cap, process=9).overwrite(contents))


def warnings(grid: MutableGrid) -> list[str]:
    found = [event.detail for event in grid.events if event.what == "warning"]
    grid.events.clear()
    return found


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("liars", [5, 6, 7])
@pytest.mark.parametrize("delay_s", [0.3, 0.6, 1.0, 3.0])
def test_read_when_most_fast_servers_are_rolled_back_and_honest_ones_slow_then_gives_the_new_version(
    format: FormatName, liars: int, delay_s: float
) -> None:
    grid = MutableGrid()
    cap = grid.create(OLD, format)
    rolled_back(grid, cap, liars)
    for server in grid.servers[liars:]:
        server.script = SlotScript(delay_s=delay_s)
    for reading in (cap.read_cap(), cap):
        for _ in range(2):
            assert grid.run(grid.open(reading, process=1).read_all()) == NEW
    grid.run(grid.open(cap, process=2).modify(lambda old, _: old + b"!"))
    assert grid.run(grid.open(cap, process=3).read_all()) == NEW + b"!"


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("liars", range(8))
def test_read_when_up_to_n_less_k_servers_are_rolled_back_then_gives_the_new_version(
    format: FormatName, liars: int
) -> None:
    grid = MutableGrid()
    cap = grid.create(OLD, format)
    rolled_back(grid, cap, liars)
    grid.events.clear()
    assert grid.run(grid.open(cap.read_cap(), process=1).read_all()) == NEW
    assert not warnings(grid)


def test_read_when_servers_keep_silent_then_only_the_first_time_waits_for_them() -> None:
    grid = MutableGrid()
    cap = grid.create(OLD)
    for server in grid.servers[:3]:
        server.script = SlotScript(silent_from=0)
    times = []
    for _ in range(4):
        started = grid.runtime.clock.now()
        assert grid.run(grid.open(cap.read_cap(), process=1).read_all()) == OLD
        times.append(grid.runtime.clock.now() - started)
    assert HONEST_SLOW_S <= times[0] < HONEST_SLOW_S + 0.1
    assert max(times[1:]) <= DOUBTFUL_S + 0.02
    grid.servers[0].script = SlotScript()
    grid.run(grid.open(cap.read_cap(), process=1).check())
    started = grid.runtime.clock.now()
    assert grid.run(grid.open(cap.read_cap(), process=1).read_all()) == OLD
    assert grid.runtime.clock.now() - started <= DOUBTFUL_S + 0.02, "the others suffice now"


def acquainted(grid: MutableGrid, usual_s: float = 0.05) -> None:
    """Let process 1 know all servers as this fast."""
    for server in grid.servers:
        for _ in range(3):
            grid.grid(1).memory.latency(server.identity.server_id).learn(100, 100, usual_s)


@pytest.mark.parametrize(("k", "silent"), [(1, 1), (1, 3), (3, 3)])
@pytest.mark.parametrize("format", FORMATS)
def test_read_when_servers_known_as_fast_fall_silent_then_the_first_waits_for_a_second_and_the_next_hardly(
    format: FormatName, k: int, silent: int
) -> None:
    grid = MutableGrid(10, Encoding(k=k, n=10, happy=4))
    cap = grid.create(OLD, format)
    acquainted(grid)
    for server in grid.servers:
        server.script = SlotScript(delay_s=0.05)
    for server in grid.servers[2 : 2 + silent]:
        server.script = SlotScript(silent_from=0)
    times = []
    for _ in range(3):
        started = grid.runtime.clock.now()
        assert grid.run(grid.open(cap.read_cap(), process=1).read_all()) == OLD
        times.append(grid.runtime.clock.now() - started)
    assert KNOWN_FLOOR_S <= times[0] <= KNOWN_FLOOR_S + 0.2
    assert max(times[1:]) <= 0.05 + DOUBTFUL_S + 0.02


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("liars", [6, 7])
@pytest.mark.parametrize(("usual_s", "delay_s"), [(0.005, 0.6), (0.05, 0.9), (0.3, 1.5), (0.6, 3.0)])
def test_read_when_honest_servers_are_half_a_second_or_several_times_slower_than_known_then_gives_the_new_version(
    format: FormatName, liars: int, usual_s: float, delay_s: float
) -> None:
    grid = MutableGrid()
    cap = grid.create(OLD, format)
    rolled_back(grid, cap, liars)
    acquainted(grid, usual_s)
    for server in grid.servers[liars:]:
        server.script = SlotScript(delay_s=delay_s)
    assert grid.run(grid.open(cap.read_cap(), process=1).read_all()) == NEW


def test_read_when_honest_servers_were_slow_once_lately_then_waits_for_them_as_long_again() -> None:
    grid = MutableGrid()
    cap = grid.create(OLD)
    rolled_back(grid, cap, 7)
    for delay_s in (1.5, 0.05):
        acquainted(grid, delay_s)
    for server in grid.servers[7:]:
        server.script = SlotScript(delay_s=1.8)
    assert grid.run(grid.open(cap.read_cap(), process=1).read_all()) == NEW


@pytest.mark.parametrize("checking", [False, True])
def test_map_when_silent_servers_have_given_no_sign_of_life_then_waits_no_longer_for_them(checking: bool) -> None:
    grid = MutableGrid()
    cap = grid.create(OLD)
    memory, clock = grid.grid(1).memory, grid.runtime.clock
    began = clock.now()
    for server in grid.servers[:3]:
        server.script = SlotScript(silent_from=0)
        clock.call_later(QUIET_S, partial(memory.unreached, server.identity.server_id, began, began + QUIET_S))
    file = grid.open(cap.read_cap(), process=1)
    if checking:
        grid.run(file.check())
    else:
        assert grid.run(file.read_all()) == OLD
    assert UNREACHED_S <= clock.now() - began < UNREACHED_S + 0.2


def test_read_when_a_server_takes_long_to_connect_but_answers_in_time_then_gives_its_version() -> None:
    grid = MutableGrid()
    cap = grid.create(OLD)
    rolled_back(grid, cap, 7)
    memory, clock = grid.grid(1).memory, grid.runtime.clock
    for server in grid.servers[7:]:
        server.script = SlotScript(delay_s=3.0)
    for server in grid.servers[:2]:
        clock.call_later(QUIET_S, partial(memory.unreached, server.identity.server_id, clock.now(), clock.now()))
    assert grid.run(grid.open(cap.read_cap(), process=1).read_all()) == NEW


@pytest.mark.parametrize("format", FORMATS)
def test_read_when_a_newer_version_was_seen_then_says_so_each_time_and_asks_everybody_once(format: FormatName) -> None:
    grid = MutableGrid()
    cap = grid.create(OLD, format)
    rolled_back(grid, cap, 8)
    grid.events.clear()
    file = grid.open(cap.read_cap(), process=1)
    for _ in range(3):
        assert grid.run(file.read_all()) == OLD
        assert file.warning is not None and "seq2" in file.warning and "seq1" in file.warning
        assert warnings(grid) == [file.warning]


@pytest.mark.parametrize("format", FORMATS)
def test_read_when_this_process_wrote_a_newer_version_then_waits_for_everybody_before_an_older_one(
    format: FormatName,
) -> None:
    grid = MutableGrid()
    cap = grid.create(OLD, format)
    for server in grid.servers[:8]:
        server.freeze()
    grid.run(grid.open(cap).overwrite(NEW))
    for server in grid.servers[8:]:
        server.script = SlotScript(delay_s=5.0)
    file = grid.open(cap.read_cap())
    started = grid.runtime.clock.now()
    assert grid.run(file.read_all()) == OLD, "two shares of the new version are not enough"
    assert 5.0 <= grid.runtime.clock.now() - started < ANSWER_LIMIT_S + 1
    assert file.warning is not None and warnings(grid)
    for server in grid.servers[7:]:
        server.script = SlotScript()
    fresh = grid.open(cap.read_cap())
    assert grid.run(fresh.read_all()) == NEW
    assert fresh.warning is None and not warnings(grid)


@pytest.mark.parametrize("format", FORMATS)
def test_modify_when_a_newer_version_was_written_here_then_numbers_above_it_and_warns(format: FormatName) -> None:
    grid = MutableGrid()
    cap = grid.create(OLD, format)
    before = {server: {n: bytearray(d) for n, d in server.slots[cap.storage_index].items()} for server in grid.servers}
    for _ in range(3):
        grid.run(grid.open(cap).overwrite(NEW))
    for server, slot in before.items():
        server.slots[cap.storage_index] = slot
    grid.events.clear()
    file = grid.open(cap)
    grid.run(file.modify(lambda old, _: old + b"!"))
    assert file.warning is not None and warnings(grid)
    found = grid.run(grid.open(cap, process=1).check()).found
    assert found.best is not None and found.best.seqnum == 5
    assert grid.read(cap) == OLD + b"!" and not warnings(grid)


def test_memory_of_newest_versions_is_bounded_and_forgets_the_oldest() -> None:
    seen = NewestSeen()
    for number in range(MOST_FILES + 5):
        seen.note(StorageIndex(number.to_bytes(16, "big")), VersionMap(servers=[]), 0, 0.0)
    assert len(seen) == MOST_FILES
    assert ACCEPTED_S > 0 and len(MutableGrid().grid().remembered.of(NewestSeen)) == 0
