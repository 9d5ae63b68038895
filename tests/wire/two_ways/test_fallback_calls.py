"""A server with two ways to it: which calls are repeated, and which must not be."""

from __future__ import annotations

from typing import Any

import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st

from grid.errors import (
    GridError,
    NoSpaceError,
    PeerError,
    PeerGoneError,
    PeerRefusedError,
    PeerTimeoutError,
    PeerUnreachableError,
)
from grid.ports import NewShares, ShareNumber, ShareWrite
from grid.wire.two_ways.fallback import MOST_TRIES
from grid.wire.two_ways.preference import LONGEST_AVOIDED_S
from tests.support.depth import examples
from tests.support.scripted_way import ScriptedWay
from tests.wire.foolscap.loopback import INDEX, LEASE, VERSION, RecordedUpload, number
from tests.wire.two_ways.fallback_rig import IDEMPOTENT, ONCE, Rig


@pytest.fixture
def rig() -> Rig:
    return Rig()


@pytest.mark.parametrize("method", IDEMPOTENT)
def test_call_when_it_may_be_repeated_survives_a_cut_and_a_way_that_always_cuts(rig: Rig, method: str) -> None:
    rig.run(rig.server.connect())
    rig.http.script.cut_after = 1
    rig.run(IDEMPOTENT[method](rig.server))
    assert rig.http.calls == [method] * 2 and not rig.foolscap.calls
    rig.http.script.cut_before = 100
    rig.wait(600)
    rig.run(IDEMPOTENT[method](rig.server))
    assert rig.foolscap.calls == [method]
    assert rig.server.status.fallback


@pytest.mark.parametrize("method", IDEMPOTENT)
@pytest.mark.parametrize("failure", [PeerTimeoutError, PeerError])
def test_call_when_it_is_late_or_answered_with_nonsense_is_repeated_the_other_way(
    rig: Rig, method: str, failure: type[PeerError]
) -> None:
    rig.run(rig.server.connect())
    rig.http.script.cut_before, rig.http.script.failure = 100, lambda: failure("no good")
    rig.run(IDEMPOTENT[method](rig.server))
    assert rig.foolscap.calls == [method] and rig.http.script.cut_before == 99
    assert rig.server.status.fallback == "HTTP does not work: no good"


@pytest.mark.parametrize("method", ONCE)
@pytest.mark.parametrize("cut", ["cut_before", "cut_after"])
def test_call_when_it_may_have_been_carried_out_is_not_repeated(rig: Rig, method: str, cut: str) -> None:
    rig.run(rig.server.connect())
    setattr(rig.http.script, cut, 1)
    with pytest.raises(PeerGoneError):
        rig.run(ONCE[method](rig.server))
    assert rig.executed(method) == (cut == "cut_after")
    assert not rig.foolscap.calls


@pytest.mark.parametrize("method", ONCE)
def test_call_when_the_server_cannot_have_heard_it_goes_the_other_way(rig: Rig, method: str) -> None:
    rig.run(rig.server.connect())
    rig.http.lose()
    rig.http.script.down = "refused"
    rig.run(ONCE[method](rig.server))
    assert rig.executed(method) == 1 and rig.foolscap.calls == [method]


@pytest.mark.parametrize("method", ONCE)
def test_call_when_a_further_connection_cannot_be_made_goes_the_other_way(rig: Rig, method: str) -> None:
    rig.run(rig.server.connect())
    rig.http.script.unsent = [PeerUnreachableError("refused") for _ in range(9)]
    rig.run(ONCE[method](rig.server))
    assert rig.executed(method) == 1 and rig.foolscap.calls == [method]


@pytest.mark.parametrize("method", [*IDEMPOTENT, *ONCE])
@pytest.mark.parametrize("refusal", [PeerRefusedError("no", kind="No"), NoSpaceError("full")])
def test_call_when_the_server_refuses_is_not_repeated_nor_held_against_the_way(
    rig: Rig, method: str, refusal: GridError
) -> None:
    rig.inner.refusal = refusal
    for _ in range(4):
        with pytest.raises(type(refusal)):
            rig.run({**IDEMPOTENT, **ONCE}[method](rig.server))
    assert rig.executed(method) == 4
    assert rig.foolscap.connects == 0


