"""Reads of a file that is remembered: a few servers say whether it is still the newest version."""

from __future__ import annotations

import itertools

import pytest

from grid.caps import KnownCap, StorageIndex
from grid.crypto.rsa import PublicKey
from grid.engine.grid import Encoding
from grid.mutable.node import MutableFile
from grid.mutable.read.few_servers import LOOK_S
from grid.mutable.read.map_plan import MapMode
from grid.mutable.read.newest import NewestSeen
from grid.mutable.session import Session
from grid.mutable.share.keys import FileKeys
from tests.support.mutable_grid import MutableGrid

FEW = 5
"""Of ten servers with `happy` = 7, any four include one that has an acknowledged version; one more may lie."""


def remembered(grid: MutableGrid, cap: KnownCap, contents: bytes = b"old") -> MutableFile:
    """The file, open and read."""
    file = grid.open(cap)
    assert grid.run(file.read_all()) == contents
    return file


def asked(grid: MutableGrid) -> list[int]:
    """The numbers of the servers that were asked since the counts were reset."""
    return [number for number, server in enumerate(grid.servers) if server.calls]


def few_of(grid: MutableGrid, file: MutableFile, contents: bytes = b"old") -> list[int]:
    """The servers that a read asks now."""
    grid.reset_counts()
    assert grid.run(file.read_all()) == contents
    return asked(grid)


def test_a_remembered_version_is_confirmed_by_few_servers_with_one_message_each() -> None:
    grid = MutableGrid()
    file = remembered(grid, grid.create(b"old"))
    assert len(few_of(grid, file)) == FEW
    assert sum(len(server.calls) for server in grid.servers) == FEW


def test_signature_of_a_remembered_version_is_checked_once_and_that_of_another_when_it_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    checked: list[bytes] = []
    verify = PublicKey.verify

    def noted(key: PublicKey, signature: bytes, message: bytes) -> None:
        checked.append(message)
        verify(key, signature, message)

    grid = MutableGrid()
    cap = grid.create(b"old")
    file = remembered(grid, cap)
    monkeypatch.setattr(PublicKey, "verify", noted)
    assert len(few_of(grid, file)) == FEW
    assert not checked
    grid.run(grid.open(cap, process=1).overwrite(b"new"))
    checked.clear()
    assert grid.run(file.read_all()) == b"new"
    assert len(set(checked)) == 1


def test_what_one_capability_has_proven_proves_nothing_for_another_key() -> None:
    grid = MutableGrid()
    session = Session.open(FileKeys.of_cap(grid.create(b"old")), grid.grid())
    few = session.few(grid.run(session.find(MapMode.READ)))
    assert few is not None and few.public_key is not None
    assert few.proven(few.public_key.fingerprint) == (few.public_key, {few.version})
    assert few.proven(bytes(32)) == (None, set())


def test_all_servers_are_asked_and_the_next_version_is_higher_when_a_newer_one_is_known() -> None:
    grid = MutableGrid()
    cap = grid.create(b"old")
    file = remembered(grid, cap)
    assert cap.storage_index is not None
    newest = grid.grid().remembered.of(NewestSeen)
    newest.learn(StorageIndex(cap.storage_index), 77)
    assert len(few_of(grid, file)) == 10
    assert file.warning is not None and "seq77" in file.warning
    grid.run(file.overwrite(b"new"))
    assert newest.seqnum(StorageIndex(cap.storage_index)) == 78


def test_other_servers_are_asked_after_a_while_and_all_in_the_end() -> None:
    grid = MutableGrid()
    file = remembered(grid, grid.create(b"old"))
    seen = set(few_of(grid, file))
    for _ in range(3):
        grid.run(grid.runtime.clock.sleep(1.0))
        seen.update(few_of(grid, file))
    assert seen == set(range(10))


def test_all_servers_are_asked_every_half_minute_so_that_near_ones_cannot_hide_a_change_for_long() -> None:
    grid = MutableGrid()
    cap = grid.create(b"old")
    file = remembered(grid, cap)
    liars = range(7)
    before = {n: {m: bytearray(d) for m, d in grid.servers[n].slots[cap.storage_index].items()} for n in liars}
    grid.run(grid.open(cap, process=1).overwrite(b"new"))
    for number, slot in before.items():
        grid.servers[number].slots[cap.storage_index] = slot
    grid.run(grid.runtime.clock.sleep(LOOK_S))
    assert set(few_of(grid, file, b"new")) == set(range(10))


def test_files_that_are_read_together_ask_the_same_servers() -> None:
    grid = MutableGrid()
    cap = grid.create(b"old")
    reading, writing = grid.open(cap.read_cap()), grid.open(cap)
    for file in (reading, writing):
        grid.run(file.read_all())
    assert few_of(grid, reading) == few_of(grid, writing)


