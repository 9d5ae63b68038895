"""Costs of reads and writes in messages, bytes and pool calls."""

from __future__ import annotations

import pytest

from grid.engine.batches import READ_BYTES, WIDE_READ_BYTES
from grid.engine.grid import Encoding
from grid.engine.write_batches import SERVER_BYTES
from grid.immutable.read.get_plan import GetPlan
from grid.immutable.read.segment_batch import Batch
from grid.immutable.share.requests import ReadShares
from grid.ports import Event
from tests.support.scripted_grid import ScriptedGrid, encoded, noise


class Ledger:
    """The events of one operation."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def __call__(self, event: Event) -> None:
        self.events.append(event)

    def sent(self, detail: str) -> list[Event]:
        """The requests of one kind, in order."""
        return [event for event in self.events if event.what == "send" and event.detail == detail]

    def round_trips(self) -> int:
        """The longest chain of requests in which each was sent after an earlier one was answered."""
        depth_of: dict[int, int] = {}
        deepest = 0
        for event in self.events:
            if event.server_id is None:
                continue
            if event.what == "send":
                depth_of[event.request_index] = deepest + 1
            elif event.what in {"answer", "fail"}:
                deepest = max(deepest, depth_of[event.request_index])
        return deepest


@pytest.mark.parametrize("segment_size", [2**20, 131072])
@pytest.mark.parametrize("size", [100, 100_000, 5_000_000])
def test_read_when_it_is_of_one_byte_costs_at_most_three_round_trips(size: int, segment_size: int) -> None:
    for offset in (0, size // 2, size - 1):
        grid = ScriptedGrid()
        data = noise(size)
        file = grid.store(data, segment_size=segment_size)
        ledger = Ledger()
        byte, _ = grid.read(grid.open(file.cap), offset, 1, observer=ledger)
        assert byte == data[offset : offset + 1]
        # One, blocks and all; three where the guess of the layout was wrong.
        assert ledger.round_trips() <= (1 if segment_size == 2**20 or size == 100 else 3)
        if segment_size == 2**20:
            assert sum(len(server.calls) for server in grid.servers) == 3
        assert grid.now < 0.05


def test_read_when_it_spans_two_segments_costs_one_message_to_each_of_k_servers() -> None:
    grid = ScriptedGrid()
    data = noise(5_000_000)
    file = grid.store(data)
    ledger = Ledger()
    raw, _ = grid.read(grid.open(file.cap), 1_500_000, 1_000_000, observer=ledger)
    assert raw == data[1_500_000:2_500_000]
    assert ledger.round_trips() == 1
    assert [server.calls for server in grid.servers if server.calls] == [["find_shares"]] * 3
    assert sum(server.read_bytes for server in grid.servers) < 2 * 2**20 + 20_000


def test_read_when_it_follows_another_has_its_blocks_only_if_that_was_of_a_part_of_the_segment() -> None:
    """A slow client may take long for a segment, and then its text alone is held."""
    grid = ScriptedGrid()
    data = noise(3_000_000)
    file = grid.store(data)

    def cost(first: int, second: int) -> int:
        opened = grid.open(file.cap)
        assert grid.read(opened, 0, first)[0] == data[:first]
        before = sum(server.read_bytes for server in grid.servers)
        assert grid.read(opened, 0, second)[0] == data[:second]
        return sum(server.read_bytes for server in grid.servers) - before

    assert cost(200_000, 400_000) == 0
    assert cost(1_200_000, 400_000) == pytest.approx(2**20, rel=0.01)
    assert cost(len(data), 10) == pytest.approx(2**20, rel=0.01)


def test_read_when_one_server_holds_every_share_asks_for_blocks_only_of_those_it_needs() -> None:
    grid = ScriptedGrid(1)
    data = noise(5_000_000)
    file = grid.store(data, holdings={0: list(range(10))})
    raw, _ = grid.read(grid.open(file.cap), 1_500_000, 10)
    assert raw == data[1_500_000:1_500_010]
    assert grid.servers[0].read_bytes < 1.1 * 2**20


def test_get_when_the_file_is_large_costs_one_message_per_server_and_window() -> None:
    grid = ScriptedGrid()
    data = noise(100_000_000)
    file = grid.store(data)
    ledger = Ledger()
    raw, result = grid.read(grid.open(file.cap), observer=ledger)
    assert raw == data
    windows = len(ledger.sent("OpenRun"))
    assert windows <= len(data) // READ_BYTES + 5
    assert [call for call in grid.virtual.cpu.calls if call == "open"] == ["open"] * windows
    for server in grid.servers:
        assert server.calls.count("find_shares") <= 1
        assert server.calls.count("read_shares") <= windows
    # The first window's blocks come with the first answers.
    assert sum(server.calls.count("read_shares") for server in grid.servers) <= 3 * windows - 2
    assert result.hedged_bytes == 0
    assert result.share_count <= 4
    assert sum(server.read_bytes for server in grid.servers) < 1.01 * len(data)


@pytest.mark.parametrize(("delay_s", "is_spread"), [(0.1, True), (0.005, False)])
def test_get_when_lines_are_long_reads_from_all_servers(delay_s: float, is_spread: bool) -> None:
    grid = ScriptedGrid()
    for index in range(10):
        grid.script(index, delay_s=delay_s, rate=12.5e6)
    assert len(grid.get(grid.store(noise(1000)).cap)) == 1000  # Now it is known how far away they are.
    data = noise(50_000_000)
    file = grid.store(data)
    began, read_bytes = grid.now, [server.read_bytes for server in grid.servers]
    raw, result = grid.read(grid.open(file.cap))
    assert raw == data and result.hedged_bytes == 0
    read_bytes = [server.read_bytes - before for server, before in zip(grid.servers, read_bytes, strict=True)]
    assert sum(read_bytes) < 1.01 * len(data)
    # The lines of three servers take 1.33 s for it, those of ten 0.4 s.
    assert sum(size > 10**6 for size in read_bytes) >= 7 if is_spread else result.share_count <= 4
    assert grid.now - began < 1.2 if is_spread else grid.now - began > 1.2


def test_get_when_connecting_took_long_reads_from_as_many_servers_as_near_ones() -> None:
    grid = ScriptedGrid()
    small = grid.store(noise(1000))
    for delay_s in (0.05, 0.005):  # The first answers of a process include connecting.
        for index in range(10):
            grid.script(index, delay_s=delay_s, rate=200e6)
        assert len(grid.get(small.cap)) == 1000
    data = noise(50_000_000)
    file = grid.store(data)
    raw, result = grid.read(grid.open(file.cap))
    assert raw == data and result.hedged_bytes == 0
    assert result.share_count <= 4
    assert sum(server.calls.count("find_shares") for server in grid.servers) <= 2 * 4 + 4


@pytest.mark.parametrize("segment_size", [2**20, 131072])
def test_get_when_the_first_block_is_asked_for_has_cost_at_most_three_messages_per_server(segment_size: int) -> None:
    grid = ScriptedGrid()
    file = grid.store(noise(12_000_000), segment_size=segment_size)
    ledger = Ledger()
    grid.read(grid.open(file.cap), observer=ledger)
    first = next(
        index
        for index, event in enumerate(ledger.events)
        if event.what == "send" and event.detail == "ReadShares" and event.count > file.geometry.block_size
    )
    messages: dict[str, int] = {}
    for event in ledger.events[:first]:
        if event.what == "send" and event.server_id is not None:
            messages[event.server_id] = messages.get(event.server_id, 0) + 1
    assert max(messages.values()) <= 3
    assert len(messages) <= 4


def test_get_when_there_are_many_shares_looks_at_each_batch_a_few_times(monkeypatch: pytest.MonkeyPatch) -> None:
    grid = ScriptedGrid(20)
    data = noise(40 * 2**20)
    file = grid.store(data, k=20, n=40, segment_size=2**20)
    looked: list[Batch] = []
    fetch = GetPlan._fetch

    def counted(plan: GetPlan, batch: Batch, now: float) -> list[ReadShares]:
        looked.append(batch)
        return fetch(plan, batch, now)

    monkeypatch.setattr(GetPlan, "_fetch", counted)
    assert grid.get(file.cap) == data
    assert len(set(looked)) >= len(data) // WIDE_READ_BYTES
    assert len(looked) <= 4 * len(set(looked))


def test_get_when_nothing_is_late_hedges_nothing() -> None:
    grid = ScriptedGrid()
    file = grid.store(noise(10_000_000))
    for index in range(10):
        grid.script(index, rate=2e6 * (index + 1), delay_s=0.03)
    _, result = grid.read(grid.open(file.cap))
    assert result.hedged_bytes == 0


def test_get_when_a_server_stalls_hedges_within_five_percent_or_for_silence_alone() -> None:
    data = noise(100_000_000)
    file = encoded(data, 3, 10, 2**20)
    grid = ScriptedGrid()
    grid.lay(file)
    for index in range(10):
        grid.script(index, rate=10e6)
    for victim in range(3):
        grid.servers[victim].script.rate = 400e3
    raw, _ = grid.read(grid.open(file.cap))
    assert raw == data
    # Answers that came in vain, and those still on their way when the read was done.
    assert sum(server.read_bytes for server in grid.servers) < 1.05 * len(data) + 8 * 2**20


@pytest.mark.parametrize(("gone", "round_trips"), [(0, 1), (1, 2), (7, 2)])
def test_get_when_servers_are_gone_asks_more_at_once_the_more_have_failed(gone: int, round_trips: int) -> None:
    grid = ScriptedGrid()
    data = noise(1000)
    file = grid.store(data)
    asked = Ledger()
    grid.read(grid.open(file.cap), observer=asked)
    first = [event.server_id for event in asked.sent("FindShares")]
    # Those that are asked first are gone, and then others until there are that many.
    order = sorted(grid.servers, key=lambda server: server.identity.server_id not in first)
    for server in order[:gone]:
        server.script.dead_from = 0
    ledger = Ledger()
    raw, _ = grid.read(grid.open(file.cap), observer=ledger)
    assert raw == data
    assert ledger.round_trips() == round_trips
    questions = len(ledger.sent("FindShares"))
    assert questions in ({9, 10} if gone == 7 else {3 + gone})


def test_put_when_all_is_well_costs_one_message_per_server_and_batch() -> None:
    grid = ScriptedGrid()
    data = noise(96 * 8192)
    grid.put(data, encoding=Encoding(max_segment_size=8192))
    for server in grid.servers:
        assert server.calls == ["get_version", "find_shares", "allocate", "finish"]
    # Hashing for the key, encoding, the ordered hash, the end, and a trailer for each server.
    assert len(grid.virtual.cpu.calls) == 1 + 1 + 1 + 1 + 10


def test_put_when_the_file_is_large_writes_one_message_per_server_and_batch() -> None:
    grid = ScriptedGrid()
    data = noise(30_000_000)
    grid.put(data)
    batches = grid.virtual.cpu.calls.count("encode_segments")
    assert batches == -(-29 // 5)
    for server in grid.servers:
        assert server.calls.count("write") == batches - 1
        assert server.calls.count("finish") == 1
        assert "close" not in server.calls
        assert "abort" not in server.calls
    assert grid.virtual.cpu.calls.count("absorb") == batches


@pytest.mark.parametrize(("servers", "k", "n"), [(1, 1, 1), (1, 3, 10), (3, 3, 10), (10, 3, 10), (10, 30, 60)])
def test_put_when_servers_are_few_sends_none_of_them_more_than_it_should_hold_at_once(
    servers: int, k: int, n: int
) -> None:
    grid = ScriptedGrid(servers)
    grid.put(noise(30_000_000), encoding=Encoding(k=k, n=n, happy=1))
    longest = max(event.count for event in grid.events if event.detail.startswith("WriteShares"))
    assert longest <= SERVER_BYTES + 2**16
    assert longest > 2**20


@pytest.mark.parametrize("size", [9_000_000, 10_000_000, 11_900_000])
def test_put_when_the_line_is_long_costs_at_most_three_round_trips(size: int) -> None:
    grid = ScriptedGrid()
    for index in range(10):
        grid.script(index, delay_s=0.1)
    ledger = Ledger()
    grid.events = ledger.events
    grid.put(noise(size))
    # Questions, room, and all bytes at once: nothing of the file waits for the answer to another part of it.
    assert ledger.round_trips() <= 3
    assert grid.now < 0.35


@pytest.mark.parametrize("size", [9_000_000, 11_900_000])
def test_put_when_its_servers_are_known_costs_two_round_trips_and_no_question(size: int) -> None:
    grid = ScriptedGrid()
    for index in range(10):
        grid.script(index, delay_s=0.1, known=True)
    ledger = Ledger()
    grid.events = ledger.events
    result = grid.put(noise(size))
    assert ledger.round_trips() == 2
    assert grid.now < 0.25
    assert all(set(server.calls) == {"allocate", "write", "finish"} for server in grid.servers)
    again = Ledger()
    grid.events = again.events
    assert (grid.put(noise(size)).found, result.pushed) == (10, 10)
    assert again.round_trips() == 1 and len(again.sent("Allocate")) == 10


def test_put_when_one_server_holds_many_large_shares_keeps_messages_within_their_limit() -> None:
    from grid import limits

    grid = ScriptedGrid(1)
    data = noise(3 * 2**20)
    result = grid.put(data, encoding=Encoding(k=1, n=60, happy=1, max_segment_size=2**20))
    assert result.pushed == 60
    sizes = [event.count for event in grid.events if event.what == "send" and event.detail == "WriteShares"]
    assert max(sizes) <= limits.WRITE_CALL_BYTES
    assert len(sizes) >= 12
    assert grid.get(result.cap) == data


def test_check_when_verifying_costs_few_messages_per_share() -> None:
    grid = ScriptedGrid()
    file = grid.store(noise(1_000_000))
    assert grid.check(file.cap).healthy
    for server in grid.servers:
        assert server.calls == ["find_shares", *["read_shares"] * 4]
