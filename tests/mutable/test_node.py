"""Create, read, overwrite, modify: the right bytes, by every cap, whatever the encoding and size."""

from __future__ import annotations

import random

import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st

from grid.caps import DirectoryCap, MdmfWriteCap, SdmfWriteCap
from grid.engine.grid import Encoding
from grid.errors import (
    AuthorityError,
    CapError,
    ConflictError,
    FormatError,
    HoleError,
    NoServersError,
    NotEnoughSharesError,
    NotHappyError,
)
from grid.mutable.share.geometry import FormatName
from grid.sinks import BytesSink
from tests.support.mutable_grid import MutableGrid
from tests.support.scripted_slots import SlotScript

FORMATS: list[FormatName] = ["sdmf", "mdmf"]
SEGMENT = 131073
"""Of 3-of-10."""

SIZES = [0, 1, 2, 3, 4, SEGMENT - 1, SEGMENT, SEGMENT + 1, 2 * SEGMENT, 3 * SEGMENT + 1000]


def sample_bytes(size: int, seed: int = 0) -> bytes:
    return random.Random(seed).randbytes(size)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("format", FORMATS)
def test_file_when_created_then_reads_back_and_verifies_and_can_be_written_over(format: FormatName, size: int) -> None:
    grid = MutableGrid()
    cap = grid.create(sample_bytes(size), format)
    for reading in (cap, cap.read_cap(), DirectoryCap(cap)):
        assert grid.read(reading) == sample_bytes(size)
    assert grid.run(grid.open(cap.read_cap()).size()) == size
    for checking in (cap, cap.read_cap(), cap.verify_cap()):
        result = grid.run(grid.open(checking).check(verify=True))
        assert result.healthy and not result.corrupt and result.summary == "Healthy"
    for next_size in (size + 10, 5, 0, size):
        grid.run(grid.open(cap).overwrite(sample_bytes(next_size, 1)))
        assert grid.read(cap) == sample_bytes(next_size, 1)
    assert grid.run(grid.open(cap).check(verify=True)).healthy


@pytest.mark.parametrize("format", FORMATS)
def test_read_when_the_range_depends_on_the_size_then_gets_the_size_once(format: FormatName) -> None:
    grid = MutableGrid()
    cap = grid.create(sample_bytes(1000), format)
    sizes: list[int] = []

    def choose_the_end(size: int) -> tuple[int, int]:
        sizes.append(size)
        return size - 10, size

    sink = BytesSink()
    assert grid.run(grid.open(cap).read_chosen(sink, choose_the_end)) == 10
    assert bytes(sink.data) == sample_bytes(1000)[-10:]
    assert sizes == [1000]


@settings(max_examples=12)
@given(
    format=st.sampled_from(FORMATS),
    k=st.integers(1, 255),
    more=st.integers(0, 254),
    size=st.sampled_from([0, 1, 100, 131072, 300_000]),
    servers=st.integers(1, 12),
)
def test_file_when_of_any_encoding_then_reads_back(
    format: FormatName, k: int, more: int, size: int, servers: int
) -> None:
    n = min(255, k + more)
    grid = MutableGrid(servers, Encoding(k=k, n=n, happy=1))
    cap = grid.create(sample_bytes(size), format)
    assert grid.read(cap.read_cap()) == sample_bytes(size)
    grid.run(grid.open(cap).modify(lambda old, _: old + b"end"))
    if format == "mdmf":
        grid.run(grid.open(cap).update(size, b"END"))
    assert grid.read(cap) == sample_bytes(size) + (b"END" if format == "mdmf" else b"end")
    assert len(grid.shares(cap)) == n


@pytest.mark.parametrize("format", FORMATS)
def test_read_when_of_ranges_then_gives_exactly_these(format: FormatName) -> None:
    grid = MutableGrid()
    contents = sample_bytes(3 * SEGMENT + 1000)
    cap = grid.create(contents, format)
    ranges = [(0, 1), (SEGMENT - 1, 2), (SEGMENT, SEGMENT), (100, 0), (3 * SEGMENT + 999, 1), (5, 10**9), (10**9, 5)]
    for offset, length in ranges:
        sink = BytesSink()
        size = grid.run(grid.open(cap).read(sink, offset, length))
        assert bytes(sink.data) == contents[offset : offset + length]
        assert size == len(sink.data)
    with pytest.raises(ValueError, match="must not be negative"):
        grid.run(grid.open(cap).read(BytesSink(), 0, -1))


