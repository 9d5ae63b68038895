"""Reading ahead: the right bytes in any order, few fetches in order, and bounded memory."""

from __future__ import annotations

import random
from collections.abc import Coroutine
from functools import partial
from itertools import pairwise
from typing import Any

import pytest
from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from grid.errors import GridError
from grid.ports import Sink
from grid.sftp.read_ahead import KEPT_SPANS, LARGEST_SPAN, LEAST_SPAN, MOST_STREAMS, STREAM_FROM, AheadRoom, ReadAhead

CONTENTS = random.Random(7).randbytes(20_000_000)


class Source:
    """Gives its bytes at once, and counts how often it was asked."""

    def __init__(self, contents: bytes = CONTENTS) -> None:
        self.contents = contents
        self.asked: list[tuple[int, int]] = []
        self.failing = False
        self.written = 0

    async def fetch(self, sink: Sink, start: int, length: int) -> None:
        """Write them."""
        self.asked.append((start, length))
        if self.failing:
            raise GridError("no server answers")
        for offset in range(start, start + length, 100_000):
            self.written += 1
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
    assert read == CONTENTS and waited <= source.written and len(source.asked) < 12
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
    failures: list[Failure] = []
    Deferred.fromCoroutine(ahead.read(0, 2000)).addErrback(failures.append)
    assert ahead.read_now(500, 500) == CONTENTS[500:1000]
    assert ahead.read_now(500, 501) is None
    sinks[0].fail(GridError("gone"))  # type: ignore[attr-defined]
    assert ahead.read_now(500, 500) is None
    assert [failure.getErrorMessage() for failure in failures] == ["gone"]


class PatientSource(Source):
    """Gives each piece only after the one before it was taken, and counts those that were. size: of a piece."""

    def __init__(self, size: int, contents: bytes = CONTENTS) -> None:
        super().__init__(contents)
        self.size = size
        self.taken = 0

    async def fetch(self, sink: Sink, start: int, length: int) -> None:
        """Write pieces that are of no use once they were taken."""
        self.asked.append((start, length))
        for offset in range(start, start + length, self.size):
            piece = bytearray(self.contents[offset : min(offset + self.size, start + length)])
            await sink.write(piece)
            piece[:] = bytes(len(piece))
            self.taken += 1


def read_to(ahead: ReadAhead, stop: int, step: int = 261_120) -> bytes:
    """The file up to there."""
    return b"".join(now(ahead.read(offset, min(step, stop - offset))) for offset in range(0, stop, step))


@pytest.mark.parametrize("size", [1000, 100_000, 2**20, 5_000_000, len(CONTENTS)])
def test_file_when_it_is_read_on_is_fetched_at_once_and_taken_piece_by_piece(size: int) -> None:
    source, room = PatientSource(size), AheadRoom()
    ahead = ReadAhead(source.fetch, len(CONTENTS), room)
    assert read_to(ahead, len(CONTENTS), 65_536) == CONTENTS
    assert len(source.asked) == 4 and source.asked[-1] == (STREAM_FROM, len(CONTENTS) - STREAM_FROM)
    ahead.close()
    assert (room.taken, room.streams) == (0, 0)


def test_stream_when_its_client_stops_takes_no_more_than_one_piece() -> None:
    source, room = PatientSource(500_000), AheadRoom()
    ahead = ReadAhead(source.fetch, len(CONTENTS), room)
    assert read_to(ahead, 1_200_000) == CONTENTS[:1_200_000]
    assert source.asked[-1][0] == STREAM_FROM and room.streams == 1
    before = source.taken
    assert ahead.read_now(STREAM_FROM, 1000) == CONTENTS[STREAM_FROM : STREAM_FROM + 1000]
    assert source.taken == before
    assert now(ahead.read(STREAM_FROM + 499_000, 2000)) == CONTENTS[STREAM_FROM + 499_000 : STREAM_FROM + 501_000]
    assert source.taken == before + 1
    ahead.close()
    assert (room.taken, room.streams, source.taken) == (0, 0, before + 1)


def test_stream_when_requests_come_out_of_order_serves_those_that_are_near_and_others_apart() -> None:
    source = PatientSource(500_000)
    ahead = ReadAhead(source.fetch, len(CONTENTS), AheadRoom())
    assert read_to(ahead, 6_000_000) == CONTENTS[:6_000_000]
    count = len(source.asked)
    for offset in (7_000_000, 6_900_000, 8_000_000, 7_600_000):
        assert now(ahead.read(offset, 32_768)) == CONTENTS[offset : offset + 32_768]
    assert len(source.asked) == count
    for offset in (5_000_000, 18_000_000):
        assert now(ahead.read(offset, 32_768)) == CONTENTS[offset : offset + 32_768]
    assert source.asked[count:] == [(5_000_000, 32_768), (18_000_000, 32_768)]


