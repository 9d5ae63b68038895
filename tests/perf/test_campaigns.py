"""The order of cells: fair, complete and reproducible."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perf.campaigns import CAMPAIGNS, Campaign, plan_cells

BIG = CAMPAIGNS["put-get"]


@pytest.mark.parametrize("campaign", CAMPAIGNS.values(), ids=str)
def test_cells_of_every_system_are_the_same(campaign: Campaign) -> None:
    kinds = {
        system: Counter(
            (cell.client, cell.size, cell.warmup) for cell in plan_cells(campaign, 1, 0) if cell.system == system
        )
        for system in campaign.systems
    }
    assert len({tuple(sorted(counts.items())) for counts in kinds.values()}) == 1
    per_system = len(campaign.clients) * len(campaign.sizes) * (campaign.repetitions + campaign.warmups)
    assert all(counts.total() == per_system for counts in kinds.values())


@given(seed=st.integers(0, 2**32), run=st.integers(0, 20))
def test_cells_start_with_the_warmups(seed: int, run: int) -> None:
    warm = [cell.warmup for cell in plan_cells(BIG, seed, run)]
    assert warm == sorted(warm, reverse=True)
    assert warm.count(True) == BIG.warmups * len(BIG.systems) * len(BIG.sizes)


def test_cells_with_the_same_seed_and_run_are_the_same() -> None:
    assert plan_cells(BIG, 3, 2) == plan_cells(BIG, 3, 2)


def test_cells_of_other_runs_or_seeds_come_in_another_order() -> None:
    orders = {tuple(map(str, plan_cells(BIG, seed, run))) for seed in range(4) for run in range(4)}
    assert len(orders) == 16


def test_cells_are_interleaved_not_grouped_by_system() -> None:
    systems = [cell.system for cell in plan_cells(BIG, 3, 0) if not cell.warmup]
    assert systems != sorted(systems)
    assert systems != sorted(systems, reverse=True)
