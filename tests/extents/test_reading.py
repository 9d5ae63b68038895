"""Slices and sequences on an in-memory grid: reading, its cost, and damage. [spec extents]"""

from __future__ import annotations

import gc
import random
import weakref
from collections.abc import Sequence

import pytest
from twisted.internet.defer import Deferred, gatherResults

from grid.caps import ChkCap, LitCap, SequenceCap, SliceCap, parse_cap
from grid.directory.file_store import FileStore
from grid.engine.grid import Encoding
from grid.errors import CapError, GridError, IntegrityError
from grid.extents.files import open_immutable
from grid.extents.pack_writer import SEGMENT_SIZE, PackContents
from grid.extents.table import HEAD, Part, pack_table
from grid.mutable.sources import MemorySource
from grid.sinks import BytesSink
from grid.storage.files.memory_disk import MemoryDisk
from tests.support.tree_grid import CONVERGENCE, TreeGrid

RANDOM = random.Random(14)
FILES = [RANDOM.randbytes(RANDOM.randrange(56, 4000)) for _ in range(300)]


@pytest.fixture(scope="module")
def grid() -> TreeGrid:
    """One grid for all tests here."""
    return TreeGrid()


def put_pack(grid: TreeGrid, files: Sequence[bytes], secret: bytes | None = CONVERGENCE) -> list[SliceCap]:
    """The files in one pack."""
    contents = PackContents(secret, grid.runtime.entropy.random_bytes)
    extents = [contents.add(data) for data in files]
    pack = grid.run(grid.store.put_immutable(MemorySource(bytes(contents.data)), segment_size=SEGMENT_SIZE))
    return [extent.slice_of(pack) for extent in extents]


@pytest.fixture(scope="module")
def slices(grid: TreeGrid) -> list[SliceCap]:
    """All FILES in one pack."""
    return put_pack(grid, FILES)


def contents(
    grid: TreeGrid,
    cap: SliceCap | SequenceCap,
    offset: int = 0,
    length: int | None = None,
    store: FileStore | None = None,
) -> bytes:
    """What a new client, or this one, reads."""
    gathering = BytesSink()
    count = grid.run((store or grid.client()).read(cap, gathering, offset, length))
    assert count == len(gathering.data)
    return bytes(gathering.data)


def put_sequence(grid: TreeGrid, parts: Sequence[Part]) -> SequenceCap:
    """A sequence of these parts."""
    table = grid.run(grid.store.put_immutable(MemorySource(pack_table(parts))))
    return SequenceCap(size=sum(part.length for part in parts), table=table)


def sent_bytes(grid: TreeGrid) -> int:
    """Bytes that came in answers since the last call."""
    total = sum(event.count for event in grid.events if event.what == "answer")
    grid.events.clear()
    return total


def test_slice_when_read_whole_or_in_part_gives_its_file(grid: TreeGrid, slices: list[SliceCap]) -> None:
    for index in (0, 1, 150, 299):
        data, cap = FILES[index], slices[index]
        assert cap.size == len(data)
        assert contents(grid, cap) == data
        assert contents(grid, cap, 17, 30) == data[17:47]
        assert contents(grid, cap, len(data) - 1) == data[-1:]
        assert contents(grid, cap, len(data)) == b""
        opened = open_immutable(cap, grid.store.grid)
        gathering = BytesSink()
        assert grid.run(opened.read(gathering, 3, 4)).size == 4
        assert bytes(gathering.data) == data[3:7]


def test_slices_when_read_one_after_the_other_fetch_their_pack_once(grid: TreeGrid, slices: list[SliceCap]) -> None:
    store = grid.client()
    assert [contents(grid, cap, store=store) for cap in slices] == FILES
    reader = store._extents.packs
    assert reader.fetched_bytes == slices[0].pack.size


def test_slices_when_read_at_once_fetch_their_pack_once(grid: TreeGrid, slices: list[SliceCap]) -> None:
    store = grid.client()
    sinks = [BytesSink() for _ in slices]

    async def read_all() -> None:
        reads = [Deferred.fromCoroutine(store.read(cap, sink)) for cap, sink in zip(slices, sinks, strict=True)]
        await gatherResults(reads)

    grid.run(read_all())
    assert [bytes(sink.data) for sink in sinks] == FILES
    assert store._extents.packs.fetched_bytes == slices[0].pack.size


def test_slice_when_it_is_read_alone_costs_a_few_segments(grid: TreeGrid, slices: list[SliceCap]) -> None:
    size = slices[0].pack.size
    assert size > 25 * SEGMENT_SIZE
    grid.events.clear()
    store = grid.client()
    assert contents(grid, slices[150], store=store) == FILES[150]
    assert store._extents.packs.fetched_bytes == len(FILES[150])
    grid.events.clear()
    assert contents(grid, slices[20], store=store) == FILES[20]
    assert sent_bytes(grid) < 6 * SEGMENT_SIZE


def test_slice_when_nobody_reads_it_any_more_is_freed_without_a_collection(
    grid: TreeGrid, slices: list[SliceCap]
) -> None:
    opened = open_immutable(slices[150], grid.store.grid)
    grid.run(opened.read(BytesSink()))
    kept = weakref.ref(opened)
    gc.disable()
    try:
        del opened
        assert kept() is None
    finally:
        gc.enable()


def test_pack_when_files_are_equal_holds_them_once(grid: TreeGrid) -> None:
    first, second, third = put_pack(grid, [b"a" * 100, b"b" * 100, b"a" * 100])
    assert first == third != second
    assert first.pack.size == 200
    distinct = put_pack(grid, [b"a" * 100, b"b" * 100, b"a" * 100], None)
    assert distinct[0].pack.size == 300
    assert len({cap.key for cap in distinct}) == 3
    assert contents(grid, distinct[2]) == b"a" * 100