def test_stream_when_readers_wait_in_any_order_gives_each_its_bytes() -> None:
    sinks: list[Sink] = []

    async def fetch(sink: Sink, start: int, length: int) -> None:
        if start < STREAM_FROM:
            await sink.write(CONTENTS[start : start + length])
        else:
            sinks.append(sink)
            await Deferred()

    ahead = ReadAhead(fetch, len(CONTENTS), AheadRoom())
    read_to(ahead, STREAM_FROM)
    offsets = [STREAM_FROM + 1000 * number for number in range(8)]
    random.Random(3).shuffle(offsets)
    found: dict[int, bytes] = {}
    for offset in offsets:
        Deferred.fromCoroutine(ahead.read(offset, 1000)).addCallback(partial(found.__setitem__, offset))
    for start in range(STREAM_FROM, STREAM_FROM + 8000, 700):
        Deferred.fromCoroutine(sinks[0].write(CONTENTS[start : start + 700]))
    assert found == {offset: CONTENTS[offset : offset + 1000] for offset in offsets}


def test_stream_when_its_fetch_ends_early_or_fails_ends_the_reads() -> None:
    short = PatientSource(500_000, CONTENTS[:5_000_000])
    ahead = ReadAhead(short.fetch, len(CONTENTS), AheadRoom())
    assert read_to(ahead, 5_000_000)[: 2**22] == CONTENTS[: 2**22]
    with pytest.raises(GridError, match="shorter"):
        now(ahead.read(5_500_000, 100_000))


def test_streams_when_many_files_are_read_are_few() -> None:
    source, room = PatientSource(500_000), AheadRoom()
    files = [ReadAhead(source.fetch, len(CONTENTS), room) for _ in range(MOST_STREAMS + 3)]
    for ahead in files[:MOST_STREAMS]:
        read_to(ahead, 3_000_000)
    assert room.streams == MOST_STREAMS
    for offset in range(0, 6_000_000, 200_000):
        for ahead in files:
            assert now(ahead.read(offset, 200_000)) == CONTENTS[offset : offset + 200_000]
            assert room.streams <= MOST_STREAMS and room.taken <= room.size
    for ahead in files:
        ahead.close()
    assert room.taken == room.files == room.streams == 0


def test_request_when_it_reaches_into_the_stream_gets_what_later_requests_make_pass() -> None:
    asked: list[int] = []
    sinks: dict[int, Sink] = {}

    async def fetch(sink: Sink, start: int, length: int) -> None:
        asked.append(start)
        sinks[start] = sink
        await Deferred()

    ahead = ReadAhead(fetch, len(CONTENTS), AheadRoom())
    found: dict[int, bytes] = {}
    spans, step = [0, 2**18, 2**20, STREAM_FROM], 261_120
    for offset in range(0, 20 * step, step):
        Deferred.fromCoroutine(ahead.read(offset, step)).addCallback(partial(found.__setitem__, offset))
    assert asked == spans
    for start in range(STREAM_FROM, 20 * step, 300_000):
        Deferred.fromCoroutine(sinks[STREAM_FROM].write(CONTENTS[start : start + 300_000]))
    for start, stop in pairwise(spans):
        Deferred.fromCoroutine(sinks[start].write(CONTENTS[start:stop]))
    assert found == {offset: CONTENTS[offset : offset + step] for offset in range(0, 20 * step, step)}
    assert asked == spans
    ahead.close()


def test_request_when_the_stream_behind_its_span_fails_or_the_file_is_closed_fails_once() -> None:
    sinks: dict[int, Sink] = {}

    async def fetch(sink: Sink, start: int, length: int) -> None:
        sinks[start] = sink
        if start < 2**20:
            await sink.write(CONTENTS[start : start + length])
        else:
            await Deferred()

    for ends in (lambda ahead: sinks[STREAM_FROM].fail(GridError("gone")), ReadAhead.close):  # type: ignore[attr-defined]
        room = AheadRoom()
        ahead = ReadAhead(fetch, len(CONTENTS), room)
        failures: list[Failure] = []
        read_to(ahead, 2**20)
        for offset in (2**20, STREAM_FROM - 1000):
            Deferred.fromCoroutine(ahead.read(offset, 2000)).addErrback(failures.append)
        assert room.streams == 1
        ends(ahead)
        ahead.close()
        assert len(failures) == 2 and room.taken == room.streams == 0
