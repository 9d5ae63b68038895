"""Puts against any combination of scripted faults: what success and failure promise, checked at the servers."""

from __future__ import annotations

from typing import Any

from hypothesis import given, note, settings
from hypothesis import strategies as st

from grid.caps import ChkCap
from grid.engine.grid import Encoding
from grid.errors import GridError, NoServersError, NotHappyError
from grid.immutable.perform import ABORT_LIMIT_S
from grid.placement.happiness import happiness
from grid.ports import ServerId, ShareNumber
from tests.support.depth import examples
from tests.support.scripted_grid import ScriptedGrid, encoded, noise

SERVERS = 8
LIMIT_S = 600.0

METHODS = ["get_version", "find_shares", "allocate", "write", "finish", "abort"]

FAULTS = st.one_of(
    st.just({}),
    st.fixed_dictionaries({"dead_from": st.integers(0, 6)}),
    st.fixed_dictionaries({"silent_from": st.integers(0, 6)}),
    st.fixed_dictionaries({"dead_from": st.just(0), "only": st.frozensets(st.sampled_from(METHODS), min_size=1)}),
    st.fixed_dictionaries({"silent_from": st.just(0), "only": st.frozensets(st.sampled_from(METHODS), min_size=1)}),
    st.fixed_dictionaries({"lost": st.frozensets(st.integers(0, 6), min_size=1, max_size=2)}),
    st.fixed_dictionaries({"broken": st.frozensets(st.integers(0, 6), min_size=1, max_size=2)}),
    st.fixed_dictionaries({"full": st.just(True)}),
    st.fixed_dictionaries({"read_only": st.just(True)}),
    st.fixed_dictionaries({"delay_s": st.sampled_from([0.3, 2.0, 9.0])}),
    st.fixed_dictionaries({"claims": st.frozensets(st.integers(6, 12), min_size=1, max_size=2)}),
)

ENCODINGS = st.sampled_from(
    [
        Encoding(k=1, n=1, happy=1, max_segment_size=1200),
        Encoding(k=3, n=6, happy=4, max_segment_size=1200),
        Encoding(k=2, n=12, happy=5, max_segment_size=1200),
        Encoding(k=3, n=6, happy=0, max_segment_size=1200),
        Encoding(k=4, n=6, happy=2, max_segment_size=700),
    ]
)


@settings(max_examples=examples(250))
@given(
    encoding=ENCODINGS,
    faults=st.lists(FAULTS, min_size=SERVERS, max_size=SERVERS),
    existing=st.dictionaries(st.integers(0, SERVERS - 1), st.frozensets(st.integers(0, 5), max_size=3), max_size=4),
)
def test_put_when_servers_do_anything_keeps_its_promises(
    encoding: Encoding, faults: list[dict[str, Any]], existing: dict[int, frozenset[int]]
) -> None:
    grid = ScriptedGrid(SERVERS)
    data = noise(4000)
    file = encoded(data, encoding.k, encoding.n, encoding.max_segment_size)
    grid.lay(file, {i: [n for n in numbers if n < encoding.n] for i, numbers in existing.items()})
    for index, fault in enumerate(faults):
        grid.script(index, **fault)
    try:
        result = grid.put(data, encoding=encoding)
    except (NotHappyError, NoServersError) as error:
        note(str(error))
        assert existing or not _sure(faults, encoding), "enough servers had no fault"
    else:
        assert isinstance(result.cap, ChkCap)
        assert result.cap == file.cap
        _require_stored(grid, encoding, result.sharemap, faults, file.shares, file.cap.storage_index)
    assert grid.now < LIMIT_S
    grid.settle()
    assert [name for name, _ in grid.debris() if _hears_aborts(faults[int(name[1:])])] == []


def _sure(faults: list[dict[str, Any]], encoding: Encoding) -> bool:
    """Whether servers without any fault suffice even if all those that may fail late are given a share first."""
    if any("claims" in fault for fault in faults) or 2 * encoding.n < SERVERS:
        return False
    needed = max(encoding.happy, encoding.k)
    sound = sum(1 for fault in faults if not fault)
    failing = sum(1 for fault in faults if fault and not fault.keys() & {"full", "read_only"})
    return sound >= needed and encoding.n - failing >= needed


def _hears_aborts(fault: dict[str, Any]) -> bool:
    slow = fault.get("delay_s", 0.0) > ABORT_LIMIT_S  # A scripted server forgets a call whose caller gave up.
    return not slow and not fault.keys() & {"dead_from", "silent_from", "lost", "broken"}


def _require_stored(
    grid: ScriptedGrid,
    encoding: Encoding,
    sharemap: Any,
    faults: list[dict[str, Any]],
    shares: tuple[bytes, ...],
    storage_index: bytes,
) -> None:
    """Every share that the result counts is whole on its server, unless that server lies; they make enough happy."""
    durable: dict[ShareNumber, set[ServerId]] = {}
    for number, holders in sharemap.items():
        for holder in holders:
            index = int(holder[1:])
            if number in faults[index].get("claims", ()):
                durable.setdefault(number, set()).add(holder)
                continue
            assert grid.servers[index].shares[storage_index][number] == shares[number]
            durable.setdefault(number, set()).add(holder)
    assert happiness(durable) >= encoding.happy
    assert len(durable) >= encoding.k


@settings(max_examples=examples(60))
@given(
    missing=st.frozensets(st.integers(0, 5), max_size=6),
    damaged=st.dictionaries(st.integers(0, 5), st.integers(0, 2000), max_size=4),
    faults=st.lists(FAULTS, min_size=SERVERS, max_size=SERVERS),
)
def test_repair_when_servers_do_anything_only_adds_shares_that_are_right(
    missing: frozenset[int], damaged: dict[int, int], faults: list[dict[str, Any]]
) -> None:
    grid = ScriptedGrid(SERVERS)
    data = noise(4000)
    file = encoded(data, 3, 6, 1200)
    grid.lay(file, {index: [index] for index in range(6) if index not in missing})
    for index, fault in enumerate(faults):
        script = grid.script(index, **fault)
        if index in damaged and index not in missing:
            script.corrupt[index, damaged[index] % len(file.shares[0])] = 1
    try:
        result = grid.repair(file.cap.verify_cap())
    except GridError as error:
        note(str(error))
    else:
        if result.successful:
            for index in range(SERVERS):
                grid.servers[index].script.silent_from = grid.servers[index].script.dead_from = None
                grid.servers[index].script.lost = grid.servers[index].script.broken = frozenset()
            assert set(grid.check(file.cap).sharemap) == set(range(6))
    for number, found in grid.shares(file.cap.storage_index).items():
        assert found == {file.shares[number]}
    assert grid.now < 2 * LIMIT_S
