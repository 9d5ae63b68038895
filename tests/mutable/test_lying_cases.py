"""Cases that the state machine of lying servers has found, step by step."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from grid.engine.grid import Encoding
from tests.mutable.test_lying_machine import LyingMachine


@pytest.fixture
def machine() -> Iterator[LyingMachine]:
    machine = LyingMachine()
    yield machine
    machine.teardown()


def test_update_when_the_newest_version_is_only_on_servers_that_vanish_and_stall_then_builds_on_the_one_before(
    machine: LyingMachine,
) -> None:
    """Its shares are given up when they could not be had twice; the second time was taken for one that taught nothing."""
    machine.begin(
        format="mdmf",
        shape=Encoding(k=2, n=5, happy=3),
        seed=9,
        size=30_000,
        first_read=2167,
        segment_size=131_072,
        is_directory=False,
        liars=["stalling", "vanishing", "stalling"],
    )
    machine.die(holders={0, 1, 8}, length=600)
    machine.update(process=1, position=1368, length=52)
    machine.read(process=2, read_only=False, part=False)


def test_repair_when_a_dead_writer_left_an_empty_version_on_one_server_then_keeps_the_contents(
    machine: LyingMachine,
) -> None:
    """Two shares of an empty version on one server are one claim: nothing tells them apart, and nobody counted on them."""
    machine.begin(
        format="sdmf",
        shape=Encoding(k=2, n=5, happy=3),
        seed=93,
        size=700,
        first_read=2167,
        segment_size=3000,
        is_directory=False,
        liars=["one false number", "unknown kind"],
    )
    machine.repair(process=2, force=True)
    machine.tell(index=6, lie="late", remember=True)
    machine.update(process=1, position=335, length=321)
    machine.tell(index=1, lie="other file", remember=True)
    machine.tell(index=2, lie="unknown kind", remember=False)
    machine.repair(process=2, force=True)
    machine.check(process=1, verify=False)
    machine.check(process=1, verify=True)
    machine.die(holders={0, 9}, length=0)
    machine.repair(process=2, force=True)
    machine.read(process=3, read_only=True, part=False)
