"""One interface for every kind of file: storing, reading, sizing, checking and repairing by capability."""

from __future__ import annotations

import random

import pytest
from attrs import evolve

from grid.caps import (
    ChkCap,
    DirectoryCap,
    KnownCap,
    LitCap,
    MdmfWriteCap,
    SdmfWriteCap,
    UnknownChild,
    parse_cap,
)
from grid.directory import file_store
from grid.directory.file_store import KEEP, Keep
from grid.directory.pack import Child
from grid.errors import AuthorityError, CapError, FormatError, GridError, MustBeDeepImmutableError, NoServersError
from grid.mutable.sources import MemorySource
from grid.ports import Event, StorageServer
from grid.sinks import BytesSink
from tests.support.tree_grid import TreeGrid

DATA = random.Random(1).randbytes(3000)
LIT = LitCap(data=b"small")


@pytest.fixture(scope="module")
def grid() -> TreeGrid:
    """One grid for all tests here."""
    return TreeGrid()


def contents(grid: TreeGrid, cap: KnownCap, offset: int = 0, length: int | None = None) -> bytes:
    """What a new client reads."""
    sink = BytesSink()
    count = grid.run(grid.client().read(cap, sink, offset, length))
    assert count == len(sink.data)
    return bytes(sink.data)


def every_kind(grid: TreeGrid, data: bytes) -> list[KnownCap]:
    """The same contents stored in every way."""
    store = grid.store
    return [
        grid.run(store.put_immutable(MemorySource(data))),
        grid.run(store.put_mutable(data)),
        grid.run(store.put_mutable(MemorySource(data), format="mdmf")),
    ]


@pytest.mark.parametrize("data", [b"", b"small", DATA])
def test_file_when_stored_in_any_way_then_is_read_whole_and_in_part(grid: TreeGrid, data: bytes) -> None:
    kinds = every_kind(grid, data)
    assert [type(cap) for cap in kinds] == [ChkCap if len(data) > 55 else LitCap, SdmfWriteCap, MdmfWriteCap]
    for cap in [*kinds, *(cap.read_cap() for cap in kinds)]:
        assert contents(grid, cap) == data
        assert contents(grid, cap, 2, 100) == data[2:102]
        assert grid.run(grid.client().size(cap)) == len(data)


def test_file_when_immutable_then_convergence_decides_whether_its_cap_is_the_same(grid: TreeGrid) -> None:
    def put(convergence: bytes | Keep | None = KEEP) -> KnownCap:
        return grid.run(grid.store.put_immutable(MemorySource(DATA), convergence=convergence))

    assert put() == put() == put(convergence=grid.store.grid.convergence)
    assert len({put(), put(convergence=None), put(convergence=None), put(convergence=bytes(32))}) == 4


def test_file_when_it_is_checked_by_any_cap_then_is_healthy_and_needs_no_repair(grid: TreeGrid) -> None:
    folder = grid.run(grid.store.create_directory({"lit": Child(target=LIT)}))
    frozen = grid.run(grid.store.create_immutable_directory({"lit": Child(target=LIT)}))
    for cap in [*every_kind(grid, DATA), folder, frozen, LIT]:
        for checking in (cap, cap.read_cap(), cap.verify_cap()):
            if checking is not None:
                health = grid.run(grid.store.check(checking, verify=True, add_lease=True))
                assert health.healthy and health.recoverable and not health.corrupt
                assert "ealthy" in health.summary and health.to_json()
        repair = grid.run(grid.store.repair(cap))
        assert not repair.attempted and repair.after.healthy


def test_repair_when_a_mutable_cap_only_reads_then_is_refused(grid: TreeGrid) -> None:
    cap = grid.run(grid.store.put_mutable(b"mine"))
    with pytest.raises(AuthorityError):
        grid.run(grid.store.repair(cap.read_cap()))


def test_cap_when_of_another_kind_than_is_needed_then_is_refused(grid: TreeGrid) -> None:
    folder = grid.run(grid.store.create_directory())
    chk = ChkCap(key=bytes(16), ueb_hash=bytes(32), needed=3, total=10, size=1000)
    with pytest.raises(CapError):
        grid.run(grid.store.read(folder, BytesSink()))
    for cap in (chk.verify_cap(), folder.body.verify_cap()):
        assert cap is not None
        with pytest.raises(AuthorityError):
            grid.run(grid.store.read(cap, BytesSink()))
    with pytest.raises(CapError):
        grid.store.open_mutable(chk)
    with pytest.raises(CapError):
        grid.store.directory(DirectoryCap(ChkCap(key=bytes(16), ueb_hash=bytes(32), needed=9, total=3, size=1)))


