"""Reading ahead: the right bytes in any order, few fetches in order, and bounded memory."""

from __future__ import annotations

import random
from collections.abc import Coroutine
from typing import Any

import pytest
from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from grid.errors import GridError
from grid.ports import Sink
from grid.sftp.read_ahead import KEPT_SPANS, LARGEST_SPAN, LEAST_SPAN, AheadRoom, ReadAhead

CONTENTS = random.Random(7).randbytes(20_000_000)


class Source:
    """Gives its bytes at once, and counts how often it was asked."""

    def __init__(self, contents: bytes = CONTENTS) -> None:
        self.contents = contents
        self.asked: list[tuple[int, int]] = []
        self.failing = False

    async def fetch(self, sink: Sink, start: int, length: int) -> None:
        """Write them."""
        self.asked.append((start, length))
        if self.failing:
            raise GridError("no server answers")
        for offset in range(start, start + length, 100_000):
            await sink.write(self.contents[offset : min(offset + 100_000, start + length)])


def now(work: Coroutine[Any, Any, bytes]) -> bytes:
    """What a coroutine that never waits returns."""
    found: list[bytes] = []
    failed: list[Failure] = []
    Deferred.fromCoroutine(work).addCallbacks(found.append, failed.append)
    if failed:
        failed[0].raiseException()
    return found[0]


def test_file_when_it_is_read_in_order_takes_few_fetches() -> None:
    source, room = Source(), AheadRoom()
    ahead = ReadAhead(source.fetch, len(CONTENTS), room)
    read = b"".join(now(ahead.read(offset, 65_536)) for offset in range(0, len(CONTENTS), 65_536))
    assert read == CONTENTS
    assert len(source.asked) < 12
    assert sum(length for _, length in source.asked) == len(CONTENTS)
    assert room.taken <= KEPT_SPANS * LARGEST_SPAN
    ahead.close()
    assert room.taken == 0


def test_file_when_it_is_read_here_and_there_fetches_what_is_asked() -> None:
    source = Source()
    ahead = ReadAhead(source.fetch, len(CONTENTS), AheadRoom())
    for offset in (15_000_000, 3_000_000, 9_000_000, 4_000_000):
        assert now(ahead.read(offset, 1000)) == CONTENTS[offset : offset + 1000]
    assert sum(length for _, length in source.asked) == 4000


@pytest.mark.parametrize(("offset", "length", "size"), [(0, 0, 0), (10, 20, 5), (30, 1, 0)])
def test_read_when_it_goes_past_the_end_is_cut(offset: int, length: int, size: int) -> None:
    ahead = ReadAhead(Source(CONTENTS[:15]).fetch, 15, AheadRoom())
    assert now(ahead.read(offset, length)) == CONTENTS[:15][offset : offset + length]
    assert len(now(ahead.read(offset, length))) == size


def test_room_when_many_files_share_it_holds_them_and_gives_up_what_was_used_long_ago() -> None:
    source, room = Source(), AheadRoom(size=2**21)
    files = [ReadAhead(source.fetch, len(CONTENTS), room) for _ in range(40)]
    for offset in range(0, 1_000_000, 50_000):
        for ahead in files:
            assert now(ahead.read(offset, 50_000)) == CONTENTS[offset : offset + 50_000]
            assert room.taken <= room.size
    assert max(length for _, length in source.asked[-40:]) == LEAST_SPAN
    for ahead in files:
        ahead.close()
    assert room.taken == room.files == 0


def test_room_when_all_of_it_is_being_read_keeps_what_somebody_waits_for() -> None:
    room, sinks = AheadRoom(size=3 * LEAST_SPAN), []

    async def fetch(sink: Sink, start: int, length: int) -> None:
        sinks.append((sink, length))
        await Deferred()

    files = [ReadAhead(fetch, LEAST_SPAN, room) for _ in range(5)]
    reads = [Deferred.fromCoroutine(ahead.read(0, LEAST_SPAN)) for ahead in files]
    for sink, length in sinks:
        Deferred.fromCoroutine(sink.write(bytes(length)))
    sizes: list[int] = []
    for read in reads:
        read.addCallback(lambda data: sizes.append(len(data)))
    assert sizes == [LEAST_SPAN] * 5


def test_read_when_a_fetch_failed_tries_once_more() -> None:
    source = Source()
    ahead = ReadAhead(source.fetch, len(CONTENTS), AheadRoom())
    source.failing = True
    with pytest.raises(GridError, match="no server"):
        now(ahead.read(0, 10))
    source.failing = False
    assert now(ahead.read(0, 10)) == CONTENTS[:10]


def test_file_when_it_is_closed_gives_up_its_fetches() -> None:
    room, cancelled = AheadRoom(), []

    async def fetch(sink: Sink, start: int, length: int) -> None:
        await Deferred(lambda deferred: cancelled.append(start))

    ahead = ReadAhead(fetch, 10_000_000, room)
    failed: list[object] = []
    Deferred.fromCoroutine(ahead.read(0, 10)).addErrback(failed.append)
    ahead.close()
    assert cancelled and room.taken == 0 and len(failed) == 1


def test_read_now_when_the_bytes_have_arrived_returns_them_and_fetches_on() -> None:
    source, room = Source(), AheadRoom()
    ahead = ReadAhead(source.fetch, len(CONTENTS), room)
    assert ahead.read_now(0, 1000) is None and source.asked == []
    assert now(ahead.read(0, 1000)) == CONTENTS[:1000]
    read, waited = b"", 0
    for offset in range(0, len(CONTENTS), 65_536):
        data = ahead.read_now(offset, 65_536)
        if data is None:
            waited += 1
            data = now(ahead.read(offset, 65_536))
        read += data
    assert read == CONTENTS and waited < len(source.asked) < 12
    assert sum(length for _, length in source.asked) == len(CONTENTS)
    assert ahead.read_now(len(CONTENTS) - 10, 1000) == CONTENTS[-10:]
    assert ahead.read_now(len(CONTENTS), 1000) is None
    ahead.close()
    assert ahead.read_now(len(CONTENTS) - 10, 10) is None


def test_read_now_when_a_fetch_is_under_way_or_failed_returns_what_arrived_or_nothing() -> None:
    sinks: list[Sink] = []

    async def fetch(sink: Sink, start: int, length: int) -> None:
        sinks.append(sink)
        await sink.write(CONTENTS[:1000])
        await Deferred()

    ahead = ReadAhead(fetch, 100_000, AheadRoom())
    Deferred.fromCoroutine(ahead.read(0, 2000))
    assert ahead.read_now(500, 500) == CONTENTS[500:1000]
    assert ahead.read_now(500, 501) is None
    sinks[0].fail(GridError("gone"))  # type: ignore[attr-defined]
    assert ahead.read_now(500, 500) is None
