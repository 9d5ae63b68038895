"""Costs of operations, in round trips and bytes."""

from __future__ import annotations

import random
from typing import Any

import pytest

from grid.engine.batches import WIDE_READ_BYTES
from grid.engine.grid import Encoding
from grid.engine.requests import Request
from grid.mutable.node import Modifier
from grid.mutable.read import layout_cache
from grid.mutable.read.read_plan import ReadPlan
from grid.mutable.read.segment_batch import Batch
from grid.mutable.share import hash_rows, segment_run
from grid.mutable.share.geometry import FormatName
from grid.sinks import BytesSink
from tests.support.long_files import Repeated
from tests.support.mutable_grid import MutableGrid
from tests.support.scripted_slots import SlotScript

SEGMENT = 131073
BLOCK = SEGMENT // 3 + 16


def calls(grid: MutableGrid) -> list[int]:
    """How often each server was called, most first."""
    return sorted((len(server.calls) for server in grid.servers), reverse=True)


def adder(entry: bytes) -> Modifier:
    """What adds the entry at the end."""
    return lambda old, _: old + entry


@pytest.mark.parametrize("format", ["sdmf", "mdmf"])
@pytest.mark.parametrize(("size", "round_trips"), [(0, 1), (40_000, 1), (SEGMENT, 2)])
def test_read_when_of_one_segment_then_takes_at_most_two_round_trips(
    format: FormatName, size: int, round_trips: int
) -> None:
    grid = MutableGrid()
    cap = grid.create(bytes(size), format)
    for process, reading in enumerate((cap, cap.read_cap()), 1):
        grid.reset_counts()
        assert grid.run(grid.open(reading, process=process).read_all()) == bytes(size)
        assert calls(grid)[0] == round_trips
        assert sum(calls(grid)) == 10 + 3 * (round_trips - 1)


@pytest.mark.parametrize("format", ["sdmf", "mdmf"])
def test_modify_when_right_after_a_read_then_takes_one_round_trip(format: FormatName) -> None:
    grid = MutableGrid()
    cap = grid.create(b"entries", format)
    file = grid.open(cap)
    grid.run(file.read_all())
    for entry in (b", one", b", two", b", three"):
        grid.reset_counts()
        grid.run(file.modify(adder(entry)))
        assert {tuple(server.calls) for server in grid.servers} == {("test_and_write",)}
    assert grid.read(cap) == b"entries, one, two, three"
    fresh = grid.open(cap)
    grid.reset_counts()
    grid.run(fresh.modify(lambda old, _: old + b"."))
    assert {tuple(server.calls) for server in grid.servers} == {("read_slot", "test_and_write")}


def test_create_when_small_then_takes_one_round_trip() -> None:
    for count in (10, 4):
        grid = MutableGrid(count, Encoding(happy=3))
        grid.create(b"small")
        assert {tuple(server.calls) for server in grid.servers} == {("test_and_write",)}


@pytest.mark.parametrize(
    ("offset", "length"),
    [(500_000, 1024), (4 * SEGMENT - 500, 1024), (4 * SEGMENT, 3 * SEGMENT + 9), (999_000, 1024), (0, 1024)],
)
def test_update_when_the_file_is_not_known_then_asks_each_server_three_times_and_no_more(
    offset: int, length: int
) -> None:
    grid = MutableGrid()
    old = random.Random(7).randbytes(1_000_000)
    cap = grid.create(old, "mdmf")
    file = grid.open(cap, process=1)
    grid.reset_counts()
    grid.run(file.update(offset, b"x" * length))
    assert {tuple(server.calls) for server in grid.servers} == {("read_slot", "read_slot", "test_and_write")}
    assert grid.read(cap) == old[:offset] + b"x" * length + old[offset + length :]


def test_update_when_blocks_that_came_with_hashes_are_bad_then_reads_others() -> None:
    grid = MutableGrid()
    old = random.Random(8).randbytes(1_000_000)
    cap = grid.create(old, "mdmf")
    for server in grid.servers[:2]:
        held = server.slots[cap.storage_index]
        server.script = SlotScript(corrupt={(number, 2167 + 3 * BLOCK + 20): 1 for number in held})
    grid.run(grid.open(cap).update(3 * SEGMENT + 5, b"new"))
    assert grid.read(cap) == old[: 3 * SEGMENT + 5] + b"new" + old[3 * SEGMENT + 8 :]


