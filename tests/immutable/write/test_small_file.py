"""Small files stored whole: one message per server in the usual case, the normal way if anything is unusual."""

from __future__ import annotations

from collections import Counter

import pytest

from grid.caps import ChkCap
from grid.engine.grid import Encoding
from grid.errors import GridError, NotHappyError
from grid.immutable.put import PutResult
from grid.immutable.share.geometry import Geometry
from grid.immutable.write.small_file import ASK_FIRST_COUNT, encode_whole, place_whole, whole_share_size
from grid.limits import STORE_CALL_BYTES
from tests.support.scripted_grid import MemorySource, ScriptedGrid, encoded, noise

DATA = noise(1000)
USUAL = {"get_version", "find_shares", "allocate", "write", "close", "abort"}


def known_grid(count: int = 10, **faults: object) -> ScriptedGrid:
    """A grid whose servers are all known to have room."""
    grid = ScriptedGrid(count)
    for index in range(count):
        grid.script(index, known=True, **faults)
    return grid


def calls(grid: ScriptedGrid) -> Counter[str]:
    return Counter(call for server in grid.servers for call in server.calls)


def complete(grid: ScriptedGrid, result: PutResult, data: bytes, happy: int = 10) -> None:
    """The file is whole, every share is the one that belongs there, and nothing is left half written."""
    assert isinstance(result.cap, ChkCap)
    file = encoded(data, 3, 10, 2**20)
    assert result.cap == file.cap
    assert result.happiness >= happy
    for share, holders in result.sharemap.items():
        for server in grid.servers:
            if server.identity.server_id in holders:
                assert server.shares[file.cap.storage_index][share] == file.shares[share]
    grid.settle()
    assert grid.debris() == []
    assert grid.get(result.cap) == data


@pytest.mark.parametrize("size", [56, 1000, 4096, 4097, 100_000])
def test_put_when_servers_are_known_and_hold_nothing_takes_one_message_each(size: int) -> None:
    grid = known_grid()
    result = grid.put(noise(size))
    assert calls(grid) == {"store_shares": 10}
    assert (result.pushed, result.found, result.happiness) == (10, 0, 10)
    complete(grid, result, noise(size))


def test_put_when_shares_are_large_asks_before_it_sends_them() -> None:
    grid = known_grid()
    result = grid.put(noise(1_000_000))
    assert calls(grid) == {"find_shares": ASK_FIRST_COUNT, "store_shares": 10}
    complete(grid, result, noise(1_000_000))


@pytest.mark.parametrize("count", [10, 25])
def test_put_when_servers_ask_for_room_anyway_asks_no_other_question(count: int) -> None:
    grid = known_grid(count, by_steps=True)
    result = grid.put(noise(1_000_000))
    assert calls(grid) == {"store_shares": 10}
    complete(grid, result, noise(1_000_000))


def test_put_when_one_server_does_not_ask_for_room_asks_before_it_sends_shares() -> None:
    grid = known_grid(by_steps=True)
    grid.script(4, known=True)
    grid.put(noise(1_000_000))
    assert calls(grid) == {"find_shares": ASK_FIRST_COUNT, "store_shares": 10}


def test_put_when_the_key_is_random_does_not_ask_for_the_file() -> None:
    grid = known_grid()
    result = grid.put(noise(1_000_000), convergence=None)
    assert calls(grid) == {"store_shares": 10}
    assert grid.get(result.cap) == noise(1_000_000)


@pytest.mark.parametrize("by_steps", [False, True])
def test_put_when_large_shares_are_held_sends_none(by_steps: bool) -> None:
    grid = known_grid(by_steps=by_steps)
    grid.put(noise(1_000_000))
    again = grid.put(noise(1_000_000))
    assert calls(grid)["store_shares"] == (20 if by_steps else 10)
    assert calls(grid)["write"] == 0
    assert (again.pushed, again.found) == (0, 10)
    complete(grid, again, noise(1_000_000))


def test_put_when_repeated_finds_every_share_with_one_message_each() -> None:
    grid = known_grid()
    grid.put(DATA)
    again = grid.put(DATA)
    assert calls(grid) == {"store_shares": 20}
    assert (again.pushed, again.found, again.happiness) == (0, 10, 10)
    assert all(len(server.leases) == 2 for server in grid.servers)
    complete(grid, again, DATA)


