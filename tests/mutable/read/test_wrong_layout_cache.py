"""Prefetched data that is missing, outdated or false: it costs bytes, and nothing else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from grid.caps import KnownCap, StorageIndex
from grid.engine.grid import Encoding
from grid.errors import HoleError
from grid.mutable import publish
from grid.mutable.read.map_wait import EARLY_RATE, GRACE_FLOOR_S
from grid.mutable.share import mdmf
from grid.mutable.share.geometry import Geometry
from grid.mutable.share.layout import parse_header
from grid.mutable.share.versions import VersionMap
from grid.ports import Buffer, Range, ShareNumber
from grid.sinks import BytesSink
from tests.mutable.speculating import (
    AT,
    BLOCK,
    OLD,
    ONCE,
    SEGMENT,
    SIZE,
    TWICE,
    calls,
    changed,
    index_of,
    known,
    read,
    update,
)
from tests.support.mutable_grid import MutableGrid
from tests.support.scripted_slots import SlotScript, SlotServer


def grow(grid: MutableGrid, cap: KnownCap) -> bytes:
    text = OLD + b"more than there was" * 20_000
    grid.run(grid.open(cap, process=2).overwrite(text))
    return text


def shrink(grid: MutableGrid, cap: KnownCap) -> bytes:
    grid.run(grid.open(cap, process=2).overwrite(OLD[: 3 * SEGMENT + 200]))
    return OLD[: 3 * SEGMENT + 200]


def shrink_to_little(grid: MutableGrid, cap: KnownCap) -> bytes:
    grid.run(grid.open(cap, process=2).overwrite(b"little"))
    return b"little"


def rewrite(grid: MutableGrid, cap: KnownCap) -> bytes:
    grid.run(grid.open(cap, process=2).overwrite(OLD[::-1]))
    return OLD[::-1]


def encode_otherwise(grid: MutableGrid, cap: KnownCap) -> bytes:
    """Somebody stores the file again, with another k and n and other segments."""
    other = MutableGrid(10, Encoding(k=2, n=7, happy=5))
    assert other.create(OLD[::-1], "mdmf") == cap
    other.run(other.open(cap).update(0, b"a"))
    for server, theirs in zip(grid.servers, other.servers, strict=True):
        server.slots, server.enablers = theirs.slots, theirs.enablers
    return changed(OLD[::-1], 0, b"a")


def lose_two_servers(grid: MutableGrid, cap: KnownCap) -> bytes:
    for number in (0, 2):
        [(server, _)] = grid.shares(cap)[number]
        server.slots.clear()
    return OLD


def move_shares(grid: MutableGrid, cap: KnownCap) -> bytes:
    """Every share is on another server than before."""
    slots = [server.slots for server in grid.servers]
    for index, server in enumerate(grid.servers):
        server.slots = slots[index - 1]
    return OLD


def leave_blocks_behind(grid: MutableGrid, cap: KnownCap) -> bytes:
    """A large version was written, and its writer died before it was moved into place. [decision 0030]"""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(publish, "WHOLE_BYTES", 0)

        async def die(_session: object, found: VersionMap, _key: object) -> VersionMap:
            return found

        patch.setattr(publish, "move_into_place", die)
        grid.run(grid.open(cap, process=2).overwrite(OLD[::-1]))
    assert parse_header(grid.share(cap, 0))[1].data[0] != mdmf.DATA_OFFSET
    return OLD[::-1]


HAPPENINGS = [
    grow,
    shrink,
    shrink_to_little,
    rewrite,
    encode_otherwise,
    lose_two_servers,
    move_shares,
    leave_blocks_behind,
]


@pytest.mark.parametrize("happen", HAPPENINGS)
def test_memory_when_wrong_then_reads_and_updates_are_right_and_it_is_corrected(happen: object) -> None:
    grid = MutableGrid()
    cap = grid.create(OLD, "mdmf")
    grid.run(grid.open(cap, process=1).size())
    grid.run(grid.open(cap, process=3).size())
    assert callable(happen)
    text: bytes = happen(grid, cap)
    before = known(grid, cap, 1)
    assert read(grid, cap, AT, 500, process=1) == text[AT : AT + 500]
    assert not any(server.advisories for server in grid.servers)
    after = known(grid, cap, 1)
    if happen in {rewrite}:
        assert after == before and calls(grid) == {ONCE}
    else:
        assert after != before
    if len(text) > AT:
        assert read(grid, cap, AT, 500, process=1) == text[AT : AT + 500]
        assert calls(grid) == {ONCE}
        update(grid, cap, AT, b"by one who remembers", process=3)
        text = changed(text, AT, b"by one who remembers")
    else:
        with pytest.raises(HoleError):
            update(grid, cap, AT, b"beyond the end", process=3)
        update(grid, cap, len(text), b", and more", process=3)
        text += b", and more"
    assert grid.read(cap) == text
    assert grid.run(grid.open(cap).check(verify=True)).recoverable


def holders_of(grid: MutableGrid, cap: KnownCap) -> list[SlotServer]:
    there = known(grid, cap)
    assert there is not None
    return [grid.server(server_id) for server_id in there.holders]


FAULTS: dict[str, SlotScript] = {
    "dead": SlotScript(dead_from=0),
    "silent": SlotScript(silent_from=0),
    "dead later": SlotScript(dead_from=1),
    "slow": SlotScript(delay_s=3.0),
    "bad block": SlotScript(corrupt={(number, mdmf.DATA_OFFSET + 3 * BLOCK + 99): 1 for number in range(10)}),
    "bad hashes": SlotScript(corrupt={(number, mdmf.DATA_OFFSET + SIZE // 3 + 500): 1 for number in range(10)}),
    "bad front": SlotScript(corrupt={(number, 20): 1 for number in range(10)}),
    "cut in the blocks": SlotScript(short=dict.fromkeys(range(10), mdmf.DATA_OFFSET + 3 * BLOCK + 99)),
    "cut behind its front": SlotScript(short=dict.fromkeys(range(10), mdmf.DATA_OFFSET)),
    "cut in its front": SlotScript(short=dict.fromkeys(range(10), 1000)),
}


@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("fault", FAULTS)
def test_holders_when_they_fail_then_the_others_suffice(fault: str, count: int) -> None:
    for writes in (False, True):
        grid = MutableGrid()
        cap = grid.create(OLD, "mdmf")
        broken = holders_of(grid, cap)[:count]
        for server in broken:
            server.calls.clear()
            server.script = FAULTS[fault]
        started = grid.runtime.clock.now()
        if writes:
            grid.run(grid.open(cap).update(AT, b"new"))
            assert grid.runtime.clock.now() - started < 40.0
        else:
            sink = BytesSink()
            grid.run(grid.open(cap.read_cap()).read(sink, AT, 500))
            assert sink.data == OLD[AT : AT + 500]
            assert grid.runtime.clock.now() - started < 10.0
        for server in broken:
            server.script = SlotScript()
        assert grid.read(cap) == (changed(OLD, AT, b"new") if writes else OLD)


def test_holder_when_its_shares_are_of_an_older_version_then_they_are_not_used() -> None:
    grid = MutableGrid()
    cap = grid.create(OLD, "mdmf")
    stale = holders_of(grid, cap)[0]
    stale.freeze()
    new = OLD[::-1]
    grid.run(grid.open(cap, process=2).overwrite(new))
    assert read(grid, cap, AT, 500) == new[AT : AT + 500]
    assert stale.fired["frozen"] and not stale.advisories
    update(grid, cap, AT, b"newer")
    stale.script = SlotScript()
    assert grid.read(cap) == changed(new, AT, b"newer")


class OnceWrong(SlotServer):
    """Its first answer has one byte changed."""

    async def read_slot(
        self, storage_index: StorageIndex, share_numbers: frozenset[ShareNumber], ranges: Sequence[Range]
    ) -> Mapping[ShareNumber, Sequence[Buffer]]:
        answer = await super().read_slot(storage_index, share_numbers, ranges)
        self.script.corrupt = {}
        return answer


def test_hashes_when_they_came_early_and_prove_nothing_then_are_asked_for_again() -> None:
    grid = MutableGrid()
    grid.servers[:] = [OnceWrong(f"server{index}", grid.runtime.clock) for index in range(10)]
    cap = grid.create(OLD, "mdmf")
    [(server, _)] = grid.shares(cap)[9]
    server.script.corrupt = {(9, mdmf.DATA_OFFSET + Geometry.of_file(1, SIZE, 3, 10).data_size + 3): 1}
    update(grid, cap, AT, b"new")
    assert server.fired["corrupt"] == 1 and not server.advisories
    assert server.calls == ["read_slot", "read_slot", "test_and_write"]
    assert calls(grid) == {TWICE, ("read_slot", "read_slot", "test_and_write")}
    assert grid.read(cap) == changed(OLD, AT, b"new")


def test_update_when_a_share_is_on_another_server_than_before_then_asks_one_server_once_more() -> None:
    grid = MutableGrid()
    cap = grid.create(OLD, "mdmf")
    gone, *holders = holders_of(grid, cap)
    other = next(server for server in grid.servers if server not in [gone, *holders])
    [number] = gone.slots[index_of(cap)]
    other.slots[index_of(cap)][number] = gone.slots[index_of(cap)].pop(number)
    update(grid, cap, AT, b"new")
    assert sum(server.calls.count("read_slot") for server in grid.servers) == 11
    assert sum(server.calls.count("test_and_write") for server in grid.servers) == 9
    assert grid.read(cap) == changed(OLD, AT, b"new")


def test_holders_when_all_are_silent_then_are_waited_for_no_longer_than_one_of_them() -> None:
    grid = MutableGrid()
    cap = grid.create(OLD, "mdmf")
    for server in holders_of(grid, cap):
        server.calls.clear()
        server.script = SlotScript(silent_from=0)
    started = grid.runtime.clock.now()
    assert read(grid, cap, 0, 5 * SEGMENT) == OLD[: 5 * SEGMENT]
    one_s = 5 * BLOCK / EARLY_RATE
    assert one_s < grid.runtime.clock.now() - started < GRACE_FLOOR_S + one_s + 0.5
