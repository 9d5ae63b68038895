"""Reading intact files: sizes, encodings, ranges, consumers, caps."""

from __future__ import annotations

import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st

from grid.caps import ChkCap, LitCap
from grid.engine.batches import READ_BYTES
from grid.engine.flow_window import WINDOW_BYTES
from grid.errors import CapError, GridError, NoServersError, NotEnoughSharesError
from grid.immutable.get import ImmutableFile
from tests.support.depth import examples
from tests.support.scripted_grid import MemorySink, ScriptedGrid, noise

SEGMENT = 1200


@pytest.mark.parametrize(
    "size", [1, 2, 55, 56, SEGMENT - 1, SEGMENT, SEGMENT + 1, 2 * SEGMENT, 10 * SEGMENT + 7, 100_001]
)
@pytest.mark.parametrize(("k", "n"), [(1, 1), (3, 10), (4, 4), (7, 10)])
def test_get_when_all_is_well_gives_the_file(size: int, k: int, n: int) -> None:
    grid = ScriptedGrid()
    data = noise(size)
    file = grid.store(data, k=k, n=n, segment_size=SEGMENT)
    assert grid.get(file.cap) == data


@pytest.mark.parametrize(("k", "n"), [(1, 256), (2, 3), (25, 100), (128, 256), (255, 256), (256, 256)])
def test_get_when_there_are_many_shares_gives_the_file(k: int, n: int) -> None:
    grid = ScriptedGrid(20)
    data = noise(20_011)
    file = grid.store(data, k=k, n=n, segment_size=5000)
    assert grid.get(file.cap) == data


@pytest.mark.parametrize("missing", [[0], [0, 1, 2], [1, 5, 9], list(range(7)), list(range(3, 10))])
def test_get_when_shares_are_missing_decodes_the_others(missing: list[int]) -> None:
    grid = ScriptedGrid()
    data = noise(100_000)
    holdings = {index: [index] for index in range(10) if index not in missing}
    file = grid.store(data, segment_size=7000, holdings=holdings)
    assert grid.get(file.cap) == data


def test_get_when_the_writer_had_another_segment_size_finds_the_layout() -> None:
    grid = ScriptedGrid()
    data = noise(1_000_003)
    file = grid.store(data, segment_size=131072)
    assert grid.get(file.cap) == data
    assert grid.get(file.cap, 999_999, 1) == data[999_999:1_000_000]


def test_get_when_the_hash_trees_have_many_chunks_fetches_each_once() -> None:
    grid = ScriptedGrid()
    data = noise(60_000)
    file = grid.store(data, segment_size=9)
    assert file.geometry.segment_count > 6 * 1024
    assert grid.get(file.cap) == data
    assert grid.get(file.cap, 30_000, 20_000) == data[30_000:50_000]
    # Six to seven chunks of 32 KiB in two trees, once per share number in use and once for the file.
    assert sum(server.read_bytes for server in grid.servers) < 3_000_000


def test_get_when_the_cap_has_size_0_writes_nothing_and_asks_nobody() -> None:
    grid = ScriptedGrid()
    cap = ChkCap(key=bytes(16), ueb_hash=bytes(32), needed=3, total=10, size=0)
    assert grid.get(cap) == b""
    assert not any(server.calls for server in grid.servers)


def test_get_when_the_file_is_literal_asks_nobody() -> None:
    grid = ScriptedGrid()
    assert grid.get(LitCap(data=b"in the cap"), 3, 3) == b"the"
    assert not any(server.calls for server in grid.servers)


@pytest.mark.parametrize(
    ("needed", "total", "size"), [(0, 10, 100), (11, 10, 100), (3, 257, 100), (300, 300, 100), (3, 10, 2**70)]
)
def test_open_when_the_numbers_of_the_cap_are_impossible_says_so(needed: int, total: int, size: int) -> None:
    grid = ScriptedGrid()
    cap = ChkCap(key=bytes(16), ueb_hash=bytes(32), needed=needed, total=total, size=size)
    with pytest.raises(CapError):
        grid.open(cap)


def test_get_when_the_size_is_enormous_but_possible_finds_no_shares() -> None:
    grid = ScriptedGrid()
    cap = ChkCap(key=bytes(16), ueb_hash=bytes(32), needed=3, total=10, size=2**62)
    with pytest.raises(NotEnoughSharesError, match=r"none of \d+ servers has a share of it \(3 are needed"):
        grid.get(cap)


def test_get_when_there_is_no_server_says_so() -> None:
    grid = ScriptedGrid(0)
    cap = ChkCap(key=bytes(16), ueb_hash=bytes(32), needed=3, total=10, size=100)
    with pytest.raises(NoServersError):
        grid.get(cap)


def test_get_when_every_server_is_dead_says_that_none_was_reached() -> None:
    grid = ScriptedGrid()
    file = grid.store(noise(1000))
    for index in range(10):
        grid.script(index, dead_from=0)
    with pytest.raises(NoServersError, match="none of 10 servers"):
        grid.get(file.cap)


@settings(max_examples=examples(60))
@given(data=st.data())
def test_read_when_given_a_range_gives_exactly_that(data: st.DataObject) -> None:
    grid = ScriptedGrid()
    text = noise(SEGMENT * 5 + 17)
    opened = grid.open(grid.store(text, segment_size=SEGMENT).cap)
    for _ in range(3):
        offset = data.draw(st.integers(0, len(text) + 10))
        length = data.draw(st.none() | st.integers(0, len(text) + 10))
        stop = None if length is None else offset + length
        assert grid.read(opened, offset, length)[0] == text[offset:stop]