@pytest.mark.parametrize("size", [100 * SEGMENT + 5, 100_000_000])
def test_update_when_one_kilobyte_of_a_large_file_then_moves_two_blocks_and_few_hashes(size: int) -> None:
    """Of each share: the blocks of at most two segments, the row of hashes over each of them, and its front."""
    grid = MutableGrid(5, Encoding(n=5, happy=2))
    source = Repeated(size)
    cap = grid.create(source, "mdmf")
    file = grid.open(cap)
    height = (-(-size // SEGMENT) - 1).bit_length()
    front = 700
    middle = size // SEGMENT // 2 * SEGMENT
    for offset, segments in ((middle + 77, 1), (middle + SEGMENT - 500, 2)):
        grid.run(file.size())
        grid.reset_counts()
        grid.run(file.update(offset, bytes(1024)))
        rows = segments * (height + 1) * (32 + hash_rows.GAP_BYTES)
        for server in grid.servers:
            assert 1024 // 3 < server.written_bytes <= segments * (BLOCK + 32 * (height + 1)) + front
            assert server.read_bytes <= segments * BLOCK + 2 * (rows + front)
            assert server.calls.count("test_and_write") == 1
        expected = bytearray(grid.run(source.read_at(offset - 100, 1224)))
        expected[100:1124] = bytes(1024)
        sink = BytesSink()
        grid.run(grid.open(cap.read_cap()).read(sink, offset - 100, 1224))
        assert sink.data == expected
    grid.reset_counts()
    grid.run(file.update(size, b"appended"))
    tree = 32 * (2 ** (height + 1) - 1)
    assert all(server.written_bytes <= BLOCK + tree + front for server in grid.servers)
    sink = BytesSink()
    grid.run(grid.open(cap).read(sink, size - 3))
    assert sink.data == grid.run(source.read_at(size - 3, 3)) + b"appended"


def test_read_when_of_a_byte_in_a_long_file_then_fetches_one_block_of_k_shares() -> None:
    grid = MutableGrid()
    contents = random.Random(1).randbytes(60 * SEGMENT)
    cap = grid.create(contents, "mdmf")
    grid.reset_counts()
    sink = BytesSink()
    grid.run(grid.open(cap.read_cap(), process=1).read(sink, 30 * SEGMENT, 1))
    assert sink.data == contents[30 * SEGMENT : 30 * SEGMENT + 1]
    assert sum(calls(grid)) == 13
    heads = 10 * layout_cache.FIRST_READ
    assert sum(server.read_bytes for server in grid.servers) <= heads + 3 * (BLOCK + 8 * 1100)


def test_read_when_long_then_sends_a_message_a_batch_and_opens_each_once() -> None:
    grid = MutableGrid()
    contents = random.Random(1).randbytes(150 * SEGMENT)
    cap = grid.create(contents, "mdmf")
    grid.reset_counts()
    assert grid.run(grid.open(cap.read_cap(), process=1).read_all()) == contents
    batches = grid.process(1).cpu.calls.count("open")
    assert batches <= 8
    assert sum(calls(grid)) == 10 + 3 * batches
    stored = 150 * BLOCK * 3
    fetched = sum(server.read_bytes for server in grid.servers) - 10 * layout_cache.FIRST_READ
    assert stored <= fetched <= stored + 3 * (32 * 511 + 1000)


def test_read_when_several_batches_come_at_once_then_proves_the_hashes_of_each_share_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    grid = MutableGrid()
    contents = random.Random(1).randbytes(100 * SEGMENT)
    cap = grid.create(contents, "mdmf")
    proven: list[int] = []

    def prove(*arguments: Any) -> None:
        proven.append(arguments[2])
        hash_rows.prove_chunk(*arguments)

    monkeypatch.setattr(segment_run, "prove_chunk", prove)
    assert grid.read(cap.read_cap()) == contents
    assert proven and len(proven) == len(set(proven))


def test_read_when_there_are_many_shares_then_looks_at_each_batch_a_few_times(monkeypatch: pytest.MonkeyPatch) -> None:
    grid = MutableGrid(20, Encoding(k=20, n=40, happy=20))
    contents = random.Random(1).randbytes(40 * 2**20)
    cap = grid.create(contents, "mdmf")
    looked: list[Batch] = []
    fetch = ReadPlan._fetch

    def counted(plan: ReadPlan, batch: Batch, now: float) -> list[Request]:
        looked.append(batch)
        return fetch(plan, batch, now)

    monkeypatch.setattr(ReadPlan, "_fetch", counted)
    assert grid.read(cap.read_cap()) == contents
    assert len(set(looked)) >= len(contents) // WIDE_READ_BYTES
    assert len(looked) <= 2 * len(set(looked))