@pytest.mark.parametrize("count", range(4))
def test_what_another_process_has_stored_on_enough_servers_is_read_wherever_it_is(count: int) -> None:
    """Whichever servers miss an acknowledged version, one of the few has it."""
    for missing in itertools.islice(itertools.combinations(range(10), count), 0, None, 7):
        grid = MutableGrid()
        cap = grid.create(b"old")
        file = remembered(grid, cap)
        before = {number: dict(grid.servers[number].slots[cap.storage_index]) for number in missing}
        before = {number: {n: bytearray(data) for n, data in slot.items()} for number, slot in before.items()}
        grid.run(grid.open(cap, process=1).overwrite(b"new"))
        for number, slot in before.items():
            grid.servers[number].slots[cap.storage_index] = slot
        assert grid.run(file.read_all()) == b"new"


def test_a_change_right_after_a_read_of_few_servers_takes_one_round_trip() -> None:
    grid = MutableGrid()
    file = remembered(grid, grid.create(b"old"))
    few_of(grid, file)
    grid.reset_counts()
    grid.run(file.modify(lambda old, _: old + b"er"))
    assert {tuple(server.calls) for server in grid.servers} == {("test_and_write",)}
    assert len(few_of(grid, file, b"older")) == FEW


def test_a_change_after_one_of_another_process_loses_nothing() -> None:
    grid = MutableGrid()
    cap = grid.create(b"old")
    file = remembered(grid, cap)
    few_of(grid, file)
    grid.run(grid.open(cap, process=1).modify(lambda old, _: old + b"er"))
    grid.run(file.modify(lambda old, _: old + b" one"))
    assert grid.read(cap) == b"older one"


def test_all_servers_are_asked_if_one_of_the_few_fails() -> None:
    grid = MutableGrid()
    cap = grid.create(b"old")
    file = remembered(grid, cap)
    first = few_of(grid, file)[0]
    grid.servers[first].script.dead_from = 0
    assert set(few_of(grid, file)) == set(range(10))


def test_a_slow_server_among_the_few_holds_a_read_up_only_until_the_others_have_answered() -> None:
    grid = MutableGrid()
    cap = grid.create(b"old")
    file = remembered(grid, cap)
    first = few_of(grid, file)[0]
    grid.servers[first].script.delay_s = 3.0
    began = grid.runtime.clock.now()
    assert set(few_of(grid, file)) == set(range(10))
    assert grid.runtime.clock.now() - began < 0.5


@pytest.mark.parametrize(
    ("servers", "shape"),
    [(10, Encoding(k=3, n=10, happy=1)), (3, Encoding(k=1, n=3, happy=2)), (5, Encoding(k=3, n=10, happy=4))],
)
def test_all_servers_are_asked_if_few_are_not_enough(servers: int, shape: Encoding) -> None:
    grid = MutableGrid(servers, shape)
    file = remembered(grid, grid.create(b"old"))
    assert few_of(grid, file) == list(range(servers))


def test_more_servers_than_shares_are_asked_in_proportion() -> None:
    grid = MutableGrid(20)
    file = remembered(grid, grid.create(b"old"))
    assert len(few_of(grid, file)) == 20 - 7 + 1 + 1


def test_all_servers_are_asked_if_one_of_the_few_has_lost_its_share_or_gone_back() -> None:
    for is_lost in (True, False):
        grid = MutableGrid()
        cap = grid.create(b"oldest")
        older = [{n: bytearray(data) for n, data in server.slots[cap.storage_index].items()} for server in grid.servers]
        grid.run(grid.open(cap, process=1).overwrite(b"old"))
        file = remembered(grid, cap)
        first = few_of(grid, file)[0]
        grid.servers[first].slots[cap.storage_index] = {} if is_lost else older[first]
        assert set(few_of(grid, file)) == set(range(10))


def test_a_server_in_doubt_is_not_among_the_few() -> None:
    grid = MutableGrid()
    file = remembered(grid, grid.create(b"old"))
    first = few_of(grid, file)[0]
    grid.servers[first].script.silent_from = 0
    few_of(grid, file)
    grid.run(grid.runtime.clock.sleep(2.0))
    chosen = few_of(grid, file)
    assert first not in chosen
    assert len(chosen) == FEW


def test_all_servers_are_asked_at_once_while_a_version_is_left_that_may_be_newer() -> None:
    grid = MutableGrid()
    cap = grid.create(b"old")
    before = [{n: bytearray(data) for n, data in server.slots[cap.storage_index].items()} for server in grid.servers]
    grid.run(grid.open(cap, process=1).overwrite(b"never finished"))
    for server, slot in list(zip(grid.servers, before, strict=True))[1:]:
        server.slots[cap.storage_index] = slot
    file = remembered(grid, cap)
    for _ in range(2):
        assert few_of(grid, file) == list(range(10))
        assert {len(server.calls) for server in grid.servers} == {1}
