"""Consumers in front of other consumers."""

from __future__ import annotations

import tracemalloc

from grid.sinks import CountingSink, FrozenBytesSink
from tests.support.scripted_grid import MemorySink


async def test_counting_sink_when_written_to_passes_all_on_and_counts_it() -> None:
    sink = MemorySink()
    counting = CountingSink(sink)
    for piece in (b"ab", b"", bytearray(b"cde")):
        await counting.write(piece)
    assert (counting.written, bytes(sink.data)) == (5, b"abcde")


async def test_bytes_sink_when_taken_gives_all_and_copies_nothing() -> None:
    sink, piece, count = FrozenBytesSink(), b"x" * 2**16, 128
    tracemalloc.start()
    try:
        for _ in range(count):
            await sink.write(memoryview(piece))
        tracemalloc.reset_peak()
        before, _ = tracemalloc.get_traced_memory()
        taken = sink.take()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert taken == piece * count
    assert peak - before < 2**20
