"""Consumers that stand before a consumer."""

from __future__ import annotations

from grid.sinks import CountingSink
from tests.support.scripted_grid import MemorySink


async def test_counting_sink_when_written_to_passes_all_on_and_counts_it() -> None:
    sink = MemorySink()
    counting = CountingSink(sink)
    for piece in (b"ab", b"", bytearray(b"cde")):
        await counting.write(piece)
    assert (counting.written, bytes(sink.data)) == (5, b"abcde")
