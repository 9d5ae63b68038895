"""Putting files: caps, keys, sources, and servers that refuse, fail, fall silent or know the file already."""

from __future__ import annotations

from collections import Counter

import pytest

from grid.caps import ChkCap, LitCap
from grid.engine.grid import Encoding
from grid.errors import FormatError, GridError, NoServersError, NotHappyError
from grid.immutable.put import PutResult
from grid.ports import Event, ServerId
from tests.support.scripted_grid import MemorySource, ScriptedGrid, encoded, noise

SMALL = Encoding(k=3, n=10, happy=7, max_segment_size=1200)


def complete(grid: ScriptedGrid, cap: ChkCap | LitCap, data: bytes) -> None:
    """What every success promises: the file can be read and nothing is left half written."""
    assert grid.get(cap) == data
    grid.settle()
    assert grid.debris() == []


@pytest.mark.parametrize("size", [0, 1, 55])
def test_put_when_the_file_is_tiny_makes_a_literal_cap(size: int) -> None:
    grid = ScriptedGrid()
    result = grid.put(noise(size))
    assert isinstance(result.cap, LitCap)
    assert grid.get(result.cap) == noise(size)
    assert not any(server.calls for server in grid.servers)


@pytest.mark.parametrize("size", [56, 1199, 1200, 1201, 10_007])
def test_put_when_all_is_well_stores_every_share_on_a_server_of_its_own(size: int) -> None:
    grid = ScriptedGrid()
    result = grid.put(noise(size), encoding=SMALL)
    assert isinstance(result.cap, ChkCap)
    assert (result.pushed, result.found, result.happiness) == (10, 0, 10)
    assert all(len(holders) == 1 for holders in result.sharemap.values())
    expected = encoded(noise(size), 3, 10, 1200)
    assert result.cap == expected.cap
    assert grid.shares(result.cap.storage_index) == {n: {share} for n, share in enumerate(expected.shares)}
    complete(grid, result.cap, noise(size))


