"""Servers that are silent on every kind of message: the first operation that meets them may pay, the next ones know.

Virtual time; the bounds are promises, each over what the same operation takes without a fault.
"""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import pytest
from twisted.internet.defer import Deferred

from grid.caps import KnownCap
from grid.engine.grid import Encoding
from grid.engine.lateness import COMPARED_SILENCE_FLOOR_S
from grid.mutable.node import MutableFile
from grid.mutable.read.map_wait import KNOWN_FLOOR_S
from grid.mutable.share.geometry import FormatName
from grid.ports import Buffer, Range, ShareNumber, StorageIndex
from grid.sinks import BytesSink
from tests.support.mutable_grid import MutableGrid
from tests.support.scripted_slots import SlotScript, SlotServer

FORMATS: list[FormatName] = ["sdmf", "mdmf"]
SMALL = b"a listing " * 100
LARGE = random.Random(3).randbytes(2_000_000)
REPETITIONS = 4
FIELDS_BYTES = 2500
"""A message of one share that asks for no more than this asks for fields or hashes."""

STALLS: Mapping[str, Callable[[str, bool, int], bool]] = {
    "all": lambda method, whole, size: True,
    "fronts": lambda method, whole, size: method == "read_slot" and whole,
    "fields": lambda method, whole, size: method == "read_slot" and not whole and size <= FIELDS_BYTES,
    "blocks": lambda method, whole, size: method == "read_slot" and not whole and size > FIELDS_BYTES,
    "advice": lambda method, whole, size: method == "advise_corrupt",
}
"""What a server never answers: (method, whether all shares are asked for, bytes asked for of each)."""


class StallingServer(SlotServer):
    """Keeps silent on one kind of message."""

    stall = "none"

    async def read_slot(
        self, storage_index: StorageIndex, share_numbers: frozenset[ShareNumber], ranges: Sequence[Range]
    ) -> Mapping[ShareNumber, Sequence[Buffer]]:
        await self._stall("read_slot", not share_numbers, sum(size for _, size in ranges))
        return await super().read_slot(storage_index, share_numbers, ranges)

    async def test_and_write(self, *arguments: Any) -> Any:
        await self._stall("test_and_write", False, 0)
        return await super().test_and_write(*arguments)

    async def advise_corrupt(self, *arguments: Any) -> None:
        await self._stall("advise_corrupt", False, 0)
        await super().advise_corrupt(*arguments)

    async def _stall(self, method: str, whole: bool, size: int) -> None:
        if self.stall in STALLS and STALLS[self.stall](method, whole, size):
            self.fired[self.stall] += 1
            await Deferred()


async def read_all(file: MutableFile) -> None:
    assert await file.read_all() in {SMALL, LARGE}


async def read_range(file: MutableFile) -> None:
    sink = BytesSink()
    await file.read(sink, 700_000, 5000)
    assert sink.data == LARGE[700_000:705_000]


async def check(file: MutableFile) -> None:
    assert (await file.check()).recoverable


async def verify(file: MutableFile) -> None:
    result = await file.check(verify=True)
    assert result.recoverable and not result.corrupt


async def repair(file: MutableFile) -> None:
    result = await file.repair()
    assert result.successful or not result.attempted


Operation = Callable[[MutableFile], Awaitable[None]]

ROWS: Mapping[str, tuple[Operation, bytes, Callable[[float, int], float]]] = {
    "list": (read_all, SMALL, lambda t, silent: t + (0.1 if silent == 1 else 0.2)),
    "range": (read_range, LARGE, lambda t, silent: t + (0.1 if silent == 1 else 0.2)),
    "whole": (read_all, LARGE, lambda t, silent: 1.5 * t + 0.2),
    "check": (check, SMALL, lambda t, silent: t + 1.0),
    "check large": (check, LARGE, lambda t, silent: t + 1.0),
    "verify": (verify, LARGE, lambda t, silent: 1.5 * t + 2.0),
    "repair": (repair, LARGE, lambda t, silent: 1.5 * t + 2.0),
}
"""What is done, with which contents, and how long it may take: (seconds without a fault, silent servers)."""


def stalling_grid(contents: bytes, format: FormatName, shape: Encoding | None = None) -> tuple[MutableGrid, KnownCap]:
    grid = MutableGrid(10, shape)
    grid.servers = [StallingServer(f"server{index}", grid.runtime.clock) for index in range(10)]
    return grid, grid.create(contents, format)


def seconds(grid: MutableGrid, cap: KnownCap, operation: Operation) -> float:
    """How long it takes; each time with a newly opened file, as in a gateway when nobody has the file open."""
    started = grid.runtime.clock.now()
    file = grid.open(cap, process=1)

    async def body() -> None:
        await operation(file)

    grid.run(body())
    return grid.runtime.clock.now() - started