def test_upload_when_its_way_is_cut_fails_and_the_next_ones_go_the_other_way(rig: Rig) -> None:
    def upload() -> None:
        allocation = rig.run(rig.server.allocate(INDEX, LEASE, frozenset([number(5)]), 10))
        rig.run(allocation.upload.write([ShareWrite(ShareNumber(5), 0, [b"0123456789"])]))
        rig.run(allocation.upload.close([number(5)]))

    rig.run(rig.server.connect())
    script, bad = rig.http.script, []

    class Cut(RecordedUpload):
        async def write(self, writes: object) -> None:
            bad.append(writes)
            raise PeerGoneError("cut in the middle")

    allocate = rig.http.allocate

    async def cut(*arguments: Any) -> Any:
        return evolve(await allocate(*arguments), upload=Cut(frozenset([number(5)])))

    rig.http.allocate = cut  # type: ignore[assignment,method-assign]
    for _ in range(2):
        with pytest.raises(PeerGoneError):
            upload()
        rig.wait(1)
    upload()
    assert len(bad) == 2 and not script.down
    assert rig.inner.uploads[-1].closed == {number(5)}
    assert rig.foolscap.calls == ["allocate"]
    assert rig.server.status.fallback == "HTTP does not work: cut in the middle"


def test_store_when_the_server_takes_no_whole_shares_goes_by_steps_which_are_not_repeated(rig: Rig) -> None:
    rig.inner.version = evolve(VERSION, batched_stores=False)
    rig.inner.shares.clear()
    rig.run(rig.server.connect())
    rig.http.script.cut_after = 1
    new = NewShares(storage_index=INDEX, secrets=LEASE, shares={number(0): [b"x"]})
    with pytest.raises(PeerGoneError):
        rig.run(rig.server.store_shares([new]))
    assert rig.executed("allocate") == 1 and rig.executed("store_shares") == 0
    (answer,) = rig.run(rig.server.store_shares([new]))
    assert answer.stored and rig.executed("allocate") == 2


@given(
    steps=st.lists(
        st.tuples(
            st.sampled_from(["http", "foolscap"]),
            st.sampled_from(["up", "down", "cut_before", "cut_after", "late", "time"]),
            st.sampled_from([*IDEMPOTENT, *ONCE]),
        ),
        max_size=30,
    )
)
@settings(max_examples=examples(150), deadline=None)
def test_calls_when_ways_come_and_go_are_carried_out_or_fail_and_never_twice_what_must_not_be(
    steps: list[tuple[str, str, str]],
) -> None:
    rig = Rig()
    for name, what, method in steps:
        way: ScriptedWay = getattr(rig, name)
        match what:
            case "up":
                way.script.down, way.script.connect_s = "", 0.1
            case "down":
                way.script.down = "refused"
                way.lose()
            case "late":
                way.script.connect_s = 12.0
                way.lose()
            case "time":
                rig.wait(20)
            case cut:
                setattr(way.script, cut, 1)
        before = rig.executed(method)
        usable = not (rig.http.script.down and rig.foolscap.script.down)
        cuts = sum(each.script.cut_before + each.script.cut_after for each in (rig.http, rig.foolscap))
        try:
            rig.run({**IDEMPOTENT, **ONCE}[method](rig.server))
        except PeerError:
            assert not usable or cuts >= (1 if method in ONCE else MOST_TRIES)
            assert rig.executed(method) - before <= (1 if method in ONCE else MOST_TRIES)
        else:
            assert rig.executed(method) - before >= 1
            assert method in IDEMPOTENT or rig.executed(method) == before + 1
    rig.http.script.down, rig.http.script.connect_s, rig.http.script.cut_before, rig.http.script.cut_after = (
        "",
        0.1,
        0,
        0,
    )
    rig.foolscap.script.down, rig.foolscap.script.cut_before, rig.foolscap.script.cut_after = "", 0, 0
    rig.wait(LONGEST_AVOIDED_S)
    for _ in range(3):  # A doubt is settled by the first, the second one begins a trial, and the third one profits.
        rig.read()
        rig.wait(31)
    assert rig.server.status.transport == "http"
