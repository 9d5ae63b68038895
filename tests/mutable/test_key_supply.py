"""Keys that are generated ahead of time, and when they are not."""

from __future__ import annotations

import pytest
from twisted.internet.defer import CancelledError, Deferred

from grid.crypto.rsa import PrivateKey
from grid.mutable import key_supply
from grid.mutable.key_supply import SOON_S, KeySupply, new_key
from tests.support.gated_pool import GatedPool
from tests.support.grids import grid_of
from tests.support.virtual_time import VirtualRuntime


class GatedRuntime(VirtualRuntime):
    """Its pool waits for the test."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = GatedPool()
        self.cpu = self.gate  # type: ignore[assignment]


@pytest.fixture(autouse=True)
def counted(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Stand-ins for keys, which take time to generate; each is a different object."""
    made: list[object] = []

    def generate_key() -> object:
        made.append(object())
        return made[-1]

    monkeypatch.setattr(key_supply, "generate_key", generate_key)
    return made


def take(supply: KeySupply, runtime: GatedRuntime) -> Deferred[PrivateKey]:
    return Deferred.fromCoroutine(supply.take(runtime))


def test_take_when_once_or_seldom_makes_one_key_each(counted: list[object]) -> None:
    runtime, supply = GatedRuntime(), KeySupply()
    for count in (1, 2, 3):
        key = take(supply, runtime)
        runtime.gate.release_all()
        assert key.result is counted[-1]
        assert len(counted) == count
        runtime.clock.task_clock.advance(SOON_S)


def test_take_when_often_makes_the_next_one_meanwhile_and_no_more(counted: list[object]) -> None:
    runtime, supply = GatedRuntime(), KeySupply()
    first = take(supply, runtime)
    runtime.gate.release_all()
    second = take(supply, runtime)
    assert runtime.gate.waiting_count == 2
    runtime.gate.release_all()
    third = take(supply, runtime)
    assert third.called, "it was there already"
    assert runtime.gate.waiting_count == 1
    runtime.gate.release_all()
    assert len(counted) == 4
    results = [key.result for key in (first, second, third)]
    assert results == counted[:3], "no key is given twice"


def test_take_when_the_next_one_is_to_wait_then_makes_it_when_told(counted: list[object]) -> None:
    runtime, supply = GatedRuntime(), KeySupply()
    take(supply, runtime)
    runtime.gate.release_all()
    supply.make_ahead(runtime)
    assert runtime.gate.waiting_count == 0, "asked for once"
    second = Deferred.fromCoroutine(supply.take(runtime, ahead=False))
    runtime.gate.release_all()
    assert second.result is counted[1] and len(counted) == 2
    supply.make_ahead(runtime)
    supply.make_ahead(runtime)
    assert runtime.gate.waiting_count == 1
    runtime.gate.release_all()
    assert len(counted) == 3
    assert take(supply, runtime).called, "it was there already"


def test_take_when_many_at_once_makes_a_key_for_each_and_one_more(counted: list[object]) -> None:
    runtime, supply = GatedRuntime(), KeySupply()
    keys = [take(supply, runtime) for _ in range(5)]
    runtime.gate.release_all()
    assert [key.result for key in keys] == counted[:5]
    assert len(counted) == 6


def test_take_when_given_up_leaves_its_key_to_the_next(counted: list[object]) -> None:
    runtime, supply = GatedRuntime(), KeySupply()
    gone = take(supply, runtime)
    gone.addErrback(lambda failure: failure.trap(CancelledError) and None)
    gone.cancel()
    next_one = take(supply, runtime)
    runtime.gate.release()
    assert next_one.result is counted[0]


def test_take_when_the_pool_fails_says_so_and_the_next_one_works(monkeypatch: pytest.MonkeyPatch) -> None:
    runtime, supply = GatedRuntime(), KeySupply()

    def make() -> object:
        if not errors:
            raise MemoryError
        return errors

    errors: list[object] = []
    monkeypatch.setattr(key_supply, "generate_key", make)
    take(supply, runtime).addErrback(lambda failure: errors.append(failure.value))
    runtime.gate.release_all()
    assert isinstance(errors[0], MemoryError)
    key = take(supply, runtime)
    runtime.gate.release_all()
    assert key.result is errors


def test_new_key_when_of_one_grid_comes_from_one_supply() -> None:
    one, other = VirtualRuntime(), VirtualRuntime()
    ours, theirs = grid_of((), one), grid_of((), other)
    keys = [one.run(new_key(ours)), one.run(new_key(ours)), other.run(new_key(theirs))]
    assert len(set(map(id, keys))) == 3
    assert one.cpu.calls.count("generate_key") == 3
    assert other.cpu.calls.count("generate_key") == 1


def test_take_when_called_by_the_one_that_just_got_a_key_gets_one_too(counted: list[object]) -> None:
    runtime, supply = GatedRuntime(), KeySupply()

    async def take_both() -> list[object]:
        return [await supply.take(runtime, ahead=False) for _ in range(2)]

    both = Deferred.fromCoroutine(take_both())
    runtime.gate.release_all()
    assert both.result == counted[:2]
