"""One file, opened again and again by processes with a layout cache."""

from __future__ import annotations

import random

from grid.caps import KnownCap, StorageIndex
from grid.mutable.read.layout_cache import KnownFile, KnownFiles
from grid.sinks import BytesSink
from tests.support.mutable_grid import MutableGrid

SEGMENT = 131073
BLOCK = SEGMENT // 3 + 16
SIZE = 1_000_000
OLD = random.Random(7).randbytes(SIZE)
AT = 3 * SEGMENT + 77
ONCE = ("read_slot",)
TWICE = ("read_slot", "test_and_write")


def calls(grid: MutableGrid) -> set[tuple[str, ...]]:
    return {tuple(server.calls) for server in grid.servers}


def changed(text: bytes, offset: int, data: bytes) -> bytes:
    return text[:offset] + data + text[offset + len(data) :]


def update(grid: MutableGrid, cap: KnownCap, offset: int, data: bytes, process: int = 0) -> None:
    """Through a newly opened file; calls and bytes are counted from here on."""
    grid.reset_counts()
    grid.run(grid.open(cap, process=process).update(offset, data))


def read(grid: MutableGrid, cap: KnownCap, offset: int, length: int | None = None, process: int = 0) -> bytes:
    """Through a newly opened file; calls and bytes are counted from here on."""
    grid.reset_counts()
    sink = BytesSink()
    grid.run(grid.open(cap, process=process).read(sink, offset, length))
    return bytes(sink.data)


def known(grid: MutableGrid, cap: KnownCap, process: int = 0) -> KnownFile | None:
    assert cap.storage_index is not None
    return grid.grid(process).remembered.of(KnownFiles).get(cap.storage_index)


def index_of(cap: KnownCap) -> StorageIndex:
    assert cap.storage_index is not None
    return cap.storage_index
