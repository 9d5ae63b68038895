"""Placing shares past the first 2N servers: no number of dead, full and silent servers stops a put."""

from __future__ import annotations

import random

import pytest

from grid.engine.grid import Encoding
from grid.errors import NoServersError, NotHappyError
from grid.immutable.write.select_plan import ANSWER_LIMIT_S, IMPATIENCE_S
from tests.support.scripted_grid import ScriptedGrid, noise

SMALL = Encoding(k=2, n=4, happy=3)
DATA = noise(1000)
COUNT = 60


def spoil(grid: ScriptedGrid, spared: int, seed: int, **faults: object) -> None:
    """Have all servers misbehave but a few, anywhere in the order."""
    indexes = random.Random(seed).sample(range(len(grid.servers)), len(grid.servers) - spared)
    for index in indexes:
        grid.script(index, **faults)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    "faults",
    [
        {"dead_from": 0},
        {"read_only": True},
        {"full": True},
        {"dead_from": 0, "only": frozenset({"allocate"})},
        {"dead_from": 0, "only": frozenset({"find_shares"})},
    ],
    ids=["dead", "read-only", "full", "dead-to-allocations", "dead-to-finds"],
)
def test_put_when_few_of_many_servers_are_of_use_finds_them(faults: dict[str, object], seed: int) -> None:
    grid = ScriptedGrid(COUNT)
    spoil(grid, 4, seed, **faults)
    result = grid.put(DATA, encoding=SMALL)
    assert result.pushed == 4
    assert result.happiness >= SMALL.happy
    assert grid.get(result.cap) == DATA
    grid.settle()
    assert grid.debris() == []


@pytest.mark.parametrize("seed", range(3))
def test_put_when_most_servers_are_silent_asks_the_next_before_it_gives_them_up(seed: int) -> None:
    grid = ScriptedGrid(COUNT)
    spoil(grid, 4, seed, silent_from=0)
    result = grid.put(DATA, encoding=SMALL)
    assert result.happiness >= 3
    rounds = -(-COUNT // (2 * 4))
    assert grid.now < rounds * IMPATIENCE_S + ANSWER_LIMIT_S


def test_put_when_the_first_servers_suffice_asks_nobody_else() -> None:
    grid = ScriptedGrid(COUNT)
    grid.put(DATA, encoding=SMALL)
    assert sum(bool(server.calls) for server in grid.servers) == 2 * SMALL.n


def test_put_when_some_of_the_first_servers_are_dead_asks_nobody_else_while_enough_are_left() -> None:
    grid = ScriptedGrid(COUNT)
    grid.put(DATA, encoding=SMALL)
    first = [index for index, server in enumerate(grid.servers) if server.calls]
    for index in first[: SMALL.n]:
        grid.script(index, dead_from=0)
    asked = sum(bool(server.calls) for server in grid.servers)
    result = grid.put(DATA, encoding=SMALL)
    assert result.happiness >= 3
    assert sum(bool(server.calls) for server in grid.servers) <= asked + SMALL.n


def test_put_when_too_few_servers_are_of_use_says_so_after_all_were_asked() -> None:
    grid = ScriptedGrid(COUNT)
    spoil(grid, 2, 0, full=True)
    with pytest.raises(NotHappyError):
        grid.put(DATA, encoding=SMALL)
    assert all(server.calls for server in grid.servers)
    grid.settle()
    assert grid.debris() == []


def test_put_when_every_server_is_dead_says_so() -> None:
    grid = ScriptedGrid(COUNT)
    spoil(grid, 0, 0, dead_from=0)
    with pytest.raises(NoServersError, match=f"none of {COUNT} servers"):
        grid.put(DATA, encoding=SMALL)
