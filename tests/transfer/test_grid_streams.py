"""Files of the grid that are read from an offset to their end: by one read, whose buffers are lent, not copied."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Coroutine
from contextlib import aclosing
from pathlib import Path
from typing import Any, TypeVar, cast

import pytest

from grid.engine.batches import READ_BYTES
from grid.errors import DamagedFileError
from grid.ports import Buffer, Sink
from grid.transfer.body import FileBody, Flow
from grid.transfer.choices import Mode
from grid.transfer.digest import DigestKey
from grid.transfer.ends import PIECE_SIZE, Entry, SourceChangedError
from grid.transfer.engine import FILE_MEMORY
from grid.transfer.grid_contents import READ_AHEAD, READ_SIZE, BodySource, OpenedImmutableFile
from grid.transfer.local_end import LocalEnd
from grid.transfer.outcome import Plan
from grid.transfer.rates import unlimited
from tests.transfer.end_contract import BytesBody

T = TypeVar("T")
MIB = 2**20
BATCH = 3 * MIB + 1
SEGMENT = MIB + 2
"""Segments of 3-of-10: a multiple of three."""


class _Session:
    """Runs everything on one event loop."""

    async def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return await coroutine

    def ask(self, loop: asyncio.AbstractEventLoop, coroutine: Coroutine[Any, Any, T]) -> Awaitable[T]:
        return loop.create_task(coroutine)


class _File:
    """A file that delivers from one buffer, which it fills again as soon as a write has ended. reads: what was asked for."""

    def __init__(self, data: bytes, error: Exception | None = None) -> None:
        self.data, self.error = data, error
        self.reads: list[tuple[int, int]] = []
        self.writes = self.cancelled = 0

    async def read(self, sink: Sink, offset: int, *, most_bytes: int) -> None:
        self.reads.append((offset, most_bytes))
        buffer = bytearray(BATCH)
        try:
            for begin in range(offset, len(self.data), BATCH):
                size = min(BATCH, len(self.data) - begin)
                buffer[:size] = self.data[begin : begin + size]
                await sink.write(memoryview(buffer)[:size])
                self.writes += 1
                buffer[:] = bytes(BATCH)
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        if self.error is not None:
            raise self.error


def flow_of(plan: Plan) -> Flow:
    return Flow(
        mode=plan.mode, chunk_size=plan.chunk_size, streams=plan.streams, slow=unlimited,
        advance=lambda count: None, max_memory=plan.max_memory, digest_key=DigestKey(bytes(32)),
    )  # fmt: skip


def opened(file: _File, size: int) -> OpenedImmutableFile:
    return OpenedImmutableFile(cast("Any", _Session()), file, Entry(name="file", size=size), None)


def body_of(file: _File, size: int | None = None) -> FileBody:
    size = len(file.data) if size is None else size
    return FileBody(opened(file, size), size, flow_of(Plan()))


async def collect(body: FileBody, offset: int = 0) -> tuple[bytes, list[int]]:
    """All bytes, and the sizes of pieces."""
    whole, sizes = bytearray(), []
    async for piece in body.stream(offset):
        await asyncio.sleep(0)
        whole += piece
        sizes.append(len(piece))
    return bytes(whole), sizes


@pytest.mark.parametrize("offset", [0, 2 * MIB])
def test_file_in_order_is_one_read_and_each_buffer_is_used_until_it_is_returned(offset: int) -> None:
    file = _File(os.urandom(50 * MIB + 5))
    whole, sizes = asyncio.run(collect(body_of(file), offset))
    assert whole == file.data[offset:]
    assert file.reads == [(offset, READ_AHEAD)]
    assert max(sizes) == PIECE_SIZE


def test_read_that_fails_after_its_last_byte_fails_the_stream() -> None:
    file = _File(bytes(4 * MIB), DamagedFileError("bad"))
    with pytest.raises(DamagedFileError):
        asyncio.run(collect(body_of(file)))


def test_large_file_goes_to_a_local_disk_by_one_read_whatever_its_ranges_would_be(tmp_path: Path) -> None:
    file = _File(os.urandom(50 * MIB + 5))
    body = body_of(file)
    assert len(body.ranges()) == 3, "ranges in parallel hold several times as much"
    asyncio.run(LocalEnd(str(tmp_path)).store(Entry(name="file", size=body.size), body))
    assert (tmp_path / "file").read_bytes() == file.data
    assert file.reads == [(0, READ_AHEAD)]


def test_files_side_by_side_to_a_local_disk_read_ahead_within_the_memory_of_the_transfer() -> None:
    plan, size = Plan(), 10**9
    count = plan.max_memory // (FILE_MEMORY + flow_of(plan).memory_of(size))
    assert count == 3
    assert count * (READ_AHEAD + READ_BYTES) <= plan.max_memory


@pytest.mark.parametrize("mode", ["chunked", "chunked-stream"])
def test_ranges_of_a_large_file_are_read_in_parallel_if_asked_for(mode: Mode) -> None:
    file = _File(b"")
    assert not FileBody(opened(file, 9), 9, flow_of(Plan(mode=mode))).is_ahead
    assert FileBody(opened(file, 9), 9, flow_of(Plan())).is_ahead


class _Segments:
    """A file in segments. fetched: those that each read touched, read after read."""

    segment_size = SEGMENT

    def __init__(self, size: int) -> None:
        self.size, self.fetched = size, list[int]()

    async def read(self, sink: Sink, offset: int, length: int) -> None:
        end = min(offset + length, self.size)
        self.fetched += range(offset // SEGMENT, -(-end // SEGMENT))
        await sink.write(bytes(end - offset))


@pytest.mark.parametrize("first", [0, 20])
def test_reads_of_a_range_fetch_each_segment_once(first: int) -> None:
    file = _Segments(100 * MIB)
    source = OpenedImmutableFile(cast("Any", _Session()), file, Entry(name="file", size=file.size), None)

    async def case() -> list[int]:
        return [len(piece) async for piece in source.read(first * MIB, 20 * MIB)]

    sizes = asyncio.run(case())
    assert sum(sizes) == 20 * MIB and max(sizes) <= READ_SIZE + SEGMENT
    assert file.fetched == list(range(first * MIB // SEGMENT, -(-(first + 20) * MIB // SEGMENT)))


@pytest.mark.parametrize("difference", [-1, 1])
def test_file_of_another_size_than_announced_is_not_taken(difference: int) -> None:
    file = _File(bytes(4 * MIB))
    with pytest.raises(SourceChangedError):
        asyncio.run(collect(body_of(file, 4 * MIB + difference)))


def test_stream_that_is_left_ends_its_read_and_takes_no_further_buffer() -> None:
    file = _File(bytes(40 * MIB))

    async def case() -> None:
        pieces = cast("AsyncGenerator[Buffer]", body_of(file).stream())
        async with aclosing(pieces):
            async for _ in pieces:
                await asyncio.sleep(0.01)
                break

    asyncio.run(case())
    assert (file.writes, file.cancelled) == (0, 1)


class _Pieces:
    """A source that yields each range in pieces of its own. pieces: all of them, by offset."""

    shortcut: object = None

    def __init__(self, data: bytes) -> None:
        self.entry, self._data = Entry(name="file", size=len(data)), data
        self.pieces: dict[int, bytes] = {}

    async def read(self, offset: int, length: int) -> AsyncIterator[Buffer]:
        for begin in range(offset, offset + length, PIECE_SIZE):
            piece = self.pieces[begin] = self._data[begin : min(begin + PIECE_SIZE, offset + length)]
            yield piece

    async def require_unchanged(self) -> None:
        """It does not change."""

    async def close(self) -> None:
        """Nothing to close."""


def test_ranges_in_order_pass_on_the_pieces_of_their_source_without_copies() -> None:
    source = _Pieces(os.urandom(50 * MIB + 5))
    body = FileBody(source, 50 * MIB + 5, flow_of(Plan()))

    async def case() -> list[Buffer]:
        return [piece async for piece in body.stream()]

    passed = asyncio.run(case())
    assert len(passed) == 51 and [id(piece) for piece in passed] == [
        id(source.pieces[at]) for at in sorted(source.pieces)
    ]


@pytest.mark.parametrize("step", [1, MIB - 1, MIB, 7 * MIB])
def test_put_reads_each_byte_once_in_order_and_starts_over_when_it_does(step: int) -> None:
    file = _File(os.urandom(7 * MIB))
    examined: list[tuple[int, int]] = []

    async def case() -> None:
        source = BodySource(
            cast("Any", _Session()), body_of(file), asyncio.get_running_loop(),
            lambda offset, data: examined.append((offset, len(data))),
        )  # fmt: skip
        for offset in (0, step, 0):
            length = min(step, len(file.data) - offset)
            assert await source.read_at(offset, step) == file.data[offset : offset + length]
            await asyncio.sleep(0)
        await source.close()

    asyncio.run(case())
    assert [offset for offset, _ in examined] == [0, step, 0]
    assert [offset for offset, _ in file.reads] == [0, 0]


class _RereadBody(BytesBody):
    """Contents that are replaced when they have been read."""

    def __init__(self, first: bytes, second: bytes) -> None:
        super().__init__(first)
        self._second = second

    def replace(self) -> None:
        self._data = self._second


@pytest.mark.parametrize(("first", "second"), [(b"a", b"b"), (b"a", b"a")])
def test_body_when_read_again_passes_its_last_bytes_on_only_if_it_is_the_same(first: bytes, second: bytes) -> None:
    """One key encrypts both readings: that of a convergent put is derived in the first."""
    body = _RereadBody(first * 3 * MIB, second * 3 * MIB)
    passed: list[int] = []

    async def case() -> None:
        source = BodySource(
            cast("Any", _Session()), body, asyncio.get_running_loop(), lambda offset, data: passed.append(offset)
        )
        for _ in range(2):
            for offset in (0, MIB, 2 * MIB):
                await source.read_at(offset, MIB)
            body.replace()
            await source.close()

    if first == second:
        asyncio.run(case())
    else:
        with pytest.raises(SourceChangedError):
            asyncio.run(case())
    assert passed == [0, MIB, 2 * MIB, 0, MIB, 2 * MIB][: 6 if first == second else 5]


def test_body_when_its_source_changed_while_it_was_read_passes_its_last_bytes_to_nobody() -> None:
    passed: list[int] = []

    async def case() -> None:
        body = BytesBody(bytes(2 * MIB), changes=True)
        source = BodySource(
            cast("Any", _Session()), body, asyncio.get_running_loop(), lambda offset, data: passed.append(offset)
        )
        await source.read_at(0, MIB)
        with pytest.raises(SourceChangedError):
            await source.read_at(MIB, MIB)

    asyncio.run(case())
    assert passed == [0]
