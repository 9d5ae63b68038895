"""Two or more writers: test-and-set decides, no change is lost, and one version can always be read."""

from __future__ import annotations

from collections.abc import Coroutine, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from twisted.internet.defer import Deferred, DeferredList

from grid.engine.grid import Encoding
from grid.errors import ConflictError, GridError
from grid.mutable.share.geometry import FormatName
from tests.support.depth import spread
from tests.support.mutable_grid import MutableGrid
from tests.support.scripted_slots import SlotScript

FORMATS: list[FormatName] = ["sdmf", "mdmf"]


async def together(coroutines: Sequence[Coroutine[Any, Any, object]]) -> list[GridError | None]:
    """Run them all at once; returns what each raised, if anything."""
    outcomes: list[tuple[bool, Any]] = await DeferredList(
        [Deferred.fromCoroutine(c) for c in coroutines], consumeErrors=True
    )
    errors: list[GridError | None] = []
    for succeeded, outcome in outcomes:
        if not succeeded:
            assert isinstance(outcome.value, GridError), outcome.value
        errors.append(None if succeeded else outcome.value)
    return errors


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("remembered", [False, True])
def test_modify_when_two_processes_do_so_at_once_then_both_changes_are_there(
    format: FormatName, remembered: bool
) -> None:
    grid = MutableGrid()
    cap = grid.create(b"", format)
    files = [grid.open(cap, process=process) for process in (1, 2, 3)]
    if remembered:
        for file in files:
            grid.run(file.read_all())

    def adder(name: bytes) -> Any:
        return lambda old, _: None if name in old else old + name

    errors = grid.run(together([file.modify(adder(b"<%d>" % index)) for index, file in enumerate(files)]))
    assert errors == [None, None, None]
    assert sorted(grid.read(cap).replace(b"><", b"> <").split()) == [b"<0>", b"<1>", b"<2>"]
    assert grid.run(grid.open(cap).check(verify=True)).recoverable


def test_modify_when_of_one_process_then_takes_turns_and_meets_no_conflict() -> None:
    grid = MutableGrid()
    cap = grid.create(b"")
    files = [grid.open(cap) for _ in range(5)]
    runs: list[bool] = []

    def adder(index: int) -> Any:
        def add(old: bytes, first_time: bool) -> bytes:
            runs.append(first_time)
            return old + b"%d" % index

        return add

    assert grid.run(together([file.modify(adder(index)) for index, file in enumerate(files)])) == [None] * 5
    assert grid.read(cap) == b"01234"
    assert runs == [True] * 5


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize(("k", "n"), [(1, 1), (1, 10), (3, 10), (7, 10), (10, 10), (3, 3)])
def test_overwrite_when_two_processes_do_so_at_once_then_one_version_is_left(
    format: FormatName, k: int, n: int
) -> None:
    """The first writer at each server wins: with n < 2k each of two could spoil it for the other."""
    for seed in spread(range(6), 3):
        grid = MutableGrid(10, Encoding(k=k, n=n, happy=1), seed)
        cap = grid.create(b"base", format)
        for index, server in enumerate(grid.servers):
            server.script.delay_s = 0.01 + 0.001 * ((index * 7 + seed * 3) % 10)
        files = [grid.open(cap, process=process + 10 * seed) for process in (1, 2)]
        texts = [b"left" * 10, b"right" * 10]
        errors = grid.run(together([file.overwrite(text) for file, text in zip(files, texts, strict=True)]))
        left = grid.read(cap)
        assert left in {b"base", *texts}
        assert all(error is None or isinstance(error, ConflictError) for error in errors)
        winners = [text for text, error in zip(texts, errors, strict=True) if error is None]
        assert not winners or left in winners


class Killed(Exception):
    """The client ends before it can try again."""


@pytest.mark.parametrize("format", FORMATS)
def test_modify_when_the_writer_that_gave_way_dies_then_only_the_acknowledged_version_is_left(
    format: FormatName,
) -> None:
    """The dead writer did not see the shares of three servers, and had other numbers for them."""
    grid = MutableGrid()
    cap = grid.create(b"", format)
    first, other = grid.open(cap, process=1), grid.open(cap, process=2)
    shares = grid.shares(cap)
    unseen = [shares[number][0][0] for number in (1, 6, 7)]
    slots = [server.slots for server in unseen]
    for server, moved in zip(unseen, [*slots[1:], slots[0]], strict=True):
        server.slots = moved
        server.script.frozen = {}
    grid.run(other.modify(lambda old, _: None))
    for server in unseen:
        assert server.fired["frozen"]
        server.script.frozen = None
    grid.run(first.modify(lambda old, _: old + b"<1>"))
    calls = 0

    def dying(old: bytes, _: bool) -> bytes:
        nonlocal calls
        calls += 1
        if calls > 1:
            raise Killed
        return old + b"<2>"

    with pytest.raises(Killed):
        grid.run(other.modify(dying))
    assert grid.read(cap) == b"<1>"
    assert len(grid.run(grid.open(cap).check(verify=True)).sharemap) == 10