def test_immutable_directory_when_a_child_is_not_immutable_then_nothing_is_stored_and_it_is_named(
    grid: TreeGrid,
) -> None:
    mutable = grid.run(grid.store.put_mutable(b"mine"))
    grid.sent()
    for target in (mutable, mutable.read_cap(), DirectoryCap(mutable), UnknownChild(write=b"x-w", read=b"ro.x-r")):
        with pytest.raises(MustBeDeepImmutableError, match="'the one'"):
            grid.run(grid.store.create_immutable_directory({"a": Child(target=LIT), "the one": Child(target=target)}))
    assert grid.sent() == {}


def test_immutable_directory_when_its_children_are_the_same_then_its_cap_is(grid: TreeGrid) -> None:
    def make(*names: str) -> DirectoryCap:
        return grid.run(grid.client().create_immutable_directory({name: Child(target=LIT) for name in names}))

    assert make().to_string() == "URI:DIR2-LIT:"
    known = parse_cap("URI:DIR2-LIT:gmzdumj2mewdcnr2kvjesosmjfkdu33oo53wgm3enuwdaormgi5hw7jmfq")
    assert make("a") == known
    assert make("é", "a") == make("a", "e\u0301")
    assert isinstance(make("é", "a").body, ChkCap)


def test_directory_when_made_with_children_then_their_metadata_is_as_given(grid: TreeGrid) -> None:
    given = {"tahoe": {"linkcrtime": 5}, "user": "ü"}
    cap = grid.run(grid.store.create_directory({"a": Child(target=LIT, metadata=given), "b": Child(target=LIT)}))
    children = grid.run(grid.client().directory(cap).list())
    assert children["a"].metadata == given and children["b"].metadata == {}
    with pytest.raises(FormatError):
        grid.run(grid.store.create_directory({"a": Child(target=LIT, metadata={"a": object()})}))


def test_files_when_many_were_opened_then_only_the_last_few_are_kept(
    grid: TreeGrid, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_store, "KEPT_OPEN", 3)
    store = grid.client()
    caps = [SdmfWriteCap(write_key=bytes([n]) * 16, fingerprint=bytes(32)) for n in range(5)]
    held = store.open_mutable(caps[0])
    for cap in caps:
        store.open_mutable(cap)
    assert store.open_mutable(caps[0]) is held
    assert list(store._open._last) == [caps[3], caps[4], caps[0]]


def test_file_when_it_was_used_before_any_server_was_known_then_is_found_afterwards(grid: TreeGrid) -> None:
    cap = grid.run(grid.store.put_mutable(DATA))
    known: list[StorageServer] = []
    store = evolve(grid.store, grid=evolve(grid.store.grid, servers=known))
    with pytest.raises(NoServersError, match="no storage server is known"):
        grid.run(store.read(cap, BytesSink()))
    known += grid.servers
    sink = BytesSink()
    grid.run(store.read(cap, sink))
    assert bytes(sink.data) == DATA
    assert store.open_mutable(cap) is store.open_mutable(cap)


def test_file_when_servers_have_joined_since_it_was_used_then_its_next_version_is_stored_there_too() -> None:
    grid = TreeGrid()
    known: list[StorageServer] = list(grid.servers[:7])
    store = evolve(grid.store, grid=evolve(grid.store.grid, servers=known))
    cap = grid.run(store.put_mutable(DATA))
    assert len(grid.run(store.open_mutable(cap).check()).found.answered) == 7
    known += grid.servers[7:]
    grid.run(store.open_mutable(cap).overwrite(b"new"))
    assert len(grid.run(store.open_mutable(cap).check()).found.answered) == 10
    assert contents(grid, cap) == b"new"


def test_store_when_observed_by_another_then_tells_that_one_and_no_more_the_first(grid: TreeGrid) -> None:
    cap = grid.run(grid.store.put_mutable(b"mine"))
    told: list[Event] = []
    store = grid.store.observed_by(told.append)
    grid.events.clear()
    grid.run(store.read(cap, BytesSink()))
    assert told and not grid.events
    assert store.open_mutable(cap) is not grid.store.open_mutable(cap)


def test_store_when_restricted_then_makes_nothing_of_what_is_not_permitted(grid: TreeGrid) -> None:
    file = grid.run(grid.store.put_immutable(MemorySource(DATA)))
    mutable = grid.run(grid.store.put_mutable(DATA))
    directory = grid.run(grid.store.create_directory({}))

    def refuse(cap: KnownCap) -> None:
        raise GridError("not this one")

    client = grid.client()
    client.open_mutable(mutable)
    store = client.restricted_by(refuse)
    for cap in (file, mutable, directory):
        for attempt in (store.read_bytes(cap, BytesSink()), store.size(cap), store.check(cap), store.repair(cap)):
            with pytest.raises(GridError, match="not this one"):
                grid.run(attempt)
    with pytest.raises(GridError, match="not this one"):
        store.open_mutable(mutable)
    with pytest.raises(GridError, match="not this one"):
        store.directory(directory)
    assert contents(grid, file) == DATA
