"""Servers that lie when they are written to: what they cannot prove decides nothing, and the write is done on the others."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any

import pytest

from grid.mutable import publish, streamplan, update
from grid.mutable.geometry import FormatName
from grid.mutable.keys import WriteCap
from grid.mutable.layout import parse_header
from grid.ports import Buffer, Clock, Range, ServerId, ShareNumber, SlotAnswer, SlotSecrets, StorageIndex, TestWrite
from tests.support.mutable_grid import MutableGrid, Shape
from tests.support.scripted_slots import SlotServer

FORMATS: list[FormatName] = ["sdmf", "mdmf"]
SEGMENT = 131073
BEGINNING = random.Random(1).randbytes(2 * SEGMENT + 77)

Fronts = dict[ShareNumber, bytes]
Lie = Callable[["LyingServer", Sequence[int]], tuple[bool, Fronts]]
"""(the server, the numbers it was to write) -> whether it says that the tests held, and what it shows of which numbers."""


class LyingServer(SlotServer):
    """Keeps nothing of what it is told to write, and says something else.

    shares: what it has shown once, and shows when it is asked again. remembered: honest shares of an earlier moment.
    """

    def __init__(self, name: str, clock: Clock) -> None:
        super().__init__(name, clock)
        self.lie: Lie | None = None
        self.shown: dict[int, bytes] = {}
        self.remembered: dict[int, bytes] = {}
        self.lies = 0

    async def test_and_write(
        self,
        storage_index: StorageIndex,
        secrets: SlotSecrets,
        writes: Mapping[ShareNumber, TestWrite],
        ranges: Sequence[Range] = (),
    ) -> SlotAnswer:
        if self.lie is None:
            return await super().test_and_write(storage_index, secrets, writes, ranges)
        await self._enter("test_and_write")
        self.lies += 1
        passed, fronts = self.lie(self, sorted(writes))
        data = {number: [front[offset : offset + size] for offset, size in ranges] for number, front in fronts.items()}
        return SlotAnswer(passed=passed, data=data)

    async def read_slot(
        self, storage_index: StorageIndex, share_numbers: frozenset[ShareNumber], ranges: Sequence[Range]
    ) -> Mapping[ShareNumber, Sequence[Buffer]]:
        if self.lie is None or not self.shown or not share_numbers:
            return await super().read_slot(storage_index, share_numbers, ranges)
        await self._enter("read_slot")
        return {
            number: [self.shown[number][offset : offset + size] for offset, size in ranges]
            for number in share_numbers
            if number in self.shown
        }


def deny(front: Callable[[LyingServer, int], bytes], *, everywhere: bool = False, passed: bool = False) -> Lie:
    """Show that front of every number that was to be written, or of ten numbers."""

    def lie(server: LyingServer, numbers: Sequence[int]) -> tuple[bool, Fronts]:
        shown = range(10) if everywhere else numbers
        return passed, {ShareNumber(number): front(server, number) for number in shown}

    return lie


def noise(server: LyingServer, number: int) -> bytes:
    return random.Random(f"{server.identity.server_id}{number}{server.lies}").randbytes(75)


def high(server: LyingServer, number: int) -> bytes:
    return struct.pack(">BQ", 0, 2**63 + 7) + noise(server, number)[:66]


def highest(server: LyingServer, number: int) -> bytes:
    return struct.pack(">BQ", 1, 2**64 - 1) + noise(server, number)[:66]


def later(server: LyingServer, number: int) -> bytes:
    """An honest share but for its sequence number, which nobody has signed."""
    share = bytearray(server.remembered.get(number) or next(iter(server.remembered.values()), bytes(75)))
    share[8] += 9
    server.shown[number] = bytes(share)
    return bytes(share[:75])


def old(server: LyingServer, number: int) -> bytes:
    share = server.remembered.get(number) or next(iter(server.remembered.values()), b"")
    server.shown[number] = share
    return share[:75]


LIES: dict[str, Lie] = {
    "unknown version": deny(lambda server, number: b"\x07" + noise(server, number)[:74]),
    "random": deny(noise),
    "one byte": deny(lambda server, number: b"\x00"),
    "nothing": deny(lambda server, number: b""),
    "unfinished": deny(lambda server, number: b"\xff" + noise(server, number)[:74]),
    "seqnum of 2^63": deny(high),
    "largest seqnum": deny(highest),
    "later seqnum": deny(later),
    "old version": deny(old),
    "no shares at all": lambda server, numbers: (False, {}),
    "random under ten numbers": deny(noise, everywhere=True),
    "later seqnum under ten numbers": deny(later, everywhere=True),
    "passed, random under ten numbers": deny(noise, everywhere=True, passed=True),
    "passed, seqnum of 2^63 under ten numbers": deny(high, everywhere=True, passed=True),
    "passed, later seqnum under ten numbers": deny(later, everywhere=True, passed=True),
    "passed, old version under ten numbers": deny(old, everywhere=True, passed=True),
    "passed, one byte": deny(lambda server, number: b"\x01", everywhere=True, passed=True),
}

UNNOTICED = {"passed, random under ten numbers", "passed, old version under ten numbers", "passed, one byte"}
"""Lies on which nothing hangs: the share is not stored, as a server can always do, and what is shown is no newer version."""


class LyingGrid(MutableGrid):
    """Ten servers; the first `count` can lie."""

    def __init__(self, count: int, shape: Shape | None = None) -> None:
        super().__init__(10, shape)
        self.liars = [LyingServer(f"server{index}", self.runtime.clock) for index in range(count)]
        self.servers[:count] = self.liars

    def remember(self, cap: WriteCap) -> None:
        """Have the liars keep their shares as they are."""
        assert cap.storage_index is not None
        for server in self.liars:
            server.remembered = {n: bytes(data) for n, data in server.slots.get(cap.storage_index, {}).items()}

    def begin_to_lie(self, lie: Lie) -> None:
        for server in self.liars:
            server.lie = lie

    def holders(self, cap: WriteCap) -> set[ServerId]:
        """The honest servers with the newest version."""
        newest = max(parse_header(data)[0].order for held in self.shares(cap).values() for _, data in held)
        return {
            server.identity.server_id
            for held in self.shares(cap).values()
            for server, data in held
            if parse_header(data)[0].order == newest
        }


def started(count: int, format: FormatName, lie: str) -> tuple[LyingGrid, WriteCap]:
    """A grid with a file of two versions, of which the liars remember the first one."""
    grid = LyingGrid(count)
    cap = grid.create(b"before", format)
    grid.remember(cap)
    grid.run(grid.open(cap).overwrite(BEGINNING))
    grid.begin_to_lie(LIES[lie])
    return grid, cap


def require_done(grid: LyingGrid, cap: WriteCap, lie: str, contents: bytes, begun: float) -> None:
    """The write is on all honest servers, what is read is right, and the liars were told."""
    assert grid.runtime.clock.now() - begun < 3.0
    honest = {server.identity.server_id for server in grid.servers if server not in grid.liars}
    assert grid.holders(cap) == honest
    assert grid.read(cap) == contents
    for liar in grid.liars:
        assert liar.lies
        assert liar.advisories or lie in UNNOTICED


OPERATIONS: dict[str, tuple[Callable[[LyingGrid, WriteCap], Coroutine[Any, Any, None]], bytes]] = {
    "overwrite": (lambda grid, cap: grid.open(cap).overwrite(b"new"), b"new"),
    "modify": (lambda grid, cap: grid.open(cap).modify(lambda text, _: text.rstrip(b"!") + b"!"), BEGINNING + b"!"),
    "update": (lambda grid, cap: grid.open(cap).update(5, b"five"), BEGINNING[:5] + b"five" + BEGINNING[9:]),
    "append": (lambda grid, cap: grid.open(cap).update(len(BEGINNING), bytes(SEGMENT)), BEGINNING + bytes(SEGMENT)),
}


@pytest.mark.parametrize("in_pieces", [False, True])
@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("lie", LIES)
def test_write_when_servers_lie_then_is_done_on_the_others_and_the_liars_are_told(
    lie: str, format: FormatName, count: int, in_pieces: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if in_pieces:
        for module in (publish, update):
            monkeypatch.setattr(module, "WHOLE_BYTES", 1000)
        monkeypatch.setattr(streamplan, "WRITE_BYTES", 500_000)
    for operation, contents in OPERATIONS.values():
        grid, cap = started(count, format, lie)
        begun = grid.runtime.clock.now()
        grid.run(operation(grid, cap))
        require_done(grid, cap, lie, contents, begun)


@pytest.mark.parametrize("in_pieces", [False, True])
@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("lie", [lie for lie in LIES if "later" not in lie and "old" not in lie])
def test_create_when_servers_lie_then_is_done_on_the_others(
    lie: str, format: FormatName, count: int, in_pieces: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if in_pieces:
        monkeypatch.setattr(publish, "WHOLE_BYTES", 1000)
        monkeypatch.setattr(streamplan, "WRITE_BYTES", 500_000)
    grid = LyingGrid(count)
    grid.begin_to_lie(LIES[lie])
    cap = grid.create(BEGINNING, format)
    assert grid.runtime.clock.now() < 3.0
    assert len(grid.holders(cap)) == 10 - count
    assert grid.read(cap) == BEGINNING
    assert all(liar.lies for liar in grid.liars)


class HidingServer(LyingServer):
    """Has one share of a version whose writer died, does not show it in maps, and shows and proves it to every writer."""

    def hide(self, shown: dict[int, bytes]) -> None:
        self.shown = shown

        def lie(server: LyingServer, numbers: Sequence[int]) -> tuple[bool, Fronts]:
            return False, {ShareNumber(number): share[:75] for number, share in shown.items()}

        self.lie = lie


@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_write_when_servers_hide_a_later_version_from_maps_then_is_done_all_the_same(
    operation: str, format: FormatName, count: int
) -> None:
    """Three of them could even make it readable, and never let anybody read it."""
    grid = LyingGrid(0)
    liars = [HidingServer(f"server{index}", grid.runtime.clock) for index in range(count)]
    grid.servers[:count] = liars
    cap = grid.create(BEGINNING, format)
    assert cap.storage_index is not None
    before = {
        server.identity.server_id: {n: bytes(d) for n, d in server.slots[cap.storage_index].items()}
        for server in grid.servers
    }
    for times in range(5):
        grid.run(grid.open(cap, process=1).overwrite(b"later" * times))
    for liar in liars:
        liar.hide({number: bytes(data) for number, data in liar.slots[cap.storage_index].items()})
    for server in grid.servers:
        server.slots[cap.storage_index] = {n: bytearray(d) for n, d in before[server.identity.server_id].items()}
    grid.run(OPERATIONS[operation][0](grid, cap))
    assert grid.read(cap) == OPERATIONS[operation][1]
    assert all(liar.lies for liar in liars)