@given(
    seed=st.integers(0, 2**20),
    delays=st.lists(st.integers(1, 400), min_size=10, max_size=10),
    writers=st.integers(2, 4),
    k=st.sampled_from([1, 3, 6]),
    offsets=st.lists(st.integers(0, 50), min_size=4, max_size=4),
)
def test_modify_when_several_processes_do_so_then_no_acknowledged_change_is_lost(
    seed: int, delays: list[int], writers: int, k: int, offsets: list[int]
) -> None:
    grid = MutableGrid(10, Encoding(k=k, n=10, happy=7), seed)
    cap = grid.create(b"")
    for server, delay in zip(grid.servers, delays, strict=True):
        server.script.delay_s = delay / 1000

    async def add(process: int) -> None:
        await grid.runtime.clock.sleep(offsets[process] / 100)
        file = grid.open(cap, process=1 + process + seed * 10)
        name = b"<%d>" % process
        await file.modify(lambda old, _: None if name in old else old + name)

    errors = grid.run(together([add(process) for process in range(writers)]))
    text = grid.read(cap)
    for process, error in enumerate(errors):
        assert error is None or isinstance(error, ConflictError)
        if error is None:
            assert b"<%d>" % process in text


@pytest.mark.parametrize("format", FORMATS)
def test_update_when_two_processes_do_so_at_once_then_both_ranges_are_there(format: FormatName) -> None:
    grid = MutableGrid()
    cap = grid.create(bytes(400_000), format)
    files = [grid.open(cap, process=process) for process in (1, 2)]
    errors = grid.run(together([files[0].update(10, b"first"), files[1].update(300_000, b"second")]))
    assert errors == [None, None]
    text = grid.read(cap)
    assert text[10:15] == b"first" and text[300_000:300_006] == b"second"
    assert grid.run(grid.open(cap).check(verify=True)).recoverable


@pytest.mark.parametrize("after_s", [0.0, 0.05, 0.15, 0.25])
def test_modify_when_a_read_of_the_same_file_ends_after_the_last_change_then_keeps_that_change(after_s: float) -> None:
    grid = MutableGrid()
    cap = grid.create(b"0" * 200_000)
    file = grid.open(cap, process=1)
    for server in grid.servers:
        # What the read gets was true when it asked.
        server.freeze()
        server.script.delay_s, server.script.write_delay_s = 0.1, 0.001

    async def read() -> None:
        await grid.runtime.clock.sleep(after_s)
        await file.read_all()

    async def change() -> None:
        reading = Deferred.fromCoroutine(read())
        await file.modify(lambda old, _: old + b"1")
        await reading
        for server in grid.servers:
            server.script.frozen = None
        await file.modify(lambda old, _: old + b"2")

    grid.run(change())
    assert grid.read(cap).lstrip(b"0") == b"12"


@pytest.mark.parametrize("format", FORMATS)
def test_write_when_an_old_copy_turns_up_then_it_is_overwritten(format: FormatName) -> None:
    """A server that was away while the map was made, and is back when the version is written."""
    grid = MutableGrid(10, Encoding(happy=6))
    cap = grid.create(b"old", format)
    index = cap.storage_index
    away = grid.servers[2]
    kept = {n: bytearray(d) for n, d in away.slots[index].items()}
    away.script = SlotScript(dead_from=0)
    file = grid.open(cap)
    grid.run(file.overwrite(b"new"))
    away.script = SlotScript()
    assert away.slots[index] == kept
    grid.run(grid.open(cap).overwrite(b"newest"))
    result = grid.run(grid.open(cap).check(verify=True))
    assert result.healthy and {name[:5] for name in result.sharemap} == {"seq3-"}


def test_write_when_a_version_is_unfinished_then_waits_for_its_writer() -> None:
    """The second process looks while the first one's shares are on their way to slow servers."""
    grid = MutableGrid(10, Encoding(k=6, happy=7))
    cap = grid.create(b"")
    for server in grid.servers[2:]:
        server.script.write_delay_s = 0.8

    async def later(name: bytes, wait_s: float, process: int) -> None:
        await grid.runtime.clock.sleep(wait_s)
        file = grid.open(cap, process=process)
        await file.modify(lambda old, _: None if name in old else old + name)

    errors = grid.run(together([later(b"<a>", 0.0, 1), later(b"<b>", 0.2, 2)]))
    assert errors == [None, None]
    assert grid.read(cap) == b"<a><b>"


@pytest.mark.each_value
@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("seed", range(6))
def test_modify_by_memory_when_servers_missed_another_writers_change_then_both_changes_are_there(
    format: FormatName, seed: int
) -> None:
    # Two servers hold four of twenty shares: enough for what a writer that does not know of the change stores there.
    grid = MutableGrid(shape=Encoding(k=3, n=20, happy=7), seed=seed)
    cap = grid.create(b"", format)
    first, other = grid.open(cap, process=1), grid.open(cap, process=2)
    grid.run(first.modify(lambda old, _: old + b"<1%d>" % seed))
    away = grid.servers[seed : seed + 2]
    for server in away:
        server.script = SlotScript(dead_from=0)
    grid.run(other.modify(lambda old, _: old + b"<2>"))
    for server in away:
        server.script = SlotScript()
    grid.run(first.modify(lambda old, _: None if b"<3>" in old else old + b"<3>"))
    assert sorted(grid.read(cap).replace(b"><", b"> <").split()) == [b"<1%d>" % seed, b"<2>", b"<3>"]
    grid.run(first.modify(lambda old, _: old + b"<4>"))
    assert b"<2>" in grid.read(cap) and grid.read(cap).endswith(b"<4>")
