"""Slow, silent, dead, forgetful and lying servers, one at a time: no operation stalls or returns wrong bytes."""

from __future__ import annotations

import random
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from twisted.internet.defer import Deferred

from grid.caps import KnownCap
from grid.engine.grid import Encoding
from grid.errors import ConflictError, NotEnoughSharesError, NotHappyError, PeerGoneError
from grid.mutable.share.geometry import FormatName
from grid.ports import Buffer
from tests.support.mutable_grid import MutableGrid
from tests.support.scripted_slots import SlotScript

SEGMENT = 131073
CONTENTS = random.Random(3).randbytes(2 * SEGMENT + 1000)
FORMATS: list[FormatName] = ["sdmf", "mdmf"]

FAULTS: dict[str, Callable[[], SlotScript]] = {
    "dead": lambda: SlotScript(dead_from=0),
    "silent": lambda: SlotScript(silent_from=0),
    "silent later": lambda: SlotScript(silent_from=1),
    "dead later": lambda: SlotScript(dead_from=1),
}


def break_servers(grid: MutableGrid, fault: str, count: int) -> None:
    for server in grid.servers[:count]:
        server.calls.clear()
        server.script = FAULTS[fault]()


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("count", [1, 3])
def test_read_when_servers_fail_then_the_others_suffice(format: FormatName, fault: str, count: int) -> None:
    grid = MutableGrid()
    cap = grid.create(CONTENTS, format)
    break_servers(grid, fault, count)
    started = grid.runtime.clock.now()
    assert grid.read(cap.read_cap()) == CONTENTS
    assert grid.runtime.clock.now() - started < 5.0
    assert sum(server.fired["dead"] + server.fired["silent"] for server in grid.servers) >= (
        count if "later" not in fault else 0
    )


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("fault", FAULTS)
def test_write_when_servers_fail_then_the_others_take_their_shares(format: FormatName, fault: str) -> None:
    grid = MutableGrid()
    cap = grid.create(CONTENTS, format)
    break_servers(grid, fault, 3)
    grid.run(grid.open(cap).modify(lambda old, _: old + b"!"))
    assert grid.read(cap) == CONTENTS + b"!"
    for server in grid.servers[:3]:
        server.slots.clear()
    assert grid.read(cap) == CONTENTS + b"!"
    # What silent servers should have is missing until a repair: nobody waits for them.
    assert grid.run(grid.open(cap).check()).good_count == (7 if fault == "silent later" else 10)
    for server in grid.servers[:3]:
        server.script = SlotScript()
    assert grid.run(grid.open(cap).repair()).after.good_count == 10


@pytest.mark.parametrize("format", FORMATS)
def test_write_when_too_few_servers_are_left_then_fails_and_the_old_version_stays(format: FormatName) -> None:
    grid = MutableGrid()
    cap = grid.create(CONTENTS, format)
    for server in grid.servers[:4]:
        server.script = SlotScript(dead_from=0)
    for attempt in (
        grid.open(cap).overwrite(b"new"),
        grid.open(cap).modify(lambda old, _: old + b"!"),
        grid.open(cap).update(5, b"new"),
    ):
        with pytest.raises(NotHappyError):
            grid.run(attempt)
        assert grid.read(cap) == CONTENTS


@pytest.mark.parametrize("fault", ["dead later", "silent later"])
def test_write_when_too_many_servers_fail_on_the_way_then_is_no_success(fault: str) -> None:
    grid = MutableGrid()
    cap = grid.create(b"old")
    break_servers(grid, fault, 4)
    with pytest.raises(
        NotHappyError,
        match=r"only 6 servers took the new version, and 7 are needed; .* is in force .*; 4 of 10 servers cannot be reached",
    ):
        grid.run(grid.open(cap).overwrite(b"new"))


def test_create_when_too_many_servers_fail_on_the_way_speaks_of_no_version() -> None:
    grid = MutableGrid()
    for server in grid.servers[:4]:
        server.script = SlotScript(dead_from=0)
    with pytest.raises(NotHappyError, match="only 6 servers took shares, and 7 are needed"):
        grid.create(b"new")


def test_create_when_a_server_fails_then_its_share_goes_to_another() -> None:
    grid = MutableGrid(12)
    grid.servers[3].script = SlotScript(dead_from=0)
    grid.servers[4].script = SlotScript(silent_from=0)
    cap = grid.create(b"contents")
    for server in grid.servers[3:5]:
        server.script = SlotScript()
    assert grid.run(grid.open(cap).check(verify=True)).healthy
    assert grid.servers[3].fired["dead"] + grid.servers[4].fired["silent"] >= 1


@pytest.mark.parametrize("format", FORMATS)
def test_write_when_an_answer_is_lost_then_the_share_counts_for_whoever_looks(format: FormatName) -> None:
    grid = MutableGrid()
    cap = grid.create(CONTENTS, format)
    grid.servers[0].script = SlotScript(lost_answers=True)
    grid.run(grid.open(cap).overwrite(b"new contents"))
    assert grid.servers[0].fired["lost_answers"]
    grid.servers[0].script = SlotScript()
    assert grid.read(cap) == b"new contents"
    assert grid.run(grid.open(cap).check(verify=True)).recoverable


