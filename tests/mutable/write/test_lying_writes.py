"""Servers that lie about writes: unproven claims decide nothing, and the write finishes on the others."""

from __future__ import annotations

import random
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

import pytest

from grid.engine.grid import Encoding
from grid.errors import NotHappyError
from grid.mutable import publish, update
from grid.mutable.share.geometry import FormatName
from grid.mutable.share.keys import WriteCap
from grid.mutable.share.layout import parse_header
from grid.mutable.write import stream_plan
from grid.ports import ServerId, ShareNumber
from tests.support.lying_slots import LyingServer
from tests.support.lying_writes import UNNOTICED, WRITE_LIES, Fronts, WriteLiar, WriteLie
from tests.support.mutable_grid import MutableGrid

FORMATS: list[FormatName] = ["sdmf", "mdmf"]
SEGMENT = 131073
BEGINNING = random.Random(1).randbytes(2 * SEGMENT + 77)


class LyingGrid(MutableGrid):
    """Ten servers; the first `count` can lie."""

    def __init__(self, count: int, shape: Encoding | None = None) -> None:
        super().__init__(10, shape)
        self.liars = [WriteLiar(f"server{index}", self.runtime.clock) for index in range(count)]
        self.servers[:count] = self.liars

    def remember(self, cap: WriteCap) -> None:
        """Have the liars keep their shares as they are."""
        assert cap.storage_index is not None
        for server in self.liars:
            server.remembered = {n: bytes(data) for n, data in server.slots.get(cap.storage_index, {}).items()}

    def begin_to_lie(self, lie: WriteLie) -> None:
        for server in self.liars:
            server.write_lie = lie

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
    """A grid with a file of two versions; the liars remember the first one."""
    grid = LyingGrid(count)
    cap = grid.create(b"before", format)
    grid.remember(cap)
    grid.run(grid.open(cap).overwrite(BEGINNING))
    grid.begin_to_lie(WRITE_LIES[lie])
    return grid, cap


def require_done(grid: LyingGrid, cap: WriteCap, lie: str, contents: bytes, begun: float) -> None:
    """The write is on all honest servers, reads return it, and the lying servers got reports."""
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


@pytest.mark.each_pair
@pytest.mark.parametrize("in_pieces", [False, True])
@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("lie", WRITE_LIES)
def test_write_when_servers_lie_then_is_done_on_the_others_and_the_liars_get_reports(
    lie: str, format: FormatName, count: int, in_pieces: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if in_pieces:
        for module in (publish, update):
            monkeypatch.setattr(module, "WHOLE_BYTES", 1000)
        monkeypatch.setattr(stream_plan, "WRITE_BYTES", 500_000)
    for operation, contents in OPERATIONS.values():
        grid, cap = started(count, format, lie)
        begun = grid.runtime.clock.now()
        grid.run(operation(grid, cap))
        require_done(grid, cap, lie, contents, begun)


@pytest.mark.each_pair
@pytest.mark.parametrize("in_pieces", [False, True])
@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("lie", [lie for lie in WRITE_LIES if "later" not in lie and "old" not in lie])
def test_create_when_servers_lie_then_is_done_on_the_others(
    lie: str, format: FormatName, count: int, in_pieces: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if in_pieces:
        monkeypatch.setattr(publish, "WHOLE_BYTES", 1000)
        monkeypatch.setattr(stream_plan, "WRITE_BYTES", 500_000)
    grid = LyingGrid(count)
    grid.begin_to_lie(WRITE_LIES[lie])
    cap = grid.create(BEGINNING, format)
    assert grid.runtime.clock.now() < 3.0
    assert len(grid.holders(cap)) == 10 - count
    assert grid.read(cap) == BEGINNING
    assert all(liar.lies for liar in grid.liars)


class HidingServer(WriteLiar):
    """Has one share of a version whose writer died, does not show it in maps, and shows and proves it to every writer."""

    def hide(self, shown: dict[int, bytes]) -> None:
        self.shown = shown

        def lie(server: WriteLiar, numbers: Sequence[int]) -> tuple[bool, Fronts]:
            return False, {ShareNumber(number): share[:75] for number, share in shown.items()}

        self.write_lie = lie


@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_write_when_servers_hide_a_later_version_from_maps_then_still_succeeds(
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


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("lie", ["nothing", "other file", "unsigned root"])
def test_write_when_too_few_servers_prove_what_they_refuse_for_then_fails_and_the_next_one_is_done(
    lie: str, format: FormatName
) -> None:
    """Two of five servers are honest, and three are needed: shares nobody can prove are in the way on two of the liars."""
    grid = MutableGrid(5, Encoding(k=2, n=5, happy=3))
    servers = [LyingServer(f"server{index}", grid.runtime.clock) for index in range(5)]
    grid.servers[:] = servers
    honest, denying, readers = servers[:2], servers[2], servers[3:]
    cap = grid.create(BEGINNING, format)
    index = cap.storage_index
    assert index is not None
    before = [{n: bytearray(data) for n, data in server.slots[index].items()} for server in servers]
    grid.run(grid.open(cap, process=9).overwrite(b"of a writer that died"))
    for server, kept in zip([*honest, denying], before, strict=False):
        server.slots[index] = kept
    denying.write_lie = WRITE_LIES["no shares at all"]
    for server in readers:
        server.lie = lie
    with pytest.raises(NotHappyError, match=r"only 2 servers took .* 3 are needed"):
        grid.run(grid.open(cap, process=1).overwrite(b"first try"))
    assert grid.run(grid.open(cap, process=2).read_all()) == b"first try"
    grid.run(grid.open(cap, process=1).overwrite(b"second try"))
    assert grid.run(grid.open(cap, process=2).read_all()) == b"second try"
    versions = [max(parse_header(data)[0].order for data in server.slots[index].values()) for server in servers]
    assert versions[0] == versions[1] == max(versions) and versions.count(max(versions)) >= 3
