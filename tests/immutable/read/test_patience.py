"""The cost of silent servers for operations on immutable files: a little for the first that meets them, hardly anything afterward.

All times are virtual; each server answers after 10 ms unless it is silent.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from random import Random

import pytest

from grid.engine.grid import Encoding
from grid.ports import ServerId
from tests.support.scripted_grid import ScriptedGrid, noise

SMALL, LARGE = 3_000, 8_000_000

Operation = Callable[[ScriptedGrid, int], object]
"""Takes the grid and how often it was done before."""


def put(size: int) -> Operation:
    return lambda grid, count: grid.put(bytes([count]) + noise(size))


def get(grid: ScriptedGrid, count: int) -> object:
    assert grid.get(grid.store(noise(LARGE)).cap) == noise(LARGE)
    return None


def read_range(grid: ScriptedGrid, count: int) -> object:
    assert grid.get(grid.store(noise(LARGE)).cap, 5_000_000, 1000) == noise(LARGE)[5_000_000:5_001_000]
    return None


def check(grid: ScriptedGrid, count: int) -> object:
    return grid.check(grid.store(noise(LARGE)).cap, verify=False)


def verify(grid: ScriptedGrid, count: int) -> object:
    return grid.check(grid.store(noise(LARGE)).cap)


def repair(grid: ScriptedGrid, count: int) -> object:
    file = grid.store(noise(LARGE, count), holdings={index: [index] for index in range(6)})
    return grid.repair(file.cap)


OPERATIONS: dict[str, Operation] = {
    "put of a small file": put(SMALL),
    "put of a large file": put(LARGE),
    "get": get,
    "range": read_range,
    "check": check,
    "verify": verify,
    "repair": repair,
}

KINDS = {
    "put of a small file": ["get_version", "find_shares", "allocate", "store_shares", "*"],
    "put of a large file": ["get_version", "find_shares", "allocate", "write", "finish", "*"],
    "get": ["find_shares", "read_shares", "*"],
    "range": ["find_shares", "read_shares", "*"],
    "check": ["find_shares", "*"],
    "verify": ["find_shares", "read_shares", "*"],
    "repair": ["get_version", "find_shares", "read_shares", "allocate", "write", "finish", "*"],
}

LATER = {"put of a small file": 0.2, "put of a large file": 0.2, "get": 0.2, "range": 0.1, "check": 1.0}
"""Seconds that silent servers may add from the second time on; twice as many where three of ten are silent."""

LONGER = 2.0
"""The same of a verify and a repair, however many are silent."""

FIRST = {1: 1.0, 3: 2.0}
FIRST_READ = {1: 0.2, 3: 0.4}
"""Seconds that a number of silent servers may add to the first operation that meets them, and to the first read."""

CASES = [(name, kind, count) for name, kinds in KINDS.items() for kind in kinds for count in FIRST]


def grid_of(name: str) -> ScriptedGrid:
    grid = ScriptedGrid(10)
    for index in range(10):
        grid.script(index, known=name == "put of a small file")
    return grid


def time_of(grid: ScriptedGrid, name: str, count: int) -> float:
    start = grid.now
    OPERATIONS[name](grid, count)
    return grid.now - start


@cache
def healthy_time(name: str) -> float:
    """The longest of five operations where no server is silent; the same at every run, as time is virtual."""
    return max(time_of(grid_of(name), name, count) for count in range(5))


@pytest.mark.each_value
@pytest.mark.parametrize("first_silent", [0, 4, 7])
@pytest.mark.parametrize(("name", "kind", "silent_count"), CASES)
def test_operation_when_servers_are_silent_costs_little_first_and_less_later(
    name: str, kind: str, silent_count: int, first_silent: int
) -> None:
    healthy = healthy_time(name)
    grid = grid_of(name)
    silent = [(first_silent + step) % 10 for step in range(silent_count)]
    for index in silent:
        only = frozenset() if kind == "*" else frozenset([kind])
        grid.script(index, known=name == "put of a small file", silent_from=0, only=only)
    times = [time_of(grid, name, count) - healthy for count in range(5)]
    first = FIRST_READ if name in {"get", "range"} else FIRST
    assert times[0] <= first[silent_count] + (LONGER - 1 if name in {"verify", "repair"} else 0), times
    later = (
        LONGER if name in {"verify", "repair"} else LATER[name] * (2 if silent_count == 3 and name != "check" else 1)
    )
    # Three silent servers may be met by three operations, one by each.
    assert max(times[silent_count:]) <= later + 1e-6, times


def test_put_when_a_silent_server_answers_again_gives_it_shares_again() -> None:
    grid = grid_of("put of a large file")
    grid.script(4, silent_from=0)
    grid.put(noise(LARGE), encoding=Encoding(happy=7))
    grid.put(b"1" + noise(LARGE))
    assert not grid.servers[4].shares
    grid.script(4)
    grid.grid.memory.heard(grid.servers[4].identity.server_id, grid.now)  # As the answer to a probe does.
    grid.put(b"2" + noise(LARGE))
    grid.put(b"3" + noise(LARGE))
    assert grid.servers[4].shares


def test_put_when_a_server_in_doubt_answers_meanwhile_gives_it_shares() -> None:
    grid = grid_of("put of a large file")
    memory = grid.grid.memory
    for index in (1, 4, 7):
        memory.failed(grid.servers[index].identity.server_id, "Allocate", grid.now)
    for index in (1, 4):
        server_id = grid.servers[index].identity.server_id
        grid.virtual.clock.call_later(0.005, partial(memory.heard, server_id, 0.005))
    began = grid.now
    grid.put(noise(LARGE))
    assert {name for name, server in enumerate(grid.servers) if server.shares} == set(range(10)) - {7}
    assert grid.now - began < 0.2


@pytest.mark.parametrize("kind", ["write", "finish"])
def test_put_when_servers_are_lost_while_they_are_sent_shares_turns_to_those_in_doubt(kind: str) -> None:
    grid = grid_of("put of a large file")
    for index in (1, 4, 7):
        grid.grid.memory.failed(grid.servers[index].identity.server_id, "Allocate", grid.now)
    grid.script(2, dead_from=0, only=frozenset([kind]))
    result = grid.put(noise(LARGE))
    assert result.happiness >= 7 and grid.get(result.cap) == noise(LARGE)
    grid.settle()
    assert not grid.debris()


def test_check_when_servers_are_silent_names_them() -> None:
    grid = grid_of("check")
    cap = grid.store(noise(SMALL)).cap
    assert grid.check(cap).silent == [] and "servers-silent" not in str(grid.check(cap).to_json())
    grid.script(2, silent_from=0)
    grid.script(5, dead_from=0)
    result = grid.check(cap)
    assert result.silent == ["s2"]
    assert result.to_json()["results"]["servers-silent"] == ["s2"]  # type: ignore[index]


@pytest.mark.parametrize("leases", [False, True])
def test_check_when_a_server_in_doubt_is_silent_waits_for_it_no_longer_because_others_were_slow(leases: bool) -> None:
    grid = grid_of("check")
    cap = grid.store(noise(SMALL)).cap
    for index in range(10):
        grid.script(index, delay_s=0.4)
    grid.script(2, silent_from=0)
    grid.grid.memory.silent(ServerId("s2"), "FindShares", grid.now)
    began = grid.now
    assert grid.check(cap, leases=leases, verify=False).silent == ["s2"]
    assert grid.now - began < 1.0


def test_check_when_a_server_in_doubt_answers_as_late_as_the_others_counts_it() -> None:
    grid = grid_of("check")
    cap = grid.store(noise(SMALL)).cap
    for index in range(10):
        grid.script(index, delay_s=2.05 if index == 2 else 2.0)
    grid.grid.memory.silent(ServerId("s2"), "FindShares", grid.now)
    assert grid.check(cap, verify=False).silent == []


def test_open_file_when_another_operation_found_a_server_silent_reads_from_the_others() -> None:
    grid = ScriptedGrid()
    file = grid.open(grid.store(noise(LARGE)).cap)
    _, first = grid.read(file, 0, 1_500_000)
    used = [server for server in grid.servers if any(call == "read_shares" for call in server.calls)] or grid.servers
    silent = used[0]
    grid.script(grid.servers.index(silent), silent_from=0)
    grid.grid.memory.silent(silent.identity.server_id, "ReadShares", grid.now)
    start = grid.now
    data, _ = grid.read(file, 3_000_000, 3_000_000)
    assert data == noise(LARGE)[3_000_000:6_000_000] and first.size == 1_500_000
    assert grid.now - start < 0.2


LINE_RATE = 12.5e6
"""Bytes per second of each server's line."""

