"""Which transfers of a sample are slow."""

from __future__ import annotations

import random

import pytest

from perf.sampling.watch import KEPT, slow_transfers


def lines(*times: tuple[int, float], error: str = "") -> list[list[object]]:
    """Transfers one after the other. times: bytes and seconds of each."""
    made: list[list[object]] = []
    for number, (size, seconds) in enumerate(times):
        made.append([size, float(number), float(number), number + seconds, error])
    return made


def test_transfer_far_above_the_others_is_slow_and_the_others_say_what_is_usual() -> None:
    assert slow_transfers(lines(*[(1000, 0.25)] * 9, (1000, 0.5))) == [(9, 0.25)]
    assert slow_transfers(lines(*[(1000, 0.25)] * 9, (1000, 0.375))) == []


def test_two_transfers_say_nothing_of_each_other() -> None:
    assert slow_transfers(lines((1000, 0.1), (1000, 9.0))) == []
    assert slow_transfers([]) == []


def test_transfers_that_share_a_line_differ_widely_and_are_not_slow_for_that() -> None:
    assert slow_transfers(lines(*((1000, 0.1 * number) for number in range(1, 101)))) == []
    ((index, usual),) = slow_transfers(lines(*((1000, 0.1 * number) for number in range(1, 101)), (1000, 60.0)))
    assert index == 100
    assert usual == pytest.approx(5.1)


def test_transfer_is_compared_with_what_its_size_suggests() -> None:
    draw = random.Random(1)
    sizes = [draw.randrange(10**5, 10**7) for _ in range(60)]
    times = [(size, (0.05 + size * 1e-8) * draw.uniform(0.95, 1.05)) for size in sizes]
    assert slow_transfers(lines(*times)) == []
    # As long as a large one takes, but it is small.
    ((index, usual),) = slow_transfers(lines((10**5, 0.15), *times))
    assert index == 0
    assert usual == pytest.approx(0.051, rel=0.1)


def test_thousands_of_files_of_one_size_are_not_compared_in_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("perf.sampling.watch.combinations", None)
    assert slow_transfers(lines(*[(1000, 0.25)] * 3000, (1000, 9.0))) == [(3000, 0.25)]


def test_failed_transfers_are_not_compared() -> None:
    assert slow_transfers([*lines((1000, 0.1), (1000, 0.1)), *lines((1000, 9.0), (1000, 0.01), error="broken")]) == []


def test_wait_counts_from_the_scheduled_start() -> None:
    late = [1000, 0.0, 4.0, 4.1, ""]
    assert slow_transfers([*lines(*[(1000, 0.125)] * 5), late]) == [(5, 0.125)]


def test_few_are_kept_the_slowest_against_their_size_first() -> None:
    slow = [(1000, 1.0 + number) for number in range(10)]
    found = slow_transfers(lines(*[(1000, 0.1)] * 50, *slow))
    assert [index for index, _ in found] == list(range(59, 59 - KEPT, -1))