def test_slice_when_another_key_is_used_gives_other_bytes(grid: TreeGrid, slices: list[SliceCap]) -> None:
    stolen = SliceCap(pack=slices[0].pack, offset=slices[1].offset, length=slices[1].length, key=slices[0].key)
    assert contents(grid, stolen) != FILES[1]


def test_sequence_when_read_in_any_range_gives_its_parts(grid: TreeGrid, slices: list[SliceCap]) -> None:
    large = RANDOM.randbytes(300_000)
    chk = grid.run(grid.store.put_immutable(MemorySource(large)))
    assert isinstance(chk, ChkCap)
    parts = [
        Part.whole(LitCap(data=b"head")),
        Part(cap=chk, offset=1000, length=200_000),
        *(Part.whole(cap) for cap in slices[:100]),
        Part(cap=slices[7], offset=3, length=50),
        Part.whole(chk),
    ]
    whole = b"head" + large[1000:201_000] + b"".join(FILES[:100]) + FILES[7][3:53] + large
    cap = put_sequence(grid, parts)
    assert contents(grid, cap) == whole
    for offset, length in ((0, 1), (3, 2), (200_000, 10_000), (len(whole) - 1, 5), (5, 0), (len(whole), 1)):
        assert contents(grid, cap, offset, length) == whole[offset : offset + length]


def test_sequence_when_its_table_is_wrong_is_refused_in_one_line(grid: TreeGrid, slices: list[SliceCap]) -> None:
    good = put_sequence(grid, [Part.whole(slices[0])])
    nested = HEAD + f"{good.to_string().removeprefix('imm.')} 0 {good.size}\n".encode()
    cases = [
        (nested, good.size),
        (HEAD + b"URI:SSK:%b:%b 0 100\n" % (b"a" * 26, b"a" * 52), 100),
        (b"x" * 100, 5),
        (HEAD + b"URI:LIT:me 0 1\n" * 70_000, 70_000),
    ]
    for data, size in cases:
        table = grid.run(grid.store.put_immutable(MemorySource(data)))
        cap = SequenceCap(size=size, table=table)
        with pytest.raises(IntegrityError, match="this sequence cannot be read") as caught:
            contents(grid, cap)
        assert "URI:" not in str(caught.value)
    # A table that is too long is refused before anything is asked for.
    grid.events.clear()
    endless = ChkCap(key=bytes(16), ueb_hash=bytes(32), needed=3, total=10, size=2**40)
    with pytest.raises(CapError):
        contents(grid, SequenceCap(size=5, table=endless))
    assert not grid.events


def test_slice_when_its_numbers_are_wrong_is_refused_before_anything_is_asked(
    grid: TreeGrid, slices: list[SliceCap]
) -> None:
    grid.events.clear()
    size = slices[0].pack.size
    for offset, length in ((0, 0), (size, 1), (size - 1, 2), (2**62, 2**62)):
        cap = SliceCap(pack=slices[0].pack, offset=offset, length=length, key=bytes(16))
        with pytest.raises(CapError, match="damaged"):
            contents(grid, cap)
    assert not grid.events


def test_pack_when_its_middle_is_damaged_still_gives_the_slices_beside() -> None:
    grid = TreeGrid(count=3)
    grid.encoding = Encoding(k=3, n=3, happy=1)
    store = grid.client()
    contents_ = PackContents(CONVERGENCE, grid.runtime.entropy.random_bytes)
    extents = [contents_.add(data) for data in FILES]
    pack = grid.run(store.put_immutable(MemorySource(bytes(contents_.data)), segment_size=SEGMENT_SIZE))
    slices = [extent.slice_of(pack) for extent in extents]
    damage_middle(grid)
    reader = grid.client()
    read: list[int] = []
    failed: list[str] = []
    for index, cap in enumerate(slices):
        try:
            assert contents(grid, cap, store=reader) == FILES[index]
            read.append(index)
        except GridError as error:
            failed.append(str(error))
    assert 0 < len(failed) < len(slices) // 4
    assert len(read) + len(failed) == len(slices)
    assert 0 in read
    assert len(slices) - 1 in read
    assert all("URI:" not in text for text in failed)
    health = grid.run(grid.client().check(slices[0], verify=True))
    assert not health.recoverable


def damage_middle(grid: TreeGrid) -> None:
    """Flip one byte in the middle of every share."""
    for disk in grid.disks:
        for path in share_paths(disk, "shares"):
            handle = disk.open_file(path, writable=True)
            middle = disk.size(handle) // 3
            (byte,) = disk.read(handle, middle, 1)
            disk.write(handle, middle, [bytes([byte ^ 1])])
            disk.close_file(handle)


def share_paths(disk: MemoryDisk, folder: str) -> list[str]:
    """The files of all shares."""
    found = []
    for name, is_directory in disk.list_directory(folder):
        path = f"{folder}/{name}"
        if name != "incoming":
            found += share_paths(disk, path) if is_directory else [path]
    return found


def test_slice_when_checked_or_repaired_has_the_health_of_its_pack(grid: TreeGrid, slices: list[SliceCap]) -> None:
    store = grid.client()
    found = grid.run(store.check(slices[3], verify=True))
    assert found.healthy
    assert found.to_json() == grid.run(store.check(slices[0].pack, verify=True)).to_json()
    assert parse_cap(slices[3].verify_cap().to_string()) == slices[0].pack.verify_cap()
    repaired = grid.run(store.repair(slices[3]))
    assert not repaired.attempted
