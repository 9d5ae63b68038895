"""Repairs find space: if a server is full, refuses, is silent or lies, others take its shares."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

import pytest

from grid.errors import FormatError, NoSpaceError, PeerRefusedError
from grid.mutable import publish
from grid.mutable.read.newest import NewestSeen
from grid.mutable.share.geometry import FormatName
from grid.mutable.write import stream_plan
from grid.ports import Range, ShareNumber, SlotAnswer, SlotSecrets, StorageIndex, TestWrite
from tests.mutable.write.test_lying_writes import LyingGrid
from tests.support.lying_writes import WRITE_LIES
from tests.support.mutable_grid import MutableGrid
from tests.support.scripted_slots import SlotScript, SlotServer

CONTENTS = random.Random(5).randbytes(400_000)
FORMATS: list[FormatName] = ["sdmf", "mdmf"]


@pytest.fixture(params=[False, True], ids=["whole", "in pieces"])
def in_pieces(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param:
        monkeypatch.setattr(publish, "WHOLE_BYTES", 1000)
        monkeypatch.setattr(stream_plan, "WRITE_BYTES", 500_000)


class PickyServer(SlotServer):
    """Raises a given error at writes that would store a share that is new to it."""

    refusal: Exception | None = None
    refused = 0

    async def test_and_write(
        self,
        storage_index: StorageIndex,
        secrets: SlotSecrets,
        writes: Mapping[ShareNumber, TestWrite],
        ranges: Sequence[Range] = (),
    ) -> SlotAnswer:
        if self.refusal is not None:
            await self._enter("test_and_write")
            self.refused += 1
            raise self.refusal
        return await super().test_and_write(storage_index, secrets, writes, ranges)


@pytest.mark.usefixtures("in_pieces")
@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("refusal", [NoSpaceError("full"), PeerRefusedError("read-only", kind="OSError")], ids=str)
def test_repair_when_the_emptiest_servers_refuse_then_others_take_their_shares(
    refusal: Exception, format: FormatName
) -> None:
    """Five shares lost; of the servers without a share, four refuse and one accepts."""
    grid = MutableGrid(11)
    grid.servers[:] = [PickyServer(f"server{index}", grid.runtime.clock) for index in range(11)]
    cap = grid.create(CONTENTS, format)
    assert cap.storage_index is not None
    holders = [server for server in grid.servers if server.slots.get(cap.storage_index)]
    for server in holders[:5]:
        server.slots.clear()
    without = [server for server in grid.servers if not server.slots.get(cap.storage_index)]
    for server in [*without, holders[5]]:
        assert isinstance(server, PickyServer)
        server.refusal = refusal
    result = grid.run(grid.open(cap).repair())
    assert result.successful and result.after.good_count == 10
    assert sum(isinstance(server, PickyServer) and server.refused > 0 for server in grid.servers) >= len(without)
    assert grid.read(cap) == CONTENTS
    assert grid.run(grid.open(cap).check(verify=True)).healthy


@pytest.mark.usefixtures("in_pieces")
@pytest.mark.parametrize("format", FORMATS)
def test_repair_when_every_other_server_refuses_then_says_so_and_ends(format: FormatName) -> None:
    grid = MutableGrid()
    grid.servers[:] = [PickyServer(f"server{index}", grid.runtime.clock) for index in range(10)]
    cap = grid.create(CONTENTS, format)
    for server in grid.servers[:3]:
        server.slots.clear()
    for server in grid.servers:
        assert isinstance(server, PickyServer)
        server.refusal = NoSpaceError("full")
    result = grid.run(grid.open(cap).repair())
    assert result.attempted and not result.successful and result.after.good_count == 7
    assert grid.read(cap) == CONTENTS


@pytest.mark.each_pair
@pytest.mark.usefixtures("in_pieces")
@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("lie", WRITE_LIES)
def test_repair_when_servers_lie_then_others_take_their_shares(lie: str, count: int, format: FormatName) -> None:
    """The liars lost their shares, and so did two honest servers."""
    grid = LyingGrid(count)
    cap = grid.create(b"before", format)
    grid.remember(cap)
    grid.run(grid.open(cap).overwrite(CONTENTS))
    for server in grid.servers[: count + 2]:
        server.slots.clear()
    grid.begin_to_lie(WRITE_LIES[lie])
    begun = grid.runtime.clock.now()
    result = grid.run(grid.open(cap).repair())
    assert grid.runtime.clock.now() - begun < 3.0
    assert grid.read(cap) == CONTENTS
    assert all(liar.lies for liar in grid.liars)
    if not lie.startswith("passed"):
        assert result.successful
        assert len(grid.shares(cap)) == 10
    assert len(grid.holders(cap)) == 10 - count


@pytest.mark.parametrize("format", FORMATS)
def test_repair_when_a_server_keeps_silent_at_writes_then_others_take_its_share_soon(format: FormatName) -> None:
    grid = MutableGrid()
    cap = grid.create(CONTENTS, format)
    for server in grid.servers[:2]:
        server.slots.clear()
    grid.servers[0].calls.clear()
    grid.servers[0].script = SlotScript(silent_from=0, only=frozenset({"test_and_write"}))
    begun = grid.runtime.clock.now()
    assert grid.run(grid.open(cap).repair()).successful
    assert grid.runtime.clock.now() - begun < 2.5
    assert len(grid.shares(cap)) == 10


def test_overwrite_when_sequence_numbers_are_used_up_then_nothing_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(publish, "WHOLE_BYTES", 1000)
    grid = MutableGrid()
    cap = grid.create(CONTENTS, "mdmf")
    assert cap.storage_index is not None
    grid.grid().remembered.of(NewestSeen).learn(cap.storage_index, 2**64 - 1)
    grid.reset_counts()
    with pytest.raises(FormatError, match="used up"):
        grid.run(grid.open(cap).overwrite(CONTENTS[::-1]))
    assert all("test_and_write" not in server.calls for server in grid.servers)
    assert grid.read(cap) == CONTENTS
