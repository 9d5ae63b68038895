"""Readers that wait for the same bytes of a pack: if one of them fails or gives up, the others continue."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from twisted.internet.defer import CancelledError, Deferred

from grid.caps import ChkCap
from grid.extents.pack_reader import PackReader
from grid.ports import Sink

PACK = ChkCap(key=bytes(16), ueb_hash=bytes(32), needed=3, total=10, size=1000)


class Rig:
    """A reader of packs whose fetches a test ends."""

    def __init__(self) -> None:
        self.fetches: list[Deferred[None]] = []
        self.reader = PackReader(self._read)

    async def _read(self, cap: ChkCap, sink: Sink, offset: int, length: int, segment_size: int) -> None:
        del cap, offset, segment_size
        arrival: Deferred[None] = Deferred()
        self.fetches.append(arrival)
        await arrival
        await sink.write(bytes(length))

    def read(self, then: Callable[[Any], Any] = lambda _: None) -> Deferred[Any]:
        return Deferred.fromCoroutine(self.reader.read(PACK, 0, 10)).addBoth(then)


def test_readers_when_one_ends_another_as_its_bytes_come_then_the_rest_have_theirs() -> None:
    rig, outcomes = Rig(), list[Any]()
    rig.read(outcomes.append)

    def end_the_other(data: object) -> None:
        outcomes.append(data)
        ended.cancel()

    rig.read(end_the_other)
    ended = rig.read(lambda failure: outcomes.append(failure.type))
    rig.read(outcomes.append)
    rig.fetches[0].callback(None)
    assert outcomes.count(bytes(10)) == 3
    assert outcomes.count(CancelledError) == 1
    assert len(rig.fetches) == 1


def test_readers_when_the_one_that_fetches_is_canceled_then_another_fetches() -> None:
    rig, outcomes = Rig(), list[Any]()
    first = rig.read(lambda _: None)
    rig.read(outcomes.append)
    rig.read(outcomes.append)
    first.cancel()
    assert len(rig.fetches) == 2
    rig.fetches[1].callback(None)
    assert outcomes == [bytes(10)] * 2
