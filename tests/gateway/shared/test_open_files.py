"""Immutable files that stay open between requests."""

from __future__ import annotations

import pytest

from grid.caps import ChkCap
from grid.errors import GridError, NotEnoughSharesError
from grid.gateway.shared.open_files import KEPT_FILES, KEPT_S, KEPT_SIZE, OpenFiles
from grid.ports import Buffer, ignore_events
from tests.support.scripted_grid import MemorySink, ScriptedGrid, noise

SIZE = 3_000_000


class Reader:
    """Files that stay open on a grid, and how many requests a read takes."""

    def __init__(self) -> None:
        self.grid = ScriptedGrid()
        self.files = OpenFiles(self.grid.grid)

    def store(self, size: int = SIZE) -> ChkCap:
        """A new file."""
        return self.grid.store(noise(size), segment_size=2**17).cap

    def read(self, cap: ChkCap, start: int, length: int) -> tuple[bytes, int]:
        """The bytes, and the questions that went to all servers."""
        before = sum(len(server.calls) for server in self.grid.servers)
        sink = MemorySink()
        count = self.grid.virtual.run(self.files.read(cap, sink, start, length, ignore_events))
        assert count == len(sink.data)
        return bytes(sink.data), sum(len(server.calls) for server in self.grid.servers) - before

    def later(self, seconds: float) -> None:
        """Let time pass."""
        self.grid.virtual.run(self.grid.runtime.clock.sleep(seconds))


def test_file_when_another_range_is_read_then_shares_are_not_looked_for_again() -> None:
    reader = Reader()
    cap = reader.store()
    first, questions = reader.read(cap, 0, 5000)
    second, fewer = reader.read(cap, 2_500_000, 5000)
    assert (first, second) == (noise(SIZE)[:5000], noise(SIZE)[2_500_000:2_505_000])
    assert fewer < questions


def test_file_when_a_minute_passes_or_servers_come_then_is_reopened() -> None:
    for change in ("time", "servers"):
        reader = Reader()
        cap = reader.store()
        _, anew = reader.read(cap, 0, 5000)
        if change == "time":
            reader.later(KEPT_S)
        else:
            del reader.grid.servers[-1]
        assert reader.read(cap, 0, 5000) == (noise(SIZE)[:5000], anew)


def test_file_when_its_shares_have_moved_then_is_located_again() -> None:
    reader = Reader()
    cap = reader.store()
    reader.read(cap, 0, 5000)
    for index, server in enumerate(reader.grid.servers[:7]):
        reader.grid.servers[9 - index % 3].shares.setdefault(cap.storage_index, {}).update(
            server.shares.pop(cap.storage_index)
        )
    assert reader.read(cap, 1_500_000, 5000)[0] == noise(SIZE)[1_500_000:1_505_000]


def test_file_when_it_is_lost_then_says_so_each_time() -> None:
    reader = Reader()
    cap = reader.store()
    reader.read(cap, 0, 5000)
    for server in reader.grid.servers:
        server.shares.clear()
    for _ in range(2):
        with pytest.raises(NotEnoughSharesError):
            reader.read(cap, 2_500_000, 5000)


def test_file_when_its_reader_fails_then_is_not_read_again() -> None:
    class Failing:
        writes = 0

        async def write(self, data: Buffer) -> None:
            self.writes += 1
            raise GridError("gone")

    reader = Reader()
    cap, sink = reader.store(), Failing()
    reader.read(cap, 0, 5000)
    with pytest.raises(GridError, match="gone"):
        reader.grid.virtual.run(reader.files.read(cap, sink, 0, 5000, ignore_events))
    assert sink.writes == 1


def test_files_when_there_are_many_then_the_oldest_are_forgotten() -> None:
    reader = Reader()
    first = reader.store(KEPT_SIZE)
    _, anew = reader.read(first, 0, 10)
    for size in range(KEPT_SIZE + 1, KEPT_SIZE + 1 + KEPT_FILES):
        reader.read(reader.store(size), 0, 10)
    assert reader.read(first, 0, 10)[1] == anew


def test_file_when_it_is_small_then_is_not_kept() -> None:
    reader = Reader()
    cap = reader.store(KEPT_SIZE - 1)
    assert reader.read(cap, 0, 10)[1] == reader.read(cap, 0, 10)[1]


def test_file_when_it_is_long_then_each_chunk_waits_for_its_taker() -> None:
    reader = Reader()
    cap = reader.grid.store(noise(20_000_000)).cap
    for delay_s in (0.0, 0.2):
        sink = MemorySink(reader.grid.runtime, delay_s)
        reader.grid.virtual.run(reader.files.read(cap, sink, 1, cap.size, ignore_events))
        assert sink.data == noise(20_000_000)[1:]
        questions = [index for index, size in enumerate(sink.write_sizes) if not size]
        assert len(questions) == (1 if not delay_s else 3)
        assert sum(sink.write_sizes[: questions[0]]) == 16 * 2**20 // 1048578 * 1048578 - 1
