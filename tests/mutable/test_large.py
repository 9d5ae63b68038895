"""Large files, written in pieces: bounded memory, and a complete readable version at every moment."""

from __future__ import annotations

import random
from collections.abc import Coroutine
from typing import Any

import pytest
from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from grid.caps import KnownCap
from grid.engine.grid import Encoding
from grid.errors import ConflictError, GridError, NotHappyError
from grid.mutable import publish, update
from grid.mutable.read import read_plan
from grid.mutable.share import audit
from grid.mutable.share.geometry import FormatName
from grid.mutable.share.layout import parse_header
from grid.mutable.share.mdmf import DATA_OFFSET
from grid.mutable.write import row_plan, stream_plan, write_queue
from grid.ports import Buffer, Clock, SlotAnswer
from tests.mutable.test_writers import together
from tests.support.depth import spread
from tests.support.mutable_grid import MutableGrid
from tests.support.scripted_slots import SlotScript, SlotServer

SEGMENT = 131073


def sample_bytes(segments: int, seed: int = 0) -> bytes:
    return random.Random(seed).randbytes(segments * SEGMENT + 5)


@pytest.fixture(autouse=True)
def small_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of some segments count as large, and pieces are of one segment or two."""
    monkeypatch.setattr(publish, "WHOLE_BYTES", 100_000)
    monkeypatch.setattr(update, "WHOLE_BYTES", 100_000)
    monkeypatch.setattr(stream_plan, "WRITE_BYTES", 1_000_000)
    monkeypatch.setattr(stream_plan, "LIVE_BYTES", 2_000_000)


class CountingSource:
    """Bytes that are made as they are asked for."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.read_count = 0
        self.largest = 0

    async def read_at(self, offset: int, length: int) -> Buffer:
        self.read_count += 1
        self.largest = max(self.largest, length)
        return bytes((offset + index) % 251 for index in range(0, length, 1))


def test_create_when_large_then_is_sent_in_pieces_of_bounded_size() -> None:
    grid = MutableGrid()
    source = CountingSource(12 * SEGMENT + 5)
    cap = grid.create(source, "mdmf")
    assert grid.read(cap) == bytes(index % 251 for index in range(source.size))
    assert grid.run(grid.open(cap).check(verify=True)).healthy
    assert source.read_count >= 6
    assert all(server.largest_write < 200_000 for server in grid.servers)


class CrowdedServer(SlotServer):
    """Records how many writes are in flight to it whenever another one arrives."""

    def __init__(self, name: str, clock: Clock) -> None:
        super().__init__(name, clock, SlotScript(delay_s=0.5))
        self.at_once: list[int] = []
        self._open = 0

    async def test_and_write(self, *arguments: Any) -> SlotAnswer:
        self._open += 1
        self.at_once.append(self._open)
        try:
            return await super().test_and_write(*arguments)
        finally:
            self._open -= 1


def test_create_when_large_then_a_server_gets_a_piece_while_it_stores_one_once_the_place_is_claimed() -> None:
    grid = MutableGrid()
    grid.servers[:] = [CrowdedServer(f"server{index}", grid.runtime.clock) for index in range(10)]
    contents = sample_bytes(12)
    cap = grid.create(contents, "mdmf")
    for server in grid.servers:
        assert isinstance(server, CrowdedServer)
        # Thirteen segments, two in a piece; the last piece comes with the header.
        assert len(server.at_once) == 7
        assert server.at_once[:2] == [1, 1]
        assert max(server.at_once) == stream_plan.IN_FLIGHT == 2
    assert grid.read(cap) == contents


def test_create_when_servers_are_distant_then_each_gets_more_and_smaller_pieces_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(stream_plan, "WRITE_BYTES", 3_000_000)
    monkeypatch.setattr(stream_plan, "LIVE_BYTES", 6_000_000)
    monkeypatch.setattr(stream_plan, "DISTANT_BYTES", 500_000)
    grid = MutableGrid()
    grid.servers[:] = [CrowdedServer(f"server{index}", grid.runtime.clock) for index in range(10)]
    for server in grid.servers:
        grid.grid().memory.latency(server.identity.server_id).learn(10, 10, 0.1)
    contents = sample_bytes(12)
    cap = grid.create(contents, "mdmf")
    for server in grid.servers:
        assert isinstance(server, CrowdedServer)
        assert len(server.at_once) == 13 and server.at_once[:2] == [1, 1]
        assert max(server.at_once) == stream_plan.DISTANT_IN_FLIGHT == 3
    assert grid.read(cap) == contents


