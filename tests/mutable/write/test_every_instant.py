"""At every instant of an overwrite, one version has k shares, whatever the encoding and however few servers there are."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

import pytest

from grid.engine.grid import Encoding
from grid.errors import FormatError, GridError, NotEnoughSharesError
from grid.mutable import publish, update
from grid.mutable.share.geometry import FormatName
from grid.mutable.share.keys import WriteCap
from grid.mutable.share.layout import parse_header
from grid.mutable.share.prefix import Prefix
from grid.mutable.write import stream_plan
from grid.ports import Range, ShareNumber, SlotAnswer, SlotSecrets, StorageIndex, TestWrite
from tests.mutable.test_large import run_and_kill
from tests.support.mutable_grid import MutableGrid
from tests.support.scripted_slots import SlotScript, SlotServer

ENCODINGS = [
    (1, 1),
    (1, 2),
    (2, 2),
    (2, 3),
    (3, 3),
    (3, 4),
    (4, 5),
    (3, 10),
    (5, 10),
    (6, 10),
    (7, 10),
    (9, 10),
    (10, 10),
]
OLD = random.Random(1).randbytes(140_000)
NEW = random.Random(2).randbytes(135_000)


class WatchedServer(SlotServer):
    """Has the grid counted after each write."""

    grid: WatchedGrid | None = None

    async def test_and_write(
        self,
        storage_index: StorageIndex,
        secrets: SlotSecrets,
        writes: Mapping[ShareNumber, TestWrite],
        ranges: Sequence[Range] = (),
    ) -> SlotAnswer:
        answer = await super().test_and_write(storage_index, secrets, writes, ranges)
        if self.grid is not None:
            self.grid.count(storage_index)
        return answer


class WatchedGrid(MutableGrid):
    """least: the fewest recoverable versions that there were after any write since `watch`."""

    def __init__(self, count: int, shape: Encoding, seed: int = 0) -> None:
        super().__init__(count, shape, seed)
        self.servers[:] = [WatchedServer(f"server{index}", self.runtime.clock) for index in range(count)]
        self.least = 10
        delays = random.Random(seed)
        for server in self.servers:
            server.script.delay_s = 0.01 + delays.random() / 50

    def watch(self) -> None:
        for server in self.servers:
            assert isinstance(server, WatchedServer)
            server.grid = self

    def count(self, storage_index: StorageIndex) -> None:
        numbers: dict[Prefix, set[int]] = {}
        for server in self.servers:
            for number, data in server.slots.get(storage_index, {}).items():
                try:
                    numbers.setdefault(parse_header(data)[0], set()).add(number)
                except FormatError:
                    continue
        self.least = min(self.least, sum(len(held) >= prefix.k for prefix, held in numbers.items()))


@pytest.fixture(params=[False, True], ids=["whole", "in pieces"])
def in_pieces(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param:
        for module in (publish, update):
            monkeypatch.setattr(module, "WHOLE_BYTES", 1000)
        monkeypatch.setattr(stream_plan, "WRITE_BYTES", 400_000)


def make(k: int, n: int, servers: int, format: FormatName, seed: int) -> tuple[WatchedGrid, WriteCap]:
    grid = WatchedGrid(servers, Encoding(k=k, n=n, happy=1), seed)
    return grid, grid.create(OLD, format)


@pytest.mark.each_pair
@pytest.mark.usefixtures("in_pieces")
@pytest.mark.parametrize("format", ["sdmf", "mdmf"])
@pytest.mark.parametrize("servers", [1, 2, 3, 10])
@pytest.mark.parametrize(("k", "n"), ENCODINGS)
def test_overwrite_when_looked_at_after_each_write_then_one_version_is_always_whole(
    k: int, n: int, servers: int, format: FormatName
) -> None:
    grid, cap = make(k, n, servers, format, k + n)
    grid.watch()
    for text in (NEW, OLD):
        grid.run(grid.open(cap).overwrite(text))
        assert grid.least >= 1
        assert grid.read(cap) == text
    result = grid.run(grid.open(cap).check(verify=True))
    assert result.healthy and not result.corrupt
    grid.run(grid.open(cap).update(3, b"!"))
    assert grid.least >= 1


@pytest.mark.each_pair
@pytest.mark.usefixtures("in_pieces")
@pytest.mark.parametrize("format", ["sdmf", "mdmf"])
@pytest.mark.parametrize(("k", "n"), [(2, 3), (3, 4), (3, 10), (5, 10), (6, 10), (9, 10)])
def test_overwrite_when_servers_are_missing_then_one_version_is_always_whole(
    k: int, n: int, format: FormatName
) -> None:
    for missing in range(1, n - k + 1):
        grid, cap = make(k, n, n, format, missing)
        grid.watch()
        for server in grid.servers[:missing]:
            server.script = SlotScript(dead_from=0)
        grid.run(grid.open(cap).overwrite(NEW))
        assert grid.least >= 1
        assert grid.read(cap) == NEW
        for server in grid.servers[:missing]:
            server.script = SlotScript()
        assert grid.read(cap) == NEW
        grid.run(grid.open(cap).repair(force=True))
        assert grid.read(cap) == NEW
        assert grid.least >= 1


@pytest.mark.each_pair
@pytest.mark.usefixtures("in_pieces")
@pytest.mark.parametrize("format", ["sdmf", "mdmf"])
@pytest.mark.parametrize(("k", "n"), [(1, 1), (2, 2), (2, 3), (3, 4), (6, 10), (9, 10)])
def test_overwrite_when_its_client_dies_at_any_message_then_the_file_reads_and_can_be_written(
    k: int, n: int, format: FormatName
) -> None:
    texts, turns, alive = set(), 0, True
    while alive:
        grid, cap = make(k, n, n, format, turns)
        turns += max(1, n // 3)
        alive = run_and_kill(grid, grid.open(cap, process=1).overwrite(NEW), turns)
        text = grid.read(cap)
        assert text in {OLD, NEW}
        texts.add(text)
        grid.watch()
        grid.run(grid.open(cap).overwrite(b"goes on"))
        assert grid.least >= 1
        assert grid.read(cap) == b"goes on"
        assert grid.run(grid.open(cap).repair(force=True)).after.healthy
    assert texts == {OLD, NEW}


@pytest.mark.parametrize("format", ["sdmf", "mdmf"])
def test_overwrite_when_no_version_can_be_read_then_needs_force(format: FormatName) -> None:
    grid, cap = make(6, 10, 10, format, 0)
    half = {server: dict(server.slots) for server in grid.servers[:5]}
    for server in half:
        server.slots.clear()
    with pytest.raises(NotEnoughSharesError):
        grid.run(grid.open(cap).overwrite(NEW))
    grid.run(grid.open(cap).overwrite(NEW, force=True))
    for server, slots in half.items():
        server.slots.update({index: {**slots[index], **server.slots.get(index, {})} for index in slots})
    assert grid.read(cap) == NEW
    grid.run(grid.open(cap).overwrite(OLD))
    assert grid.run(grid.open(cap).repair(force=True)).after.healthy
    assert grid.read(cap) == OLD


def test_overwrite_when_forced_and_no_share_is_left_then_fails() -> None:
    grid, cap = make(2, 3, 3, "sdmf", 0)
    for server in grid.servers:
        server.slots.clear()
    with pytest.raises(GridError):
        grid.run(grid.open(cap).overwrite(NEW, force=True))