@pytest.mark.parametrize("format", FORMATS)
def test_read_when_some_servers_are_stale_then_gives_the_newest_version(format: FormatName) -> None:
    grid = MutableGrid()
    cap = grid.create(b"old", format)
    for server in grid.servers[:7]:
        server.freeze()
    grid.run(grid.open(cap).overwrite(b"new"))
    assert grid.read(cap.read_cap()) == b"new"
    grid.run(grid.open(cap).overwrite(b"newest"))
    assert grid.read(cap) == b"newest"
    assert sum(server.fired["frozen"] for server in grid.servers[:7]) >= 7


def test_read_when_the_rest_of_a_share_is_cut_off_then_another_comes_instead() -> None:
    grid = MutableGrid()
    cap = grid.create(CONTENTS, "mdmf")
    for server in grid.servers:
        for number in server.slots[cap.storage_index]:
            if number < 2:
                server.script.short[number] = 20_000
    assert grid.read(cap) == CONTENTS
    assert sum(server.fired["short"] for server in grid.servers) >= 2


@pytest.mark.parametrize("format", FORMATS)
def test_read_when_the_file_changes_meanwhile_then_is_of_one_version(format: FormatName) -> None:
    """A read that starts at every moment of a write by another process, from its first question to its last answer."""
    old, new = CONTENTS, CONTENTS[::-1] + b"more"
    seen = set()
    for step in range(24):
        grid = MutableGrid()
        cap = grid.create(old, format)
        for index, server in enumerate(grid.servers):
            server.script.delay_s = 0.01 + 0.003 * index

        async def read_later(step: int = step, grid: MutableGrid = grid, cap: KnownCap = cap) -> bytes:
            await grid.runtime.clock.sleep(0.01 * step)
            return await grid.open(cap).read_all()

        async def write_later(grid: MutableGrid = grid, cap: KnownCap = cap) -> None:
            await grid.runtime.clock.sleep(0.08)
            await grid.open(cap, process=1).overwrite(new)

        text = grid.run(both(read_later(), write_later()))
        assert text in {old, new}
        seen.add(text)
    assert len(seen) == 2


async def both(first: Coroutine[Any, Any, bytes], second: Coroutine[Any, Any, None]) -> bytes:
    """The result of the first; the second runs beside it."""
    other = Deferred.fromCoroutine(second)
    try:
        return await first
    finally:
        await other


def test_read_when_parts_were_delivered_and_the_file_changes_then_fails_rather_than_mix() -> None:
    grid = MutableGrid()
    contents = random.Random(9).randbytes(60 * SEGMENT)
    cap = grid.create(contents, "mdmf")

    class Spoiler:
        """Overwrites the file when the first bytes arrive."""

        def __init__(self) -> None:
            self.data = bytearray()

        async def write(self, data: Buffer) -> None:
            if not self.data:
                await grid.open(cap, process=1).overwrite(bytes(60 * SEGMENT))
            self.data += data

    sink = Spoiler()
    try:
        grid.run(grid.open(cap.read_cap()).read(sink))
    except ConflictError:
        pass
    assert sink.data
    assert contents.startswith(bytes(sink.data))


def test_read_when_one_server_has_all_shares_and_one_is_bad_then_uses_the_others() -> None:
    grid = MutableGrid(1, Encoding(k=3, n=5, happy=1))
    cap = grid.create(CONTENTS, "mdmf")
    grid.servers[0].script.corrupt[(0, 30_000)] = 1
    grid.servers[0].script.corrupt[(1, 100)] = 1
    assert grid.read(cap) == CONTENTS
    grid.servers[0].script.corrupt[(2, 30_000)] = 1
    with pytest.raises(NotEnoughSharesError):
        grid.read(cap)


def test_read_when_a_server_dies_between_blocks_and_their_hashes_then_another_gives_both() -> None:
    grid = MutableGrid()
    contents = random.Random(5).randbytes(60 * SEGMENT)
    cap = grid.create(contents, "mdmf")
    (server, _), *_ = grid.shares(cap)[0]
    answer, asked = server.read_slot, 0

    async def read_slot(*arguments: Any) -> Any:
        nonlocal asked
        asked += 1
        if asked != 2:  # The first batch's message, which fetches the hashes for the others too.
            return await answer(*arguments)
        await grid.runtime.clock.sleep(0.1)
        raise PeerGoneError("gone")

    server.read_slot = read_slot  # type: ignore[assignment,method-assign]
    assert grid.read(cap.read_cap()) == contents
    assert asked > 2


def test_modify_when_a_repair_ran_while_a_read_still_waited_for_a_silent_server_then_ends() -> None:
    grid = MutableGrid()
    cap = grid.create(b"old", "sdmf")
    file = grid.open(cap)
    grid.servers[0].script = SlotScript(silent_from=0)
    grid.run(file.read_all())
    grid.run(file.repair())
    grid.run(file.modify(lambda old, _: old + b"!"))
    assert grid.run(file.read_all()) == b"old!"