@pytest.mark.parametrize("segments", [3, 8, 12])
def test_overwrite_when_large_then_leaves_shares_as_if_written_whole(segments: int) -> None:
    grid = MutableGrid()
    cap = grid.create(sample_bytes(8), "mdmf")
    new = sample_bytes(segments, 1)
    grid.run(grid.open(cap).overwrite(new))
    assert grid.read(cap) == new
    result = grid.run(grid.open(cap).check(verify=True))
    assert result.healthy and not result.corrupt
    for held in grid.shares(cap).values():
        for _, data in held:
            _, table = parse_header(data)
            assert table.data[0] == DATA_OFFSET and len(data) == table.eof
    assert all(server.largest_write < 200_000 for server in grid.servers)


def test_update_when_of_a_large_range_or_with_a_share_missing_then_rewrites_from_the_grid() -> None:
    grid = MutableGrid()
    contents = sample_bytes(8)
    cap = grid.create(contents, "mdmf")
    grid.run(grid.open(cap).update(SEGMENT + 3, bytes(4 * SEGMENT)))
    contents = contents[: SEGMENT + 3] + bytes(4 * SEGMENT) + contents[5 * SEGMENT + 3 :]
    assert grid.read(cap) == contents
    grid.servers[0].slots.clear()
    grid.run(grid.open(cap).update(5, b"five"))
    contents = contents[:5] + b"five" + contents[9:]
    assert grid.read(cap) == contents
    assert grid.run(grid.open(cap).check(verify=True)).healthy


def test_repair_when_large_then_stores_missing_and_spoiled_shares_again() -> None:
    grid = MutableGrid()
    contents = sample_bytes(6)
    cap = grid.create(contents, "mdmf")
    before = {number: bytes(held[0][1]) for number, held in grid.shares(cap).items()}
    grid.servers[0].slots.clear()
    spoiled = sorted(grid.shares(cap))[3]
    grid.share(cap, spoiled)[5000] ^= 1
    repaired = grid.run(grid.open(cap).repair())
    assert repaired.attempted and repaired.successful
    assert {number: bytes(held[0][1]) for number, held in grid.shares(cap).items()} == before


def run_and_kill(grid: MutableGrid, coroutine: Coroutine[Any, Any, object], turns: int) -> bool:
    """Run for a number of turns of the clock, then kill it; whether it was still running.

    Of a message sent to several servers, those that have not taken it by then never do.
    """
    outcome: list[object] = []
    task: Deferred[object] = Deferred.fromCoroutine(coroutine)
    task.addBoth(outcome.append)
    clock = grid.runtime.clock.task_clock
    for _ in range(turns):
        if not outcome:
            clock.advance(max(0.0, min(call.getTime() for call in clock.getDelayedCalls()) - clock.seconds()))
    if outcome:
        assert not isinstance(outcome[0], Failure), outcome[0]
        return False
    task.cancel()
    grid.runtime.settle()
    return True


@pytest.mark.parametrize(("k", "n"), [(3, 10), (5, 10), (1, 1)])
def test_overwrite_when_its_process_dies_at_any_moment_then_a_whole_version_is_left(k: int, n: int) -> None:
    """Also in the middle of the headers, where n is 2k or more."""
    turns, texts, alive = 0, set(), True
    old, new = sample_bytes(6), sample_bytes(5, 1)
    while alive:
        grid = MutableGrid(n, Encoding(k=k, n=n, happy=1))
        cap = grid.create(old, "mdmf")
        for index, server in enumerate(grid.servers):
            server.calls.clear()
            server.script.delay_s = 0.01 + 0.001 * index
        turns += 1 if n == 1 else 4
        alive = run_and_kill(grid, grid.open(cap, process=1).overwrite(new), turns)
        text = grid.read(cap)
        assert text in {old, new}
        texts.add(text)
        grid.run(grid.open(cap).repair(force=True))
        result = grid.run(grid.open(cap).check(verify=True))
        assert result.healthy and not result.corrupt
        assert grid.read(cap) == text
        grid.run(grid.open(cap).update(0, b"goes on"))
        assert grid.read(cap) == b"goes on" + text[7:]
    assert texts == {old, new}


def test_create_when_its_process_dies_at_any_moment_then_nothing_or_all_is_there() -> None:
    contents, turns, alive, seen = sample_bytes(6), 0, True, set()
    while alive:
        grid = MutableGrid()
        for index, server in enumerate(grid.servers):
            server.script.delay_s = 0.01 + 0.001 * index
        turns += 5
        alive = run_and_kill(grid, grid.creating(contents, "mdmf"), turns)
        cap = known_cap()
        try:
            assert grid.read(cap) == contents
            seen.add("all")
        except GridError:
            seen.add("nothing")
    assert seen == {"all", "nothing"}


