"""Bytes that a transfer holds: what was asked of a source and has not been stored yet, and parts that are being sent."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Literal

import pytest

from grid.errors import GridError
from grid.node.config import ClientSettings
from grid.ports import Buffer
from grid.transfer.body import COPIES
from grid.transfer.ends import Body, Entry, LeftOut, OpenedSource, PassingError
from grid.transfer.engine import FILE_MEMORY
from grid.transfer.grid_contents import PUT_MEMORY, READ_AHEAD, edges_of_put
from grid.transfer.grid_end import GridEnd
from grid.transfer.local_end import LocalEnd
from grid.transfer.object_end import ObjectEnd
from grid.transfer.outcome import Plan
from grid.transfer.s3_uploads import PART_SIZE, PARTS_AT_ONCE, Account, S3Uploads, upload_in_parts
from tests.transfer.end_contract import BytesBody
from tests.transfer.test_engine import send

MIB = 2**20


class _Count:
    """Bytes held now, and the most at any time. asked: lengths of the ranges that were asked for."""

    def __init__(self) -> None:
        self.now = self.most = 0
        self.asked: list[int] = []

    def add(self, size: int) -> None:
        self.now += size
        self.most = max(self.most, self.now)


class _LargeFile:
    """Zeros."""

    shortcut: object = None

    def __init__(self, entry: Entry, held: _Count) -> None:
        self.entry, self._held = entry, held

    async def read(self, offset: int, length: int) -> AsyncIterator[Buffer]:
        self._held.asked.append(length)
        for begin in range(0, length, MIB):
            await asyncio.sleep(0)
            size = min(MIB, length - begin)
            self._held.add(size)
            yield bytes(size)

    async def require_unchanged(self) -> None:
        """Nothing changes."""

    async def close(self) -> None:
        """Nothing to close."""


class _LargeFiles:
    """A source of large files."""

    label = "large"

    def __init__(self, sizes: list[int], held: _Count) -> None:
        self._sizes, self._held = sizes, held

    async def entries(self) -> AsyncIterator[Entry | LeftOut]:
        for number, size in enumerate(self._sizes):
            yield Entry(name=f"file-{number}", size=size, mtime_ns=1)

    async def open(self, entry: Entry) -> OpenedSource:
        return _LargeFile(entry, self._held)

    async def close(self) -> None:
        """Nothing to close."""


class _InOrder(LocalEnd):
    """A target that takes files in order and holds memory of its own for each. stored: their sizes."""

    def __init__(self, path: str, held: _Count, memory: int) -> None:
        super().__init__(path)
        self._held, self._memory = held, memory
        self.stored: list[int] = []

    def memory_of(self, size: int) -> int:
        return min(size, self._memory)

    async def store(self, entry: Entry, body: Body) -> str:
        self._held.add(self._memory)
        stored = 0
        async for piece in body.stream():
            await asyncio.sleep(0)
            self._held.add(-len(piece))
            stored += len(piece)
        self._held.add(-self._memory)
        self.stored.append(stored)
        return ""


@pytest.mark.parametrize("mode", ["auto", "chunked-stream"])
@pytest.mark.parametrize("memory", [0, 3 * MIB])
def test_large_files_hold_no_more_than_the_memory_of_the_transfer(
    tmp_path: Path, mode: Literal["auto", "chunked-stream"], memory: int
) -> None:
    held = _Count()
    sizes = [44 * MIB + number for number in range(6)]
    target = _InOrder(str(tmp_path / "target"), held, memory)
    plan = Plan(mode=mode, chunk_size=20 * MIB, streams=2, max_memory=16 * MIB)

    outcome = send(_LargeFiles(sizes, held), target, tmp_path, plan)

    assert (outcome.copied, sorted(target.stored), held.now) == (6, sizes, 0)
    assert held.most <= plan.max_memory, f"{held.most / MIB} MiB"
    assert held.most >= 3 * plan.streams * MIB // 2, "files are sent one after the other although there is room"


def test_range_in_order_is_not_shortened_while_memory_suffices(tmp_path: Path) -> None:
    held = _Count()
    plan = Plan(mode="chunked-stream", chunk_size=4 * MIB, streams=2, max_memory=64 * MIB)
    send(_LargeFiles([10 * MIB], held), _InOrder(str(tmp_path / "target"), held, 0), tmp_path, plan)
    assert held.asked == [4 * MIB, 4 * MIB, 2 * MIB]


def test_one_large_file_at_a_time_goes_onto_a_grid_with_the_default_memory() -> None:
    plan = Plan()
    end = GridEnd.__new__(GridEnd)
    end._packs = True
    assert end.memory_of(1000) == 1000 and end.memory_of(2 * MIB) == 8 * MIB
    assert end.memory_of(10**9) == PUT_MEMORY
    ahead = COPIES * plan.max_memory // 8
    assert FILE_MEMORY + ahead + PUT_MEMORY <= plan.max_memory < 2 * PUT_MEMORY


def test_next_large_file_begins_while_the_grid_writes_the_end_of_the_one_before_with_the_default_memory() -> None:
    plan = Plan()
    first, last = edges_of_put(10**9, ClientSettings())
    ahead = COPIES * plan.max_memory // 8
    assert FILE_MEMORY + ahead + first + FILE_MEMORY + last <= plan.max_memory
    assert edges_of_put(MIB, ClientSettings()) == (4 * MIB, 4 * MIB)


def test_two_large_files_at_a_time_go_from_a_grid_to_s3_with_the_default_memory() -> None:
    plan, size = Plan(), 100 * 10**6
    end = ObjectEnd.__new__(ObjectEnd)
    end._uploads = _Uploads()
    ahead = COPIES * plan.max_memory // 8
    assert end.memory_of(size) == 2 * PART_SIZE and end.memory_of(MIB) == MIB
    assert 2 * (FILE_MEMORY + ahead + end.memory_of(size)) <= plan.max_memory
    assert plan.max_memory >= 2 * (READ_AHEAD + PART_SIZE) + PARTS_AT_ONCE * PART_SIZE
    assert ahead >= READ_AHEAD


class _Uploads(S3Uploads):
    """Uploads that go nowhere. most: parts that were in transit at once; failing: whether the next ones fail."""

    def __init__(self) -> None:
        super().__init__(Account(endpoint="http://s3", region="x", access_key="x", secret_key="x"), "bucket")
        self.now = self.most = self.completed = 0
        self.failing = False

    async def begin(self, key: str, headers: Mapping[str, str]) -> tuple[str, bool]:
        return key, False

    async def put_part(self, key: str, upload: str, number: int, data: Buffer, checksum: str = "") -> str:
        self.now += 1
        self.most = max(self.most, self.now)
        try:
            for _ in range(5):
                await asyncio.sleep(0)
            if self.failing:
                raise PassingError("the server is away")
        finally:
            self.now -= 1
        return "tag"

    async def complete(self, key: str, upload: str, parts: object) -> None:
        self.completed += 1

    async def abort(self, key: str, upload: str) -> None:
        """Nothing is there."""


@pytest.fixture
def uploads(monkeypatch: pytest.MonkeyPatch) -> _Uploads:
    monkeypatch.setattr("grid.transfer.s3_uploads.PART_SIZE", MIB)
    return _Uploads()


def test_uploads_side_by_side_send_as_few_parts_at_once_as_one_of_them(uploads: _Uploads) -> None:
    async def case() -> None:
        bodies = [BytesBody(os.urandom(6 * MIB)) for _ in range(3)]
        async with asyncio.timeout(30):
            await asyncio.gather(
                *(upload_in_parts(uploads, f"key-{number}", {}, body) for number, body in enumerate(bodies))
            )

    asyncio.run(case())
    assert (uploads.completed, uploads.most) == (3, PARTS_AT_ONCE)


def test_uploads_that_fail_leave_the_others_their_turns(uploads: _Uploads) -> None:
    async def case() -> None:
        uploads.failing = True
        async with asyncio.timeout(30):
            for _ in range(2 * PARTS_AT_ONCE):
                with pytest.raises(GridError):
                    await upload_in_parts(uploads, "key", {}, BytesBody(bytes(6 * MIB)))
            uploads.failing = False
            await upload_in_parts(uploads, "key", {}, BytesBody(bytes(6 * MIB)))

    asyncio.run(case())
    assert uploads.completed == 1


class _Overlapping(LocalEnd):
    """A target that reads on only while it may, and says when it has read a file. overlapped: files that began before another one had ended."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.most = self.now = 0
        self.overlapped = 0

    def memory_of(self, size: int) -> int:
        return 8 * MIB

    def edges_of(self, size: int) -> tuple[int, int]:
        return 4 * MIB, 2 * MIB

    async def store(self, entry: Entry, body: Body) -> str:
        self.now += 4 * MIB
        self.most = max(self.most, self.now)
        is_first = True
        async for _ in body.stream():
            if is_first:
                self.overlapped += self.now > 4 * MIB
                await body.memory.rest()
                self.now += 4 * MIB
                self.most = max(self.most, self.now)
            is_first = False
        self.now -= 6 * MIB
        body.memory.ended()
        for _ in range(50):
            await asyncio.sleep(0)
        self.now -= 2 * MIB
        return ""


def test_large_files_overlap_at_their_edges_and_hold_no_more_than_the_memory_of_the_transfer(tmp_path: Path) -> None:
    target = _Overlapping(str(tmp_path / "target"))
    plan = Plan(mode="stream", streams=1, max_memory=12 * MIB)
    outcome = send(_LargeFiles([3 * MIB] * 5, _Count()), target, tmp_path, plan)
    assert (outcome.copied, target.overlapped, target.now) == (5, 4, 0)
    assert target.most <= plan.max_memory