FAULTS: dict[str, dict[str, object]] = {
    "silent": {"silent_from": 0},
    "silent after its first answer": {"silent_from": 1},
    "at one percent": {"rate": LINE_RATE / 100},
}


def time_of_get(size: int, delay_s: float, *, known: bool, fault: str = "", place: int = 0) -> float:
    """Seconds that a get takes over lines. known: it is known how far away servers are. place: of the bad one, in the file's order."""
    grid = ScriptedGrid()
    for index in range(10):
        grid.script(index, delay_s=delay_s, rate=LINE_RATE)
    for seed in range(4 if known else 0):
        grid.get(grid.store(noise(1000, seed)).cap)
    cap = grid.store(noise(size)).cap
    if fault:
        bad = int(grid.open(cap)._servers[place].identity.server_id[1:])
        grid.script(bad, **{"delay_s": delay_s, "rate": LINE_RATE, **FAULTS[fault]})
    began = grid.now
    raw, result = grid.read(grid.open(cap))
    assert raw == noise(size)
    assert result.hedged_bytes <= size // 4
    return grid.now - began


@cache
def healthy_get(size: int, delay_s: float, *, known: bool) -> float:
    return time_of_get(size, delay_s, known=known)


@pytest.mark.each_pair
@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize("delay_s", [0.001, 0.03, 0.1])
@pytest.mark.parametrize("size", [1_000_000, 10_000_000, 50_000_000])
@pytest.mark.parametrize("place", [0, 1, 3])
@pytest.mark.parametrize("fault", FAULTS)
def test_get_over_lines_when_a_server_is_silent_or_slow_takes_little_longer(
    known: bool, delay_s: float, size: int, place: int, fault: str
) -> None:
    healthy = healthy_get(size, delay_s, known=known)
    # A small file is one round trip, and it takes more than that to notice that an answer is missing.
    most = 2 * healthy + 0.2 if size < 2 * 2**20 else 1.7 * healthy
    assert time_of_get(size, delay_s, known=known, fault=fault, place=place) <= most