def test_read_when_the_range_is_negative_is_the_callers_fault() -> None:
    grid = ScriptedGrid()
    opened = grid.open(grid.store(noise(1000)).cap)
    with pytest.raises(ValueError, match="range"):
        grid.read(opened, -1)
    with pytest.raises(ValueError, match="range"):
        grid.read(opened, 0, -1)


def test_read_when_repeated_reuses_what_is_proven() -> None:
    grid = ScriptedGrid()
    text = noise(3_000_000)
    opened = grid.open(grid.store(text, segment_size=100_000).cap)
    assert grid.read(opened, 0, 10)[0] == text[:10]
    for server in grid.servers:
        server.calls.clear()
        server.read_bytes = 0
    assert grid.read(opened, 2_500_000, 10)[0] == text[2_500_000:2_500_010]
    assert sum(server.calls.count("read_shares") for server in grid.servers) == 3
    assert sum(server.calls.count("find_shares") for server in grid.servers) == 0
    # Three blocks, and the hashes of a share that was not in use before.
    assert 0 <= sum(server.read_bytes for server in grid.servers) - 3 * 33334 <= 3 * 32 * 30


def test_read_when_two_run_at_once_gives_both() -> None:
    grid = ScriptedGrid()
    text = noise(500_000)
    opened = grid.open(grid.store(text, segment_size=100_000).cap)
    sinks = [MemorySink(), MemorySink()]

    async def both() -> None:
        from twisted.internet.defer import Deferred, gatherResults

        reads = [opened.read(sinks[0], 0, 300_000), opened.read(sinks[1], 200_000)]
        await gatherResults([Deferred.fromCoroutine(read) for read in reads])

    grid.virtual.run(both())
    assert sinks[0].data == text[:300_000]
    assert sinks[1].data == text[200_000:]


def test_read_when_the_cap_only_verifies_gives_the_ciphertext() -> None:
    grid = ScriptedGrid()
    text = noise(5000)
    file = grid.store(text, segment_size=SEGMENT)
    ciphertext = grid.get(file.cap.verify_cap())
    assert len(ciphertext) == len(text)
    assert ciphertext != text


def test_read_when_the_sink_is_slow_keeps_a_bounded_window() -> None:
    grid = ScriptedGrid()
    text = noise(64 * 2**20)
    file = grid.store(text, k=1, n=1, holdings={0: [0]})
    sink = MemorySink(grid.runtime, delay_s=1.0)
    ahead: list[int] = []

    async def read() -> None:
        await ImmutableFile(file.cap, evolve(grid.grid, servers=grid.servers[:1])).read(
            sink, observer=lambda event: ahead.append(grid.servers[0].read_bytes - len(sink.data))
        )

    grid.virtual.run(read())
    assert sink.data == text
    assert max(ahead) <= WINDOW_BYTES + 2 * READ_BYTES
    assert max(sink.write_sizes) <= READ_BYTES + 2**20


def test_size_of_segments_is_the_likely_one_until_a_read_has_proven_it() -> None:
    grid = ScriptedGrid()
    opened = grid.open(grid.store(noise(5 * 2**20), segment_size=2**19).cap)
    likely = opened.segment_size
    grid.read(opened, offset=0, length=1)
    assert (likely, opened.segment_size) == (2**20 + 2, 2**19 + 1)
    assert grid.open(LitCap(data=b"short")).segment_size == 5


def test_reads_that_end_with_segments_fetch_no_more_bytes_than_one_read() -> None:
    grid = ScriptedGrid()
    text = noise(24 * 2**20)
    cap = grid.store(text).cap

    def fetched_by(step: int) -> int:
        before = sum(server.read_bytes for server in grid.servers)
        opened = grid.open(cap)
        for begin in range(0, len(text), step):
            assert grid.read(opened, offset=begin, length=step)[0] == text[begin : begin + step]
        return sum(server.read_bytes for server in grid.servers) - before

    whole, aligned, crooked = map(fetched_by, (len(text), 4 * (2**20 + 2), 4 * 2**20))
    assert aligned < 1.02 * whole and crooked > 1.15 * whole


def test_read_when_the_sink_fails_ends_with_its_error() -> None:
    grid = ScriptedGrid()
    file = grid.store(noise(100_000), segment_size=10_000)
    sink = MemorySink(room=25_000)
    with pytest.raises(GridError, match="the disk is full"):
        grid.read(grid.open(file.cap), sink=sink)
    assert bytes(sink.data) == noise(100_000)[: len(sink.data)]
    grid.settle()


def test_read_when_the_sink_fails_with_its_own_error_passes_it_on() -> None:
    class Closed(MemorySink):
        async def write(self, data: object) -> None:
            raise BrokenPipeError("the reader went away")

    grid = ScriptedGrid()
    opened = grid.open(grid.store(noise(100_000)).cap)
    with pytest.raises(BrokenPipeError):
        grid.read(opened, sink=Closed())
    assert grid.read(opened)[0] == noise(100_000)


def test_read_when_it_failed_once_can_be_tried_again() -> None:
    grid = ScriptedGrid()
    text = noise(100_000)
    opened = grid.open(grid.store(text).cap)
    for index in range(10):
        grid.script(index, dead_from=0)
    with pytest.raises(NoServersError):
        grid.read(opened)
    for index in range(10):
        grid.script(index)
    assert grid.read(opened)[0] == text
