"""Files many times larger than the memory for them, counted byte by byte as it is allocated.

The whole process at a gigabyte is measured in perf/; these are the bounds that make its figure what it is.
"""

from __future__ import annotations

import gc
import mmap
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from grid.caps import KnownCap
from grid.engine.batches import READ_BYTES
from grid.engine.grid import Encoding
from grid.mutable import publish
from grid.mutable.read import read_plan
from grid.mutable.write import stream_plan
from grid.ports import Buffer, TestWrite
from tests.support.long_files import Comparing, Repeated
from tests.support.mutable_grid import MutableGrid
from tests.support.scripted_slots import SlotServer

SIZE = 100_000_000
MEBIBYTE = 2**20


@contextmanager
def at_most(limit: int) -> Iterator[None]:
    """Within it, no more bytes than that are allocated at any moment beyond those at its start."""
    gc.collect()
    tracemalloc.start()
    try:
        yield
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak <= limit, f"{peak / MEBIBYTE:.0f} MiB at once, {limit / MEBIBYTE:.0f} at most"


class ForgetfulServer(SlotServer):
    """Remembers the front of each share, and counts the rest."""

    def _apply(self, slot: dict[int, bytearray], number: int, write: TestWrite) -> None:
        self.written_bytes += sum(len(data) for _, data in write.writes)
        for offset, data in write.writes:
            if offset < 2000:
                share = slot.setdefault(number, bytearray(2000))
                share[offset : offset + len(data)] = data


class MappedShare:
    """A share in memory that is not counted as anybody's."""

    def __init__(self, room: int) -> None:
        self._map = mmap.mmap(-1, room)
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, part: slice) -> bytes:
        return self._map[slice(*part.indices(self._size))]

    def write(self, offset: int, data: Buffer) -> None:
        self._map[offset : offset + len(data)] = bytes(data)
        self._size = max(self._size, offset + len(data))

    def cut(self, size: int) -> None:
        self._size = min(size, self._size)


class MappedServer(SlotServer):
    """Keeps its shares where they are not counted."""

    def _apply(self, slot: dict[int, bytearray], number: int, write: TestWrite) -> None:
        share = slot.setdefault(number, MappedShare(2**24))  # type: ignore[arg-type]
        assert isinstance(share, MappedShare)
        for offset, data in write.writes:
            share.write(offset, data)
        if write.new_length is not None:
            share.cut(write.new_length)


def test_overwrite_when_large_then_holds_a_few_batches_of_shares(monkeypatch: pytest.MonkeyPatch) -> None:
    batch = 4 * MEBIBYTE
    monkeypatch.setattr(publish, "WHOLE_BYTES", batch)
    monkeypatch.setattr(stream_plan, "WRITE_BYTES", batch)
    monkeypatch.setattr(stream_plan, "LIVE_BYTES", 2 * batch)
    grid = MutableGrid(10)
    servers = [MappedServer(f"server{index}", grid.runtime.clock) for index in range(10)]
    for index, server in enumerate(servers):
        server.script.delay_s = 0.1 + 0.1 * index
    grid.servers[:] = servers
    cap = grid.create(Repeated(12_000_000), "mdmf")
    source = Repeated(12_000_000, 2)
    file = grid.open(cap)
    # Two batches of shares, and of a third one its text: as it came, proven, and on its way to the encoder.
    with at_most(3 * batch):
        grid.run(file.overwrite(source))
    sink = Comparing(source)
    with at_most(2 * read_plan.WINDOW_BYTES):
        grid.run(grid.open(cap).read(sink))
    assert sink.taken == source.size


def test_create_when_of_a_hundred_megabytes_then_holds_a_few_batches_of_shares() -> None:
    grid, source = MutableGrid(10), Repeated(SIZE)
    servers = [ForgetfulServer(f"server{index}", grid.runtime.clock) for index in range(10)]
    for index, server in enumerate(servers):
        server.script.delay_s = 0.1 + 0.1 * index
    grid.servers[:] = servers
    with at_most(stream_plan.LIVE_BYTES + stream_plan.WRITE_BYTES + 4 * MEBIBYTE):
        grid.create(source, "mdmf")
    assert all(server.written_bytes >= SIZE // 3 for server in servers)


@pytest.fixture(scope="module")
def stored() -> tuple[MutableGrid, KnownCap, Repeated]:
    """A file of a hundred megabytes on five servers."""
    grid, source = MutableGrid(5, Encoding(n=5, happy=3)), Repeated(SIZE)
    return grid, grid.create(source, "mdmf"), source


def test_read_when_the_consumer_is_slow_then_holds_a_window(stored: tuple[MutableGrid, KnownCap, Repeated]) -> None:
    grid, cap, source = stored

    class Slow(Comparing):
        async def write(self, data: object) -> None:
            await grid.runtime.clock.sleep(5.0)
            await super().write(data)  # type: ignore[arg-type]

    sink = Slow(source)
    with at_most(2 * (read_plan.WINDOW_BYTES + READ_BYTES)):
        assert grid.run(grid.open(cap.read_cap()).read(sink)) == SIZE
    assert sink.taken == SIZE


def test_verify_when_of_a_hundred_megabytes_then_holds_a_little(stored: tuple[MutableGrid, KnownCap, Repeated]) -> None:
    grid, cap, _ = stored
    with at_most(48 * MEBIBYTE):
        assert grid.run(grid.open(cap).check(verify=True)).healthy


def test_update_when_of_a_hundred_megabytes_then_holds_what_changes(
    stored: tuple[MutableGrid, KnownCap, Repeated],
) -> None:
    grid, cap, source = stored
    offset = SIZE // 2
    same = grid.run(source.read_at(offset, 1024))
    with at_most(4 * MEBIBYTE):
        grid.run(grid.open(cap).update(offset, same))
    sink = Comparing(source, offset - 1000)
    grid.run(grid.open(cap).read(sink, offset - 1000, 3000))
    assert sink.taken == 3000
