"""Listings of very many files, on disks, at object stores and on the grid: in memory that does not grow with them."""

from __future__ import annotations

import asyncio
import os
import shutil
import tracemalloc
from collections.abc import Coroutine, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from grid.caps import ChkCap, DirectoryCap, LitCap, SliceCap
from grid.directory.pack import Child
from grid.extents.ciphers import decrypt_slice
from grid.extents.reader import ExtentReader
from grid.ports import Sink
from grid.sinks import BytesSink
from grid.transfer.ends import Entry, SourceEnd
from grid.transfer.grid_end import GridEnd
from grid.transfer.local_end import LocalEnd
from grid.transfer.object_end import LISTED_AT_ONCE, open_object_end
from tests.transfer.conftest import require
from tests.transfer.scripted_s3 import BUCKET, PAGE, NumberedNames, ScriptedS3, long_page, scripted_s3

MILLION = pytest.param(10**6, marks=[pytest.mark.deep, pytest.mark.timeout(3600)])
COUNTS = pytest.mark.parametrize("count", [30_000, MILLION])
AHEAD = 3
"""Pages that may be fetched before they are wanted."""

MIB = 2**20


async def take(end: SourceEnd, count: int, look: Any = lambda taken: None) -> None:
    """List everything, looking now and then; every name comes once, in order of its number."""
    taken = 0
    async for found in end.entries():
        assert isinstance(found, Entry)
        assert found.name.endswith(f"{taken:07}")
        taken += 1
        if taken % PAGE == 0:
            look(taken)
    assert taken == count


def peak_of(case: Coroutine[Any, Any, None]) -> int:
    """The most memory that Python had allocated for it."""
    tracemalloc.start()
    try:
        asyncio.run(case)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@COUNTS