def known_cap() -> KnownCap:
    from grid.mutable.share.keys import write_cap
    from tests.support.mutable_key import known_key

    return write_cap(known_key(), 1)


@pytest.mark.parametrize("sizes", [(5, 3), (3, 5)])
def test_overwrite_when_two_processes_write_large_files_then_their_blocks_never_mix(sizes: tuple[int, int]) -> None:
    for seed in spread(range(8), 3):
        grid = MutableGrid(seed=seed)
        cap = grid.create(sample_bytes(4), "mdmf")
        for index, server in enumerate(grid.servers):
            server.script.delay_s = 0.01 + 0.002 * ((index * 3 + seed) % 10)
        texts = [sample_bytes(sizes[0], 1), sample_bytes(sizes[1], 2)]

        async def late(
            text: bytes, process: int, grid: MutableGrid = grid, cap: KnownCap = cap, seed: int = seed
        ) -> None:
            await grid.runtime.clock.sleep(0.03 * seed * (process - 1))
            await grid.open(cap, process=process).overwrite(text)

        errors = grid.run(together([late(text, index + 1) for index, text in enumerate(texts)]))
        left = grid.read(cap)
        assert left in {sample_bytes(4), *texts}
        assert all(error is None or isinstance(error, ConflictError) for error in errors)
        winners = [text for text, error in zip(texts, errors, strict=True) if error is None]
        assert not winners or left in winners
        grid.run(grid.open(cap).repair(force=True))
        assert grid.run(grid.open(cap).check(verify=True)).healthy
        assert grid.read(cap) == left


@pytest.mark.parametrize("fault", [SlotScript(dead_from=4), SlotScript(silent_from=4), SlotScript(write_delay_s=30.0)])
def test_overwrite_when_some_servers_fail_on_the_way_then_goes_on_without_them(fault: SlotScript) -> None:
    grid = MutableGrid()
    cap = grid.create(sample_bytes(6), "mdmf")
    for server in grid.servers[:3]:
        server.calls.clear()
        server.script = fault
    grid.run(grid.open(cap).overwrite(sample_bytes(7, 1)))
    for server in grid.servers[:3]:
        server.script = SlotScript()
    assert grid.read(cap) == sample_bytes(7, 1)


def test_overwrite_when_too_many_servers_fail_on_the_way_then_the_old_version_stays_whole() -> None:
    grid = MutableGrid()
    cap = grid.create(sample_bytes(6), "mdmf")
    for server in grid.servers[:4]:
        server.calls.clear()
        server.script = SlotScript(dead_from=3)
    with pytest.raises(NotHappyError, match="nothing was changed"):
        grid.run(grid.open(cap).overwrite(sample_bytes(7, 1)))
    assert sum(server.fired["dead"] for server in grid.servers) >= 4
    for server in grid.servers[:4]:
        server.script = SlotScript()
    assert grid.read(cap) == sample_bytes(6)
    assert grid.run(grid.open(cap).check(verify=True)).healthy


@pytest.mark.parametrize("format", ["sdmf", "mdmf"])
def test_file_when_larger_than_a_message_then_travels_in_parts(
    format: FormatName, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two servers with five shares each; a share is several messages to read, and two fill one to write."""
    monkeypatch.setattr(publish, "WHOLE_BYTES", 10**9)
    monkeypatch.setattr(update, "WHOLE_BYTES", 10**9)
    monkeypatch.setattr(read_plan, "PART_BYTES", 40_000)
    monkeypatch.setattr(audit, "READ_BYTES", 40_000)
    monkeypatch.setattr(write_queue, "MESSAGE_BYTES", 300_000)
    monkeypatch.setattr(row_plan, "MESSAGE_BYTES", 500)
    grid = MutableGrid(2, Encoding(k=3, n=10, happy=2))
    contents = sample_bytes(3)
    cap = grid.create(contents, format)
    assert max(server.calls.count("test_and_write") for server in grid.servers) == 3
    for number in (0, 1, 2):
        grid.share(cap, number)[100_000] ^= 1
    assert grid.read(cap) == contents
    result = grid.run(grid.open(cap).check(verify=True))
    assert {number for _, number in result.corrupt} == {0, 1, 2}
    grid.run(grid.open(cap).update(10, b"0123456789"))
    assert grid.run(grid.open(cap).repair()).after.healthy
    result = grid.run(grid.open(cap).check(verify=True))
    assert result.healthy and not result.corrupt
    assert grid.read(cap) == contents[:10] + b"0123456789" + contents[20:]