def test_put_when_the_key_is_random_reads_the_source_once() -> None:
    grid, source = known_grid(), MemorySource(DATA)
    grid.put(source, convergence=None)
    assert source.read_count == 1
    assert calls(grid) == {"store_shares": 10}


@pytest.mark.parametrize("count", [1, 3, 7, 25])
def test_put_when_servers_are_few_or_many_spreads_the_shares(count: int) -> None:
    grid = known_grid(count)
    result = grid.put(DATA, encoding=Encoding(happy=min(count, 10)))
    assert set(calls(grid)) == {"store_shares"}
    loads = sorted(len(shares) for server in grid.servers for shares in server.shares.values())
    assert sum(loads) == 10
    assert loads[-1] - loads[0] <= 1
    complete(grid, result, DATA, happy=min(count, 10))


def test_put_when_a_server_is_not_known_yet_goes_the_usual_way() -> None:
    grid = known_grid()
    grid.script(4)
    result = grid.put(DATA)
    assert calls(grid)["store_shares"] == 0
    complete(grid, result, DATA)


def test_put_when_more_servers_than_shares_are_known_needs_not_all() -> None:
    grid = known_grid(15)
    for index in range(5):
        grid.script(index, dead_from=0)
    result = grid.put(DATA)
    assert calls(grid) == {"store_shares": 10}
    complete(grid, result, DATA)


@pytest.mark.parametrize(
    "fault",
    [
        {"full": True},
        {"dead_from": 0},
        {"dead_from": 0, "only": frozenset({"store_shares"})},
        {"silent_from": 0},
        {"silent_from": 0, "only": frozenset({"store_shares"})},
        {"broken": frozenset({0})},
    ],
    ids=["full", "dead", "dead-to-stores", "silent", "silent-to-stores", "fails-once"],
)
@pytest.mark.parametrize("size", [1000, 1_000_000])
def test_put_when_a_server_does_not_store_places_its_share_elsewhere(size: int, fault: dict[str, object]) -> None:
    grid = known_grid()
    script = grid.script(3, known=True, **fault)
    result = grid.put(noise(size))
    assert grid.servers[3].fired, script
    assert len(result.sharemap) == 10
    assert result.pushed == 10
    complete(grid, result, noise(size), happy=9)


def test_put_when_some_shares_are_held_elsewhere_uses_them() -> None:
    grid = known_grid()
    file = grid.store(DATA, holdings={index: [9 - index] for index in range(5)})
    result = grid.put(DATA)
    assert result.cap == file.cap
    assert len(result.sharemap) == 10
    assert result.pushed + result.found >= 10
    complete(grid, result, DATA)


def test_put_when_a_full_grid_takes_too_little_says_so() -> None:
    grid = known_grid()
    for index in range(5):
        grid.script(index, known=True, full=True)
    with pytest.raises(NotHappyError):
        grid.put(DATA)
    for server in grid.servers:
        server.script.full = False
    complete(grid, grid.put(DATA), DATA)


@pytest.mark.parametrize("left", [0, 999])
def test_put_when_the_source_shrinks_stores_nothing(left: int) -> None:
    grid = known_grid()
    with pytest.raises(GridError, match="became shorter"):
        grid.put(MemorySource(DATA, left=left))
    assert not any(server.shares for server in grid.servers)


@pytest.mark.parametrize("size", [56, 1000, 1_000_000, 2_000_000])
def test_encode_whole_when_compared_with_the_batched_encoder_makes_the_same_shares(size: int) -> None:
    geometry = Geometry.of_file(size, 3, 10, 2**20)
    whole = encode_whole(noise(size), geometry, None, b"convergence")
    expected = encoded(noise(size), 3, 10, 2**20)
    assert whole.cap == expected.cap
    assert [b"".join(pieces) for pieces in whole.shares] == list(expected.shares)
    assert whole_share_size(geometry) == whole.share_size


def test_whole_share_size_when_the_shares_fit_no_message_is_none() -> None:
    assert whole_share_size(Geometry.of_file(STORE_CALL_BYTES, 3, 10)) is None
    assert whole_share_size(Geometry.of_file(1000, 100, 256)) is not None


def test_place_whole_when_no_server_has_room_is_none() -> None:
    assert place_whole(known_grid(10, read_only=True).servers, 10, 1) is None
    assert place_whole([], 10, 1) is None