@pytest.mark.parametrize("format", FORMATS)
def test_file_when_written_by_another_configuration_then_keeps_its_own_k_and_n(format: FormatName) -> None:
    grid = MutableGrid(10, Encoding(k=3, n=10, happy=7))
    cap = grid.create(b"three of ten", format)
    other = Encoding(k=2, n=4, happy=1)
    grid.run(grid.open(cap, shape=other).modify(lambda old, _: old + b"!"))
    grid.run(grid.open(cap, shape=other).update(0, b"THREE"))
    assert grid.read(cap) == b"THREE of ten!"
    result = grid.run(grid.open(cap, shape=other).check(verify=True))
    assert result.healthy and (result.needed, result.expected) == (3, 10)


def test_modify_when_nothing_is_to_change_then_writes_nothing() -> None:
    grid = MutableGrid()
    cap = grid.create(b"same")
    before = {number: bytes(held[0][1]) for number, held in grid.shares(cap).items()}
    seen: list[tuple[bytes, bool]] = []

    def look(old: bytes, first_time: bool) -> None:
        seen.append((old, first_time))

    file = grid.open(cap)
    grid.run(file.modify(look))
    grid.run(file.modify(lambda old, _: old))
    assert seen == [(b"same", True)]
    assert {number: bytes(held[0][1]) for number, held in grid.shares(cap).items()} == before


def test_modify_when_the_function_raises_then_passes_it_on_and_lets_others_write() -> None:
    grid = MutableGrid()
    cap = grid.create(b"kept")

    def refuse(old: bytes, _: bool) -> bytes:
        raise KeyError("not there")

    with pytest.raises(KeyError):
        grid.run(grid.open(cap).modify(refuse))
    grid.run(grid.open(cap).modify(lambda old, _: old + b"!"))
    assert grid.read(cap) == b"kept!"


def test_modify_when_the_remembered_contents_are_old_then_decides_by_the_current_ones() -> None:
    grid = MutableGrid()
    cap = grid.create(b"a")
    stale = grid.open(cap)
    assert grid.run(stale.read_all()) == b"a"
    grid.run(grid.open(cap, process=1).overwrite(b"b"))
    grid.run(stale.modify(lambda old, _: None if old == b"a" else old + b"!"))
    assert grid.read(cap) == b"b!"


@pytest.mark.parametrize("format", FORMATS)
def test_write_when_the_cap_only_reads_then_names_the_write_cap(format: FormatName) -> None:
    grid = MutableGrid()
    cap = grid.create(b"contents", format)
    for weaker in (cap.read_cap(), cap.verify_cap()):
        file = grid.open(weaker)
        assert not file.is_writable
        for attempt in (
            file.overwrite(b""),
            file.modify(lambda old, _: old),
            file.update(0, b"x"),
            file.repair(),
        ):
            with pytest.raises(AuthorityError, match="use its write capability"):
                grid.run(attempt)
    with pytest.raises(AuthorityError, match="verify cap"):
        grid.run(grid.open(cap.verify_cap()).read_all())
    assert grid.read(cap) == b"contents"


def test_write_when_the_cap_is_of_the_other_format_then_refuses_and_reading_works() -> None:
    grid = MutableGrid()
    cap = grid.create(b"sdmf", "sdmf")
    assert isinstance(cap, SdmfWriteCap)
    other = MdmfWriteCap(write_key=cap.write_key, fingerprint=cap.fingerprint)
    assert grid.read(other) == b"sdmf"
    for attempt in (grid.open(other).overwrite(b"x"), grid.open(other).update(0, b"x")):
        with pytest.raises(CapError, match="use its SDMF capability"):
            grid.run(attempt)
    assert grid.read(cap) == b"sdmf"


@pytest.mark.parametrize("format", FORMATS)
def test_create_when_the_key_has_a_file_already_then_leaves_that_alone(format: FormatName) -> None:
    grid = MutableGrid()
    cap = grid.create(b"first", format)
    with pytest.raises(ConflictError):
        grid.create(b"second", format)
    assert grid.read(cap) == b"first"
    assert grid.run(grid.open(cap).check(verify=True)).healthy


def test_create_when_too_few_servers_then_writes_nothing() -> None:
    grid = MutableGrid(6)
    with pytest.raises(NotHappyError):
        grid.create(b"contents")
    assert not any(server.slots for server in grid.servers)
    grid.servers = []
    with pytest.raises(NoServersError):
        grid.create(b"contents")


def test_create_when_servers_are_not_permitted_then_uses_the_others() -> None:
    grid = MutableGrid(12)
    for server in grid.servers[:3]:
        server.identity = evolve(server.identity, upload_permit_expires=0.0)
    cap = grid.create(b"contents")
    assert not any(server.slots for server in grid.servers[:3])
    assert len(grid.shares(cap)) == 10
    assert grid.read(cap) == b"contents"