@pytest.mark.each_pair
@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("stall", ["all", "fronts", "fields", "blocks"])
@pytest.mark.parametrize("silent", [1, 3])
@pytest.mark.parametrize("row", ROWS)
def test_operation_when_servers_keep_silent_then_takes_hardly_longer_from_the_second_time_on(
    row: str, silent: int, stall: str, format: FormatName
) -> None:
    operation, contents, bound = ROWS[row]
    grid, cap = stalling_grid(contents, format)
    reading = cap if row == "repair" else cap.read_cap()
    quiet_s = min(seconds(grid, reading, operation) for _ in range(2))
    for server in grid.servers[2 : 2 + silent]:
        assert isinstance(server, StallingServer)
        server.stall = stall
    times = [seconds(grid, reading, operation) for _ in range(REPETITIONS)]
    if stall in {"all", "fronts"} or (stall, row) == ("blocks", "verify"):
        assert sum(server.fired[stall] for server in grid.servers) >= silent
    assert max(times[1:]) <= bound(quiet_s, silent), f"{times}, {quiet_s} s without a fault"


@pytest.mark.parametrize("format", FORMATS)
def test_read_of_one_of_ten_when_one_server_is_silent_on_fronts_and_one_on_blocks_then_takes_two_seconds_at_most(
    format: FormatName,
) -> None:
    """Only one server is asked for blocks: its known speed, not other servers' answers, shows that it is late."""
    grid, cap = stalling_grid(LARGE, format, Encoding(k=1, n=10, happy=4))
    for server in grid.servers:
        grid.grid(1).memory.latency(server.identity.server_id).learn(100, 100, 0.01)
        grid.grid(1).memory.latency(server.identity.server_id).learn(1_000_000, 1_000_000, 0.05)
    [(holder, _)] = grid.shares(cap)[0]
    other = next(server for server in grid.servers if server is not holder)
    assert isinstance(holder, StallingServer) and isinstance(other, StallingServer)
    holder.stall, other.stall = "blocks", "fronts"
    assert seconds(grid, cap.read_cap(), read_range) <= KNOWN_FLOOR_S + COMPARED_SILENCE_FLOOR_S + 0.1
    assert holder.fired["blocks"] and other.fired["fronts"]


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("row", ["list", "range", "check", "verify"])
def test_operation_when_seven_servers_are_gone_then_takes_hardly_longer(row: str, format: FormatName) -> None:
    operation, contents, _ = ROWS[row]
    grid, cap = stalling_grid(contents, format)
    quiet_s = seconds(grid, cap.read_cap(), operation)
    for server in grid.servers[:7]:
        server.script = SlotScript(dead_from=0)
        server.calls.clear()
    for _ in range(3):
        assert seconds(grid, cap.read_cap(), operation) <= quiet_s + 0.3


@pytest.mark.parametrize("format", FORMATS)
def test_read_when_a_server_of_a_bad_share_ignores_reports_then_only_the_first_waits_for_it(format: FormatName) -> None:
    grid, cap = stalling_grid(SMALL, format)
    quiet_s = seconds(grid, cap.read_cap(), read_all)
    for server in grid.servers:
        assert isinstance(server, StallingServer)
        server.stall = "advice"
    for number in range(3):
        grid.share(cap, number)[1] ^= 1
    times = [seconds(grid, cap.read_cap(), read_all) for _ in range(REPETITIONS)]
    assert max(times[1:]) <= quiet_s + 0.1
    assert sum(server.fired["advice"] for server in grid.servers) >= 3 * REPETITIONS


@pytest.mark.parametrize("silent", [1, 3])
def test_check_when_servers_keep_silent_then_names_them(silent: int) -> None:
    grid, cap = stalling_grid(SMALL, "sdmf")
    names = set()
    for server in grid.servers[:silent]:
        assert isinstance(server, StallingServer)
        server.stall = "all"
        names.add(server.identity.server_id)
    for _ in range(2):
        result = grid.run(grid.open(cap.read_cap(), process=1).check())
        assert result.found.silent == names
        results = result.to_json()["results"]
        assert isinstance(results, dict) and results["servers-silent"] == sorted(names)
        assert f"{silent} server" in result.summary and "did not answer" in result.summary
    for server in grid.servers[:silent]:
        assert isinstance(server, StallingServer)
        server.stall = "none"
    result = grid.run(grid.open(cap.read_cap(), process=1).check())
    results = result.to_json()["results"]
    assert result.summary == "Healthy" and isinstance(results, dict) and "servers-silent" not in results


@pytest.mark.parametrize("format", FORMATS)
def test_read_when_every_server_is_slow_then_hardly_anything_is_fetched_twice(format: FormatName) -> None:
    """All servers send their blocks after 2.5 s: that is more than late, but no reason to request all of them again."""
    grid, cap = stalling_grid(LARGE, format)

    async def slow(server: SlotServer, read: Any, *arguments: Any) -> Any:
        if arguments[1]:
            await grid.runtime.clock.sleep(2.5)
        return await read(*arguments)

    for server in grid.servers:
        read = server.read_slot
        server.read_slot = lambda *a, s=server, r=read: slow(s, r, *a)  # type: ignore[method-assign]
    grid.events.clear()
    assert grid.run(grid.open(cap.read_cap(), process=1).read_all()) == LARGE
    asked = sum(event.count for event in grid.events if (event.what, event.detail) == ("send", "ReadBlocks"))
    # An SDMF file has one segment: nothing of it can be delivered before that has come.
    assert asked < (1.6 if format == "mdmf" else 2.1) * len(LARGE)