@pytest.mark.parametrize(("k", "n", "servers"), [(1, 1, 1), (256, 256, 10), (100, 256, 256), (2, 40, 3), (3, 10, 30)])
def test_put_when_shares_and_servers_are_many_or_few_spreads_them(k: int, n: int, servers: int) -> None:
    grid = ScriptedGrid(servers)
    data = noise(20_000)
    result = grid.put(data, encoding=Encoding(k=k, n=n, happy=min(n, servers), max_segment_size=7000))
    assert result.pushed == n
    assert result.happiness == min(n, servers)
    loads = sorted(sum(map(len, server.shares.values())) for server in grid.servers)
    assert loads[-1] <= -(-n // min(n, servers))
    complete(grid, result.cap, data)


def test_put_when_repeated_with_a_secret_pushes_nothing_and_finds_all() -> None:
    grid = ScriptedGrid()
    data = noise(5000)
    first = grid.put(data, encoding=SMALL)
    again = grid.put(data, encoding=SMALL)
    assert again.cap == first.cap
    assert (again.pushed, again.found, again.happiness) == (0, 10, 10)
    assert sum(server.calls.count("finish") for server in grid.servers) == 10
    assert all(len(server.leases) == 2 for server in grid.servers)


@pytest.mark.parametrize("size", [1000, 5000])
def test_put_when_the_same_file_is_being_put_waits_and_finds_its_shares(size: int) -> None:
    grid = ScriptedGrid()
    results = grid.put_together([noise(size)] * 4, encoding=SMALL)
    stored = [result for result in results if isinstance(result, PutResult)]
    assert sorted((result.pushed, result.found) for result in stored) == [(0, 10)] * 3 + [(10, 0)], results
    assert sum(server.calls.count("finish") for server in grid.servers) == 10
    for result in stored:
        complete(grid, result.cap, noise(size))


def test_put_when_the_same_file_fails_before_it_is_tried_for_itself() -> None:
    grid = ScriptedGrid()
    sources = [MemorySource(noise(5000), left=1), MemorySource(noise(5000))]
    failed, stored = grid.put_together(sources, encoding=SMALL, key=bytes(16))
    assert isinstance(failed, GridError)
    assert isinstance(stored, PutResult)
    assert stored.pushed == 10
    complete(grid, stored.cap, noise(5000))


def test_put_when_without_a_secret_draws_another_key_each_time_and_reads_once() -> None:
    grid = ScriptedGrid()
    sources = [MemorySource(noise(5000)) for _ in range(2)]
    results = [grid.put(source, encoding=SMALL, convergence=None) for source in sources]
    assert results[0].cap != results[1].cap
    assert [source.read_count for source in sources] == [1, 1]
    for result in results:
        complete(grid, result.cap, noise(5000))


@pytest.mark.parametrize("size", [5000, 3_000_000])
def test_put_when_the_key_is_known_already_then_uses_it_and_reads_once(size: int) -> None:
    grid = ScriptedGrid()
    cap = grid.put(noise(size)).cap
    assert isinstance(cap, ChkCap)
    once, twice = MemorySource(noise(size)), MemorySource(noise(size))
    assert grid.put(once, key=cap.key).cap == grid.put(twice).cap == cap
    assert once.read_count < twice.read_count or size == 5000
    complete(grid, cap, noise(size))


@pytest.mark.parametrize("convergence", [None, b"c"])
@pytest.mark.parametrize("left", [0, 40, 4999])
@pytest.mark.parametrize("size", [50, 5000, 30_000_000])
def test_put_when_the_source_shrinks_says_so_and_leaves_nothing(
    size: int, left: int, convergence: bytes | None
) -> None:
    grid = ScriptedGrid()
    left = left if size < 10**6 else size - left - 1
    if left >= size:
        return
    with pytest.raises(GridError, match="became shorter"):
        grid.put(MemorySource(noise(size), left=left), convergence=convergence)
    grid.settle()
    assert grid.debris() == []
    assert not any(server.shares for server in grid.servers)


def test_put_when_the_source_fails_aborts_and_passes_its_error_on() -> None:
    class Broken(MemorySource):
        async def read_at(self, offset: int, length: int) -> bytes:
            if offset > 0:
                raise GridError("the tape is torn")
            return bytes(await super().read_at(offset, length))

    grid = ScriptedGrid()
    with pytest.raises(GridError, match="the tape is torn"):
        grid.put(Broken(noise(30_000_000)), convergence=None)
    grid.settle()
    assert grid.debris() == []


@pytest.mark.parametrize(("k", "n", "happy"), [(0, 1, 1), (3, 2, 1), (1, 257, 1), (1, 5, 6), (1, 5, -1)])
def test_encoding_when_it_is_impossible_is_refused(k: int, n: int, happy: int) -> None:
    with pytest.raises(FormatError):
        Encoding(k=k, n=n, happy=happy)


def test_put_when_there_is_no_server_says_so() -> None:
    with pytest.raises(NoServersError, match="no server to upload to"):
        ScriptedGrid(0).put(noise(100))


def test_put_when_no_server_answers_says_so() -> None:
    grid = ScriptedGrid()
    for index in range(10):
        grid.script(index, dead_from=0)
    with pytest.raises(NoServersError, match="none of 10 servers could be reached"):
        grid.put(noise(100))


FEWER_THAN_K = (
    "shares could be placed or found on only 2 server(s). We were asked to place shares on at least 7 server(s) "
    "such that any 3 of them have enough shares to recover the file."
)
TOO_FEW = (
    "shares could be placed on only 5 server(s) such that any 3 of them have enough shares to recover the file, "
    "but we were asked to place shares on at least 7 such servers."
)
MESSAGES = [(2, 3, 7, FEWER_THAN_K), (5, 3, 7, TOO_FEW)]


@pytest.mark.parametrize(("writable", "k", "happy", "message"), MESSAGES)
@pytest.mark.parametrize("fault", [{"read_only": True}, {"full": True}, {"dead_from": 2}])
def test_put_when_too_few_servers_take_shares_fails_in_the_known_words(
    writable: int, k: int, happy: int, message: str, fault: dict[str, object]
) -> None:
    grid = ScriptedGrid()
    for index in range(writable, 10):
        grid.script(index, **fault)
    with pytest.raises(NotHappyError) as caught:
        grid.put(noise(5000), encoding=Encoding(k=k, n=10, happy=happy))
    assert str(caught.value).startswith(message)
    assert sum(sum(server.fired.values()) for server in grid.servers[writable:]) >= 10 - writable
    grid.settle()
    assert grid.debris() == []


def test_put_when_shares_are_found_bunched_together_fails_in_the_known_words() -> None:
    grid = ScriptedGrid(4)
    data = noise(5000)
    grid.store(data, holdings={0: range(10), 1: [0], 2: [0], 3: [0]}, segment_size=1200)
    for index in range(4):
        grid.script(index, read_only=True)
    with pytest.raises(NotHappyError, match=r"found on 4 server\(s\), but they are not spread out evenly enough"):
        grid.put(data, encoding=Encoding(k=3, n=10, happy=3, max_segment_size=1200))


def test_put_when_happiness_is_below_k_still_needs_k_distinct_shares() -> None:
    grid = ScriptedGrid(3)
    for index in range(3):
        grid.script(index, dead_from=3 if index else None)
    with pytest.raises(NotHappyError, match="distinct shares could be placed or found, but 3 are needed"):
        grid.put(noise(5000), encoding=Encoding(k=3, n=3, happy=1))
    grid.settle()
    assert all(server.fired["dead"] for server in grid.servers[1:])


@pytest.mark.parametrize("full", [1, 3, 9])
def test_put_when_servers_refuse_though_they_advertise_room_places_shares_elsewhere(full: int) -> None:
    grid = ScriptedGrid()
    for index in range(full):
        grid.script(index, full=True)
    data = noise(5000)
    result = grid.put(data, encoding=Encoding(k=3, n=10, happy=10 - full))
    assert result.pushed == 10
    assert all(grid.servers[index].fired["full"] for index in range(full))
    complete(grid, result.cap, data)


@pytest.mark.each_pair
@pytest.mark.parametrize("size", [5000, 30_000_000])
@pytest.mark.parametrize("call", range(8))
@pytest.mark.parametrize("fault", ["dead_from", "silent_from", "lost"])
def test_put_when_a_server_fails_at_its_nth_call_goes_on_without_it(size: int, call: int, fault: str) -> None:
    grid = ScriptedGrid()
    data = noise(size)
    for victim in (0, 4):
        grid.script(victim, **{fault: frozenset([call]) if fault == "lost" else call})
    result = grid.put(data)
    assert result.happiness >= 8
    assert grid.now < 60
    grid.settle()
    broken = {"s0", "s4"}
    assert [name for name, _ in grid.debris() if name not in broken] == []
    for victim in (0, 4):
        grid.script(victim)
    for share, holders in result.sharemap.items():
        for holder in holders:
            (held,) = grid.servers[int(holder[1:])].shares.values()
            assert share in held
    assert grid.check(result.cap).happiness >= 8
    assert grid.get(result.cap) == data


@pytest.mark.parametrize("method", ["write", "finish"])
@pytest.mark.parametrize("fault", ["dead_from", "silent_from"])
def test_put_when_too_many_servers_fail_while_writing_aborts_the_others(method: str, fault: str) -> None:
    grid = ScriptedGrid()
    for index in range(5):
        grid.script(index, **{fault: 0}, only=frozenset({method}))
    with pytest.raises(NotHappyError, match="shares could be placed on only"):
        grid.put(noise(10_000_000))
    assert grid.now < 300
    grid.settle()
    assert grid.debris() == []
    assert all(server.fired for server in grid.servers[:5])


def test_put_when_closing_fails_on_one_server_does_not_count_it() -> None:
    grid = ScriptedGrid()
    grid.script(3, dead_from=0, only=frozenset({"finish"}))
    data = noise(5000)
    result = grid.put(data)
    assert result.pushed == 9
    assert not any("s3" in holders for holders in result.sharemap.values())
    complete(grid, result.cap, data)


def test_put_when_an_allocation_comes_too_late_aborts_it() -> None:
    grid = ScriptedGrid()
    server = grid.servers[2]
    original = server.allocate

    async def late(*arguments: object) -> object:
        await grid.runtime.clock.sleep(200.0)
        return await original(*arguments)  # type: ignore[arg-type]

    server.allocate = late  # type: ignore[assignment,method-assign]
    data = noise(5000)
    result = grid.put(data)
    assert result.pushed == 10
    assert grid.now < 30
    grid.settle()
    assert server.calls[-1] == "abort"
    complete(grid, result.cap, data)


def test_put_when_a_server_stalls_while_writing_is_left_behind_within_seconds() -> None:
    grid = ScriptedGrid()
    data = noise(40_000_000)
    grid.script(6, silent_from=1, only=frozenset({"write"}))
    result = grid.put(data)
    assert result.pushed == 9
    assert grid.now < 15
    complete(grid, result.cap, data)
    assert grid.servers[6].calls[-1] == "abort" or not grid.servers[6].incoming


def test_put_when_servers_stall_as_they_close_shares_learns_it_although_they_answer_writes_and_probes() -> None:
    grid = ScriptedGrid()
    stalling = (2, 5, 8)
    for index in stalling:
        grid.script(index, silent_from=1, only=frozenset({"finish"}))
    for number in range(2):
        assert grid.put(noise(8_000_000 + number)).pushed == 7
        for index in stalling:
            grid.grid.memory.heard(ServerId(f"s{index}"), grid.now)
    written = [grid.servers[index].calls.count("write") for index in stalling]
    assert grid.put(noise(8_000_002)).pushed == 10
    assert [grid.servers[index].calls.count("write") for index in stalling] == written != [0, 0, 0]


@pytest.mark.parametrize(("delay_s", "most"), [(0.001, 1), (0.05, 2)])
def test_put_when_servers_are_near_sends_each_a_batch_at_a_time_and_when_they_are_distant_two(
    delay_s: float, most: int
) -> None:
    """A near server that has two works on both at once, and this process waits for both."""
    grid = ScriptedGrid()
    for index in range(10):
        grid.script(index, delay_s=delay_s)
    assert grid.put(noise(40_000_000)).pushed == 10
    outstanding, greatest = Counter[ServerId | None](), 0
    for event in grid.events:
        if event.detail.startswith("WriteShares"):
            outstanding[event.server_id] += {"send": 1, "answer": -1}[event.what]
            # The last message, which closes the shares, has only the hashes and joins the one before it.
            if event.count > 2**20:
                greatest = max(greatest, outstanding[event.server_id])
    assert greatest == most and not any(outstanding.values())


def test_put_when_the_caller_cancels_aborts_what_was_allocated() -> None:
    from twisted.internet.defer import CancelledError, Deferred

    from grid.immutable.put import put

    cancelled = 0
    for turns in range(1, 12):
        grid = ScriptedGrid()
        task = Deferred.fromCoroutine(put(MemorySource(noise(30_000_000)), grid.grid))
        outcome: list[object] = []
        task.addCallbacks(outcome.append, lambda failure, outcome=outcome: outcome.append(failure.type))
        for _ in range(turns):
            grid.virtual.clock.task_clock.advance(0.01)
        task.cancel()
        grid.settle()
        cancelled += outcome == [CancelledError]
        assert len(outcome) == 1
        assert grid.debris() == []
    assert cancelled >= 4


def test_put_when_a_server_offers_shares_it_was_not_asked_for_takes_none_of_them() -> None:
    grid = ScriptedGrid()
    for index in range(10):
        grid.script(index, generous=frozenset({(index + 1) % 10, 77}))
    data = noise(5000)
    result = grid.put(data)
    assert all(len(held) == 1 for server in grid.servers for held in server.shares.values())
    assert all(server.fired["generous"] for server in grid.servers)
    complete(grid, result.cap, data)


def test_put_when_a_server_claims_numbers_that_no_share_has_passes_them_over() -> None:
    grid = ScriptedGrid()
    for index in range(5):
        grid.script(index, claims=frozenset({10, 200, 2**40, -3}))
    result = grid.put(noise(5000))
    assert result.pushed == 10
    assert result.found == 0


def test_put_when_some_shares_exist_counts_them_and_pushes_the_others() -> None:
    grid = ScriptedGrid()
    data = noise(5000)
    file = grid.store(data, segment_size=1200, holdings={0: [0, 1], 3: [5], 9: [7, 8, 9]})
    result = grid.put(data, encoding=SMALL)
    assert result.cap == file.cap
    assert result.found == 6
    assert result.happiness >= 9
    assert sorted(result.sharemap) == list(range(10))
    complete(grid, result.cap, data)


def test_put_when_it_runs_tells_the_observer_of_phases_and_progress() -> None:
    grid = ScriptedGrid()
    grid.put(noise(30_000_000))
    phases = [event.detail for event in grid.events if event.what == "phase"]
    assert phases == ["hashing", "placing", "pushing"]
    progress = [event for event in grid.events if event.what == "progress" and event.detail != "hashing"]
    assert [event.count for event in progress] == sorted(event.count for event in progress)
    assert progress[-1].count <= progress[-1].total == 30_000_000
    assert all(isinstance(event, Event) for event in grid.events)
