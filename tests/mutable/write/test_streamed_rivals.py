"""Rival writers of versions that are streamed in pieces: they meet on every server, whatever numbers they choose.

[docs/decisions/0235-writers-meet-on-every-server.md]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from grid.errors import ConflictError
from grid.mutable import publish
from grid.mutable.write import stream_plan
from grid.ports import Range, ShareNumber, SlotAnswer, SlotSecrets, StorageIndex, TestWrite
from tests.support.mutable_grid import MutableGrid
from tests.support.scripted_slots import SlotServer

MDMF_FIRST_BYTE = b"\1"

OLD, FIRST, SECOND = (bytes([letter]) * 300_000 for letter in b"osr")


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("streams", ["both", "the first", "the second", "the first updates"])
def test_overwrite_when_a_writer_that_missed_shares_gives_way_leaves_no_readable_version(
    monkeypatch: pytest.MonkeyPatch, seed: int, streams: str
) -> None:
    """The second writer did not see the shares of three servers, and has other numbers for them."""
    monkeypatch.setattr(stream_plan, "WRITE_BYTES", 1_000_000)

    def stream(whether: bool) -> None:
        monkeypatch.setattr(publish, "WHOLE_BYTES", 0 if whether else 2**30)

    grid = MutableGrid(seed=seed)
    stream(False)
    cap = grid.create(OLD, "mdmf")
    first, second = grid.open(cap, process=1), grid.open(cap, process=2)
    shares = grid.shares(cap)
    unseen = [shares[number][0][0] for number in (1, 6, 7)]
    slots = [server.slots for server in unseen]
    for server, moved in zip(unseen, [*slots[1:], slots[0]], strict=True):
        server.slots = moved
        server.script.frozen = {}
    grid.run(second.modify(lambda old, _: None))
    for server in unseen:
        assert server.fired["frozen"]
        server.script.frozen = None
    stream(streams in ("both", "the first"))
    if streams == "the first updates":
        grid.run(first.update(0, FIRST[:1000]))
        acknowledged = FIRST[:1000] + OLD[1000:]
    else:
        grid.run(first.overwrite(FIRST))
        acknowledged = FIRST
    stream(streams in ("both", "the second"))
    calls = 0

    def dying(old: bytes, _: bool) -> bytes:
        nonlocal calls
        calls += 1
        if calls > 1:
            raise ConflictError("the client ends before it can try again")
        return SECOND

    with pytest.raises(ConflictError):
        grid.run(second.modify(dying))
    assert grid.read(cap) == acknowledged
    found = grid.run(grid.open(cap).check(verify=True))
    assert len({name.rpartition("-sh")[0] for name in found.sharemap}) == 1, sorted(found.sharemap)


class _Watched(SlotServer):
    """A slot server that notes which share numbers each write of a header tests."""

    tested: list[frozenset[int]]

    async def test_and_write(
        self,
        storage_index: StorageIndex,
        secrets: SlotSecrets,
        writes: Mapping[ShareNumber, TestWrite],
        ranges: Sequence[Range] = (),
    ) -> SlotAnswer:
        starts = [bytes(data[:1]) for write in writes.values() for offset, data in write.writes if not offset]
        if MDMF_FIRST_BYTE in starts:
            self.tested.append(frozenset(number for number, write in writes.items() if write.tests))
        return await super().test_and_write(storage_index, secrets, writes, ranges)


def test_headers_of_a_streamed_version_test_every_number_of_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream_plan, "WRITE_BYTES", 1_000_000)
    grid = MutableGrid()
    cap = grid.create(OLD, "mdmf")
    for server in grid.servers:
        server.__class__ = _Watched
        server.tested = []  # type: ignore[attr-defined]
    monkeypatch.setattr(publish, "WHOLE_BYTES", 0)
    grid.run(grid.open(cap).overwrite(FIRST))
    assert grid.read(cap) == FIRST
    for server in grid.servers:
        assert isinstance(server, _Watched)
        assert server.tested[0] == frozenset(range(10))