def test_listing_of_a_bucket_is_asked_for_page_by_page_as_it_is_taken(
    count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    require("obstore")
    assert LISTED_AT_ONCE == PAGE
    state = ScriptedS3(page_of=partial(long_page, NumberedNames(range(count))))

    def look(taken: int) -> None:
        assert len(state.asked) <= taken // PAGE + AHEAD, "pages were fetched long before they were wanted"

    with scripted_s3(state) as environment:
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        peak = peak_of(take(open_object_end(f"s3://{BUCKET}/in"), count, look))
        assert len(state.asked) == count // PAGE
    assert peak < 16 * MIB, peak


@pytest.mark.parametrize("count", [10_000, MILLION])
def test_listing_of_a_local_directory_holds_few_entries_at_a_time(count: int, tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    for number in range(count):
        os.close(os.open(f"{folder}/file-{number:07}", os.O_CREAT | os.O_WRONLY))

    async def take_all() -> None:
        taken = 0
        async for found in LocalEnd(str(folder)).entries():
            assert isinstance(found, Entry)
            taken += 1
        assert taken == count

    peak = peak_of(take_all())
    shutil.rmtree(folder)
    assert peak < 2 * MIB, peak


class _Session:
    """A grid of one directory, which has many others, each with a thousand files."""

    def __init__(self, count: int) -> None:
        self.folders = count // PAGE

    async def store(self) -> _Session:
        return self

    async def run(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        return await coroutine

    def directory(self, cap: DirectoryCap) -> _Directory:
        return _Directory(cap, self.folders)


def folder_cap(number: int) -> DirectoryCap:
    """The capability of one of the directories, which is literal."""
    return DirectoryCap(body=LitCap(data=b"%07d" % number))


class _Directory:
    def __init__(self, cap: DirectoryCap, folders: int) -> None:
        self._cap, self._folders = cap, folders

    async def list(self) -> Mapping[str, Child]:
        assert isinstance(self._cap.body, LitCap)
        number = int(self._cap.body.data)
        if number == self._folders:
            # The one listed last is looked into first.
            return {f"folder-{each:07}": Child(target=folder_cap(each)) for each in reversed(range(self._folders))}
        return {
            f"file-{each:07}": Child(target=LitCap(data=b"%07d" % each))
            for each in range(number * PAGE, (number + 1) * PAGE)
        }


@COUNTS
def test_listing_of_a_tree_on_the_grid_holds_one_directory_at_a_time(count: int) -> None:
    session: Any = _Session(count)
    end = GridEnd(session, folder_cap(session.folders), [], "work:")
    peak = peak_of(take(end, count))
    assert peak < 16 * MIB, peak


SHUFFLED = 617
"""A step that reaches every file of a directory of a thousand, far from the one before."""


def packed(number: int) -> SliceCap:
    """A file of a pack: those with neighboring names lie far from each other."""
    pack = ChkCap(key=bytes(16), ueb_hash=bytes(32), needed=1, total=1, size=PAGE * 1024)
    return SliceCap(pack=pack, offset=number * SHUFFLED % PAGE * 1024, length=1024, key=bytes(16))


class _PackedSession(_Session):
    """A grid of one directory, whose files lie in a pack of zeros. calls: to the client."""

    def __init__(self) -> None:
        super().__init__(0)
        self.calls = 0
        self._reader = ExtentReader(self._read_chk)

    async def run(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        self.calls += 1
        return await coroutine

    def directory(self, cap: DirectoryCap) -> Any:
        return self

    async def read_around(self, cap: SliceCap) -> tuple[int, bytes | memoryview]:
        return await self._reader.read_around(cap)

    async def _read_chk(self, cap: ChkCap, sink: Sink, offset: int, length: int, segment_size: int) -> None:
        await sink.write(bytes(length))

    async def list(self) -> Mapping[str, Child]:
        return {f"file-{number:07}": Child(target=packed(number)) for number in range(PAGE)}


async def test_pack_whose_files_are_read_as_listed_is_read_once_in_few_requests() -> None:
    end = GridEnd(session := _PackedSession(), folder_cap(0), [], "work:")  # type: ignore[arg-type]
    listed = [found.name async for found in end.entries() if isinstance(found, Entry)]
    caps = {name: child.target for name, child in (await session.list()).items()}
    assert sorted(listed) == sorted(caps)
    asked: list[int] = []

    async def read_chk(cap: ChkCap, sink: Sink, offset: int, length: int, segment_size: int) -> None:
        asked.append(length)
        await sink.write(bytes(length))

    reader = ExtentReader(read_chk)
    for name in listed:
        cap = caps[name]
        assert isinstance(cap, SliceCap)
        await reader.read(cap, BytesSink())
    assert sum(asked) == PAGE * 1024
    assert len(asked) < 10, "one request for each file, or nearly"


def test_files_of_a_pack_are_read_with_few_calls_to_the_client() -> None:
    session = _PackedSession()
    end = GridEnd(session, folder_cap(0), [], "work:")  # type: ignore[arg-type]

    async def case() -> None:
        async for found in end.entries():
            assert isinstance(found, Entry)
            opened = await end.open(found)
            whole = b"".join([bytes(piece) async for piece in opened.read(0, 1024)])
            assert whole == decrypt_slice(bytes(16), bytes(1024))
            assert [bytes(piece) async for piece in opened.read(1000, 100)] == [whole[1000:]]
            assert not [piece async for piece in opened.read(1024, 1)]

    asyncio.run(case())
    assert session.calls < 20, f"{session.calls} calls for {PAGE} files"


def test_files_of_a_pack_when_read_together_come_from_the_same_few_calls() -> None:
    session = _PackedSession()
    end = GridEnd(session, folder_cap(0), [], "work:")  # type: ignore[arg-type]

    async def case() -> None:
        found = [each async for each in end.entries() if isinstance(each, Entry)]
        assert all(map(end.reads_together, found))
        for begin in range(0, PAGE, 32):
            for data in await end.read_together(found[begin : begin + 32]):
                assert data == decrypt_slice(bytes(16), bytes(1024))

    asyncio.run(case())
    assert session.calls < 20, f"{session.calls} calls for {PAGE} files"


def test_files_of_a_pack_when_read_together_in_any_order_cost_a_call_for_each_group() -> None:
    session = _PackedSession()
    end = GridEnd(session, folder_cap(0), [], "work:")  # type: ignore[arg-type]

    async def case() -> None:
        found = [each async for each in end.entries() if isinstance(each, Entry)]
        listed = session.calls
        for begin in reversed(range(0, PAGE, 32)):
            for data in await end.read_together(found[begin : begin + 32][::-1]):
                assert data == decrypt_slice(bytes(16), bytes(1024))
        assert session.calls - listed <= -(-PAGE // 32)

    asyncio.run(case())


def test_local_directory_is_listed_in_the_order_of_names(tmp_path: Path) -> None:
    names = [f"file-{number * SHUFFLED % PAGE:07}" for number in range(PAGE)]
    for name in names:
        (tmp_path / name).touch()

    async def case() -> None:
        await take(LocalEnd(str(tmp_path)), PAGE)

    asyncio.run(case())