def test_create_when_the_encoding_does_not_fit_then_says_so() -> None:
    grid = MutableGrid(10, Encoding(k=3, n=256, happy=1))
    with pytest.raises(FormatError, match="255"):
        grid.create(b"contents")


def test_create_when_no_key_is_given_then_makes_one() -> None:
    from grid.mutable.create import create_mutable
    from grid.mutable.node import MutableFile

    grid = MutableGrid()
    made = [grid.run(create_mutable(b"x", grid.grid(), format="sdmf")) for _ in range(2)]
    assert made[0] != made[1]
    assert grid.runtime.cpu.calls.count("generate_key") == 3, "the third is there for the next file"
    file = MutableFile(made[0], grid.grid())
    assert grid.run(file.read_all()) == b"x"


def test_read_when_there_is_nothing_then_says_how_much_was_asked() -> None:
    grid = MutableGrid()
    cap = grid.create(b"contents")
    for server in grid.servers:
        server.slots.clear()
    with pytest.raises(NotEnoughSharesError, match="no share of the file was found on 10 servers"):
        grid.read(cap)
    for server in grid.servers:
        server.script = SlotScript(dead_from=0)
    with pytest.raises(NoServersError, match="none of 10 servers"):
        grid.read(cap)


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize(("lost", "readable"), [(7, True), (8, False)])
def test_read_when_shares_are_lost_then_works_as_long_as_k_are_left(
    format: FormatName, lost: int, readable: bool
) -> None:
    grid = MutableGrid()
    contents = sample_bytes(2 * SEGMENT)
    cap = grid.create(contents, format)
    for server in grid.servers[:lost]:
        server.slots.clear()
    if readable:
        assert grid.read(cap) == contents
    else:
        with pytest.raises(
            NotEnoughSharesError, match="only 2 shares of the directory or mutable file were found, and 3 are needed"
        ):
            grid.read(cap)


@pytest.mark.parametrize("format", FORMATS)
def test_update_when_of_any_range_then_changes_only_that(format: FormatName) -> None:
    grid = MutableGrid()
    model = bytearray(sample_bytes(3 * SEGMENT + 17))
    cap = grid.create(bytes(model), format)
    file = grid.open(cap)
    end = len(model)
    ranges = [(0, 1), (5, 1000), (SEGMENT - 1, 2), (SEGMENT, SEGMENT), (end - 17, 17), (end, 5), (100, 2 * SEGMENT)]
    ranges += [(0, 3 * SEGMENT), (end + 5, SEGMENT + 3)]
    for seed, (offset, length) in enumerate(ranges):
        data = sample_bytes(length, seed + 1)
        grid.run(file.update(offset, data))
        model[offset : offset + length] = data
        assert grid.read(cap) == model
        result = grid.run(grid.open(cap).check(verify=True))
        assert result.healthy and not result.corrupt
    grid.run(file.update(3, b""))
    with pytest.raises(HoleError, match="beyond the end"):
        grid.run(file.update(len(model) + 1, b"x"))
    assert grid.read(cap) == model


@pytest.mark.parametrize("size", [0, SEGMENT, 2 * SEGMENT, 4 * SEGMENT, 4 * SEGMENT - 1])
def test_update_when_at_the_end_of_whole_segments_then_appends_in_place(size: int) -> None:
    grid = MutableGrid()
    cap = grid.create(sample_bytes(size), "mdmf")
    seqnum = 1
    model = sample_bytes(size)
    for piece in (b"tail", sample_bytes(SEGMENT, 5), b"x"):
        grid.run(grid.open(cap).update(len(model), piece))
        model += piece
        seqnum += 1
        result = grid.run(grid.open(cap).check(verify=True))
        assert result.healthy and next(iter(result.sharemap)).startswith(f"seq{seqnum}-")
        assert grid.read(cap) == model


@settings(max_examples=15)
@given(
    size=st.integers(0, 3 * 131072),
    k=st.integers(1, 20),
    changes=st.lists(st.tuples(st.floats(0, 1), st.integers(1, 200_000)), min_size=1, max_size=4),
)
def test_update_when_of_any_file_and_range_then_the_file_matches_a_byte_array(
    size: int, k: int, changes: list[tuple[float, int]]
) -> None:
    grid = MutableGrid(4, Encoding(k=k, n=k + 3, happy=1))
    model = bytearray(sample_bytes(size))
    cap = grid.create(bytes(model), "mdmf")
    file = grid.open(cap)
    for seed, (place, length) in enumerate(changes):
        offset, data = int(place * len(model)), sample_bytes(length, seed)
        grid.run(file.update(offset, data))
        model[offset : offset + length] = data
    assert grid.read(cap) == model
    result = grid.run(grid.open(cap).check(verify=True))
    assert result.healthy and not result.corrupt