def test_get_over_lines_when_a_server_stays_silent_meets_it_twice() -> None:
    grid = ScriptedGrid()
    for index in range(10):
        grid.script(index, delay_s=0.1, rate=LINE_RATE)
    cap = grid.store(noise(1_000_000)).cap
    server = grid.open(cap)._servers[0]
    grid.script(int(server.identity.server_id[1:]), silent_from=0)
    times = []
    for _ in range(3):
        began = grid.now
        grid.get(cap)
        times.append(grid.now - began)
    healthy = healthy_get(1_000_000, 0.1, known=False)
    assert times[1] > times[2] == pytest.approx(healthy), "one answer that was not waited for may be an accident"


def test_get_over_lines_when_answers_vary_requests_little_twice() -> None:
    """Each answer takes up to twice as long as usual: no server is bad."""
    for seed in range(5):
        grid = ScriptedGrid()
        random = Random(seed)
        for index in range(10):
            grid.script(index, delay_s=0.1, rate=LINE_RATE)
            grid.servers[index].jitter = partial(random.uniform, 1.0, 2.0)
        data = noise(50_000_000)
        raw, _ = grid.read(grid.open(grid.store(data).cap))
        assert raw == data
        assert sum(server.read_bytes for server in grid.servers) <= 1.2 * len(data)


@pytest.mark.parametrize(("reads", "used"), [(1, 1), (2, 0)])
def test_put_when_a_distant_server_was_late_for_one_read_uses_it_and_after_two_does_not(reads: int, used: int) -> None:
    """A packet that is lost and sent again is no silence; a server that misses two reads is in doubt."""
    grid = ScriptedGrid()
    for index in range(10):
        grid.script(index, delay_s=0.04 if index else 0.25, known=True)
    for number in range(reads):
        file = grid.store(noise(1_000_000 + number))
        grid.read(grid.open(file.cap), 0, 1_000_000)
        assert len(grid.servers[0].calls) == number + 1
    before = len(grid.servers[0].shares)
    grid.script(0, delay_s=0.04, known=True)
    assert grid.put(noise(900_000)).pushed == 10
    assert len(grid.servers[0].shares) - before == used
