"""Prefetching: it saves a round trip if the memory is right, and costs only bytes if not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate, pairwise

import pytest
from attrs import evolve

from grid.caps import StorageIndex
from grid.engine.grid import Encoding
from grid.mutable.read import layout_cache
from grid.mutable.read.layout_cache import FIRST_READ, KnownFile, KnownFiles
from grid.mutable.read.map_plan import MapMode
from grid.mutable.read.segment_batch import ranges_of_read
from grid.mutable.share import mdmf
from grid.mutable.share.geometry import FormatName, Geometry
from grid.mutable.share.layout import parse_header
from grid.mutable.share.offset_table import SIGNATURE_SIZE, ShareTable
from grid.mutable.share.versions import VersionMap
from grid.mutable.update import speculate_update
from grid.ports import Buffer, Range, ServerId, ShareNumber
from grid.sinks import BytesSink
from tests.mutable.speculating import (
    AT,
    BLOCK,
    OLD,
    ONCE,
    SEGMENT,
    SIZE,
    TWICE,
    calls,
    changed,
    index_of,
    known,
    read,
    update,
)
from tests.support.long_files import Repeated
from tests.support.mutable_grid import MutableGrid
from tests.support.scripted_slots import SlotServer


@pytest.mark.parametrize(
    ("offset", "length"),
    [(500_000, 1024), (4 * SEGMENT - 500, 1024), (4 * SEGMENT, SEGMENT), (999_000, 1024), (0, 1024), (SIZE, 10)],
)
@pytest.mark.parametrize("learned", ["created", "read", "changed"])
def test_update_when_the_file_is_known_then_takes_two_round_trips(offset: int, length: int, learned: str) -> None:
    grid = MutableGrid()
    cap = grid.create(OLD, "mdmf")
    process = 0 if learned == "created" else 1
    if learned == "read":
        grid.run(grid.open(cap, process=1).size())
    elif learned == "changed":
        grid.run(grid.open(cap, process=1).update(offset, b"w" * length))
    update(grid, cap, offset, b"x" * length, process)
    assert calls(grid) == {TWICE}
    hashes = 10 * 15 * 32
    fronts = 10 * mdmf.DATA_OFFSET
    # Where all of a segment is replaced, nothing of the old one is read.
    blocks = 0 if length == SEGMENT or offset == SIZE else 3 * BLOCK * (2 if offset == 4 * SEGMENT - 500 else 1)
    tail = 3 * BLOCK if offset == SIZE else 0
    assert sum(server.read_bytes for server in grid.servers) <= fronts + blocks + hashes + tail
    assert grid.read(cap) == changed(OLD, offset, b"x" * length)
    result = grid.run(grid.open(cap).check(verify=True))
    assert result.healthy and not result.corrupt


def test_update_when_the_file_is_known_and_of_a_hundred_megabytes_then_takes_two_round_trips() -> None:
    grid = MutableGrid(5, Encoding(n=5, happy=2))
    source = Repeated(100_000_000)
    cap = grid.create(source, "mdmf")
    for offset in (50_000_000, 400 * SEGMENT - 10, 100_000_000):
        update(grid, cap, offset, bytes(1024))
        assert calls(grid) == {TWICE}
        if offset < source.size:
            expected = bytearray(grid.run(source.read_at(offset - 100, 1224)))
            expected[100:1124] = bytes(1024)
            assert read(grid, cap.read_cap(), offset - 100, 1224) == expected
    assert read(grid, cap, source.size - 3) == grid.run(source.read_at(source.size - 3, 3)) + bytes(1024)


@pytest.mark.parametrize(("offset", "length"), [(AT, 1), (0, 5), (4 * SEGMENT - 5, 10), (SIZE - 5, None)])
def test_read_when_the_file_is_known_and_the_range_is_small_then_takes_one_round_trip(
    offset: int, length: int | None
) -> None:
    grid = MutableGrid()
    cap = grid.create(OLD, "mdmf")
    for reading in (cap, cap.read_cap()):
        assert read(grid, reading, offset, length) == (
            OLD[offset:] if length is None else OLD[offset : offset + length]
        )
        assert calls(grid) == {ONCE}
        assert sum(server.read_bytes for server in grid.servers) <= 10 * mdmf.DATA_OFFSET + 3 * (2 * BLOCK + 480)


@pytest.mark.parametrize("format", ["sdmf", "mdmf"])
def test_file_when_known_and_longer_than_its_front_then_is_read_in_one_round_trip_and_modified_in_two(
    format: FormatName,
) -> None:
    grid = MutableGrid()
    text = OLD[:200_000]
    cap = grid.create(text, format)
    assert read(grid, cap, 0) == text and calls(grid) == {ONCE}
    grid.reset_counts()
    grid.run(grid.open(cap).modify(lambda old, _: old + b"!"))
    assert calls(grid) == {TWICE}
    grid.reset_counts()
    grid.run(grid.open(cap).overwrite(text[::-1]))
    assert calls(grid) == {TWICE}
    assert read(grid, cap, 0) == text[::-1] and calls(grid) == {ONCE}


def test_read_when_the_range_is_long_then_prefetches_only_a_shorter_front() -> None:
    grid = MutableGrid()
    text = OLD + OLD
    cap = grid.create(text, "mdmf")
    assert read(grid, cap.read_cap(), 0) == text
    first = sum(server.read_bytes for server in grid.servers)
    assert first <= 10 * mdmf.DATA_OFFSET + 3 * (16 * BLOCK + 1500)


class ViewingServer(SlotServer):
    """Its answers are views of one message, as those of the wire are."""

    async def read_slot(
        self, storage_index: StorageIndex, share_numbers: frozenset[ShareNumber], ranges: Sequence[Range]
    ) -> Mapping[ShareNumber, Sequence[Buffer]]:
        answer = await super().read_slot(storage_index, share_numbers, ranges)
        message = memoryview(b"".join(bytes(piece) for pieces in answer.values() for piece in pieces))
        views: dict[ShareNumber, Sequence[Buffer]] = {}
        for number, pieces in answer.items():
            cuts = [0, *accumulate(map(len, pieces))]
            views[number] = [message[start:stop] for start, stop in pairwise(cuts)]
            message = message[cuts[-1] :]
        return views


def test_file_when_kept_open_then_holds_no_bytes_that_came_early() -> None:
    grid = MutableGrid()
    grid.servers[:] = [ViewingServer(f"server{index}", grid.runtime.clock) for index in range(10)]
    cap = grid.create(OLD, "mdmf")
    file = grid.open(cap)
    sink = BytesSink()
    grid.run(file.read(sink, AT, 500))
    assert file._memory is not None
    assert not any(share.pieces for share in file._memory.sightings)
    for share in file._memory.sightings:
        held = memoryview(share.head).obj
        assert isinstance(held, bytes) and len(held) <= FIRST_READ


def test_memory_when_many_files_are_met_then_keeps_the_last_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    grid = MutableGrid()
    cap = grid.create(OLD, "mdmf")
    found = grid.run(grid.open(cap)._session.find(MapMode.READ))
    files = KnownFiles()
    monkeypatch.setattr(layout_cache, "MOST_FILES", 3)
    indexes = [StorageIndex(bytes([number]) * 16) for number in range(6)]
    for index in indexes:
        files.note(index, found, lambda _: False)
        files.note(indexes[0], found, lambda _: False)
    assert len(files) == 3
    assert [index for index in indexes if files.get(index)] == [indexes[0], *indexes[4:]]
    files.note(indexes[0], VersionMap(servers=[]), lambda _: False)
    assert files.get(indexes[0]) is None and len(files) == 2


def test_memory_when_a_server_is_slow_then_counts_on_others() -> None:
    grid = MutableGrid()
    cap = grid.create(OLD, "mdmf")
    found = grid.run(grid.open(cap)._session.find(MapMode.READ))
    files = KnownFiles()
    slow = {share.server_id for share in found.sightings if share.number in {0, 2}}
    files.note(index_of(cap), found, slow.__contains__)
    there = files.get(index_of(cap))
    assert there is not None and len(there.holders) == 3 and not slow & there.holders.keys()


def test_memory_when_the_file_is_small_then_has_no_entry() -> None:
    for format in ("sdmf", "mdmf"):
        grid = MutableGrid()
        cap = grid.create(b"small", format)
        assert grid.read(cap) == b"small"
        assert known(grid, cap) is None


def test_speculation_when_it_would_be_many_bytes_or_ranges_then_is_of_the_front_only() -> None:
    geometry = Geometry.of_file(1, 10 * 2**20, 3, 10)
    table = mdmf.plan_table(geometry, 294, 1216)

    def of(holders: dict[ServerId, int]) -> KnownFile:
        return KnownFile(geometry=geometry, table=table, holders=holders, crowd=max(holders.values()))

    spread = of({ServerId("a"): 1, ServerId("b"): 1, ServerId("c"): 1})
    near = spread.speculate_read(SEGMENT, 2 * SEGMENT)
    assert near.ranges(ServerId("a"))[0] == (0, mdmf.DATA_OFFSET) and len(near.of_holders) > 0
    assert near.ranges(ServerId("d")) == [(0, mdmf.DATA_OFFSET)]
    wanted = ranges_of_read(geometry, table, SEGMENT, 2 * SEGMENT)
    for offset, size in wanted:
        assert any(start <= offset and offset + size <= start + length for start, length in near.of_holders)
    for too_much in (
        spread.speculate_read(0, 8 * SEGMENT),
        of({ServerId("a"): 20}).speculate_read(0, SEGMENT),
        spread.speculate([], [(5000 * number, 5) for number in range(1, 60)]),
        spread.speculate_nothing(),
    ):
        assert too_much.ranges(ServerId("a")) == [(0, mdmf.DATA_OFFSET)]


def test_speculation_when_an_update_would_read_many_hashes_or_odd_segments_then_is_of_the_front_only() -> None:
    def of(geometry: Geometry) -> KnownFile:
        table = mdmf.plan_table(geometry, 294, 1216)
        return KnownFile(geometry=geometry, table=table, holders={ServerId("a"): 1}, crowd=1)

    usual = of(Geometry.of_file(1, 2 * 10**9, 3, 10))
    assert speculate_update(usual, 10**9, 10).everywhere
    odd = of(Geometry(version=1, size=30_000, k=3, n=10, segment_size=3))
    for nothing in (
        speculate_update(usual, 2 * 10**9, 10),
        speculate_update(usual, 2 * 10**9 + 1, 10),
        speculate_update(usual, 0, 10**9),
        speculate_update(odd, 100, 10),
        odd.speculate_read(0, None),
    ):
        assert not nothing.everywhere and not nothing.of_holders and nothing.front == mdmf.DATA_OFFSET
    assert odd.speculate_read(0, 900).of_holders


def test_memory_when_one_share_lies_elsewhere_than_the_others_then_is_of_the_others() -> None:
    grid = MutableGrid()
    cap = grid.create(OLD, "mdmf")
    there = known(grid, cap)
    share = grid.share(cap, 0)
    _, table = parse_header(share)
    for at in (59 + 8 * 6, 59 + 8 * 7):
        share[at + 5] ^= 0x40
    assert parse_header(share)[1] != table
    assert read(grid, cap, AT, 500) == OLD[AT : AT + 500]
    after = known(grid, cap)
    assert there is not None and after is not None
    assert after.table == table and len(after.holders) == 3 and after.holders != there.holders
    assert read(grid, cap, AT, 500) == OLD[AT : AT + 500]
    assert calls(grid) == {ONCE}


def tiny_table(table: ShareTable) -> ShareTable:
    """One that its file may have, with no room for keys."""
    start, end = mdmf.HEADER_SIZE, mdmf.HEADER_SIZE + SIGNATURE_SIZE
    tree = end + table.data[1]
    return ShareTable(
        private_key=(start, 0),
        chain=(start, 0),
        signature=(start, SIGNATURE_SIZE),
        public_key=(end, 0),
        data=(end, table.data[1]),
        block_tree=(tree, table.block_tree[1]),
        eof=tree + table.block_tree[1],
    )


def test_memory_when_one_server_shows_many_shares_that_lie_elsewhere_then_is_of_the_others() -> None:
    grid = MutableGrid()
    cap = grid.create(OLD, "mdmf")
    found = grid.run(grid.open(cap)._session.find(MapMode.READ))
    liar, *honest = found.sightings
    lies = [evolve(liar, number=ShareNumber(number), table=tiny_table(liar.table)) for number in range(10)]
    files = KnownFiles()
    files.note(index_of(cap), evolve(found, sightings=[*lies, *honest]), lambda _: False)
    there = files.get(index_of(cap))
    assert there is not None and there.table == liar.table and liar.server_id not in there.holders


@pytest.mark.parametrize("format", ["sdmf", "mdmf"])
def test_memory_when_as_many_servers_say_another_table_then_is_of_the_standard_one(format: FormatName) -> None:
    grid = MutableGrid()
    cap = grid.create(OLD[:200_000], format)
    found = grid.run(grid.open(cap)._session.find(MapMode.READ))
    standard = found.sightings[0].table
    odd = evolve(standard, chain=(standard.chain[0], standard.chain[1] + 34))
    half = [evolve(share, table=odd) if place < 5 else share for place, share in enumerate(found.sightings)]
    for sightings in (half, half[::-1]):
        files = KnownFiles()
        files.note(index_of(cap), evolve(found, sightings=sightings), lambda _: False)
        there = files.get(index_of(cap))
        assert there is not None and there.table == standard


def test_memory_when_every_table_has_keys_that_fit_nowhere_then_has_the_one_of_most_servers() -> None:
    grid = MutableGrid()
    cap = grid.create(OLD, "mdmf")
    found = grid.run(grid.open(cap)._session.find(MapMode.READ))
    table = found.sightings[0].table
    odd = evolve(table, private_key=(table.private_key[0], 5000))
    files = KnownFiles()
    files.note(index_of(cap), evolve(found, sightings=[evolve(s, table=odd) for s in found.sightings]), lambda _: False)
    there = files.get(index_of(cap))
    assert there is not None and there.table == odd


def test_front_when_the_table_leaves_no_room_for_keys_then_still_holds_usual_keys() -> None:
    geometry = Geometry.of_file(1, 10 * 2**20, 3, 10)
    table = tiny_table(mdmf.plan_table(geometry, 294, 1216))
    there = KnownFile(geometry=geometry, table=table, holders={ServerId("a"): 3}, crowd=3)
    assert there.speculate_nothing().front == layout_cache.USUAL_FRONT == mdmf.DATA_OFFSET


def test_speculation_when_a_server_that_is_no_holder_has_many_shares_then_counts_what_it_would_send() -> None:
    grid = MutableGrid(2, Encoding(k=1, n=10, happy=1))
    cap = grid.create(OLD, "mdmf")
    found = grid.run(grid.open(cap)._session.find(MapMode.READ))
    few, many = (server.identity.server_id for server in grid.servers)
    sightings = [evolve(share, server_id=many if share.number else few) for share in found.sightings]
    files = KnownFiles()
    files.note(index_of(cap), evolve(found, sightings=sightings), {many}.__contains__)
    there = files.get(index_of(cap))
    assert there is not None and there.holders.keys() == {few}
    data, size = there.table.data[0], layout_cache.MOST_SHARE_BYTES
    assert not there.speculate([(data, size)], [(data, size)]).of_holders
    assert there.speculate([(data, size // 9)], [(data, size)]).of_holders == [(data, size)]
    both = there.speculate([(data, size // 4)], [(data, size // 4)])
    assert both.ranges(many) == both.ranges(few) == [(0, mdmf.DATA_OFFSET)]
    part = layout_cache.MOST_MESSAGE_BYTES // 9
    assert there.speculate([(data, part)], []).ranges(many)[1:] == [(data, part)]


def test_speculation_when_a_server_has_shares_of_another_table_too_then_counts_them() -> None:
    grid = MutableGrid(2, Encoding(k=1, n=10, happy=1))
    cap = grid.create(OLD, "mdmf")
    found = grid.run(grid.open(cap)._session.find(MapMode.READ))
    one, other = (server.identity.server_id for server in grid.servers)
    share = found.sightings[0]
    odd = evolve(share, server_id=one, table=tiny_table(share.table))
    sightings = [evolve(share, server_id=server_id) for server_id in (one, other)]
    sightings += [evolve(odd, number=ShareNumber(number)) for number in range(20, 28)]
    files = KnownFiles()
    files.note(index_of(cap), evolve(found, sightings=sightings), lambda _: False)
    there = files.get(index_of(cap))
    assert there is not None and there.holders == {one: 9}
    assert not there.speculate([], [(there.table.data[0], layout_cache.MOST_SHARE_BYTES)]).of_holders
