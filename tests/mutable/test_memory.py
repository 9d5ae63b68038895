"""Files many times larger than what is held of them, counted octet by octet as they are allocated.

The whole process at a gigabyte is measured in perf/; these are the bounds that make its figure what it is.
"""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from grid.caps import KnownCap
from grid.mutable import readplan, streamplan
from grid.ports import TestWrite
from tests.support.long_files import Comparing, Repeated
from tests.support.mutable_grid import MutableGrid, Shape
from tests.support.scripted_slots import SlotServer

SIZE = 100_000_000
MEBIBYTE = 2**20


@contextmanager
def at_most(limit: int) -> Iterator[None]:
    """Within it, no more octets than that are allocated at any moment beyond those at its start."""
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


def test_create_when_of_a_hundred_megabytes_then_holds_a_few_batches_of_shares() -> None:
    grid, source = MutableGrid(10), Repeated(SIZE)
    servers = [ForgetfulServer(f"server{index}", grid.runtime.clock) for index in range(10)]
    for index, server in enumerate(servers):
        server.script.delay_s = 0.1 + 0.1 * index
    grid.servers[:] = servers
    with at_most(streamplan.LIVE_BYTES + streamplan.BATCH_BYTES + 4 * MEBIBYTE):
        grid.create(source, "mdmf")
    assert all(server.written_bytes >= SIZE // 3 for server in servers)


@pytest.fixture(scope="module")
def stored() -> tuple[MutableGrid, KnownCap, Repeated]:
    """A file of a hundred megabytes on three servers."""
    grid, source = MutableGrid(3, Shape(n=3, happy=3)), Repeated(SIZE)
    return grid, grid.create(source, "mdmf"), source


def test_read_when_the_consumer_is_slow_then_holds_a_window(stored: tuple[MutableGrid, KnownCap, Repeated]) -> None:
    grid, cap, source = stored

    class Slow(Comparing):
        async def write(self, data: object) -> None:
            await grid.runtime.clock.sleep(5.0)
            await super().write(data)  # type: ignore[arg-type]

    sink = Slow(source)
    with at_most(2 * readplan.WINDOW_BYTES + 8 * MEBIBYTE):
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
