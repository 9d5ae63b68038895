"""The order of cells: fair, complete and reproducible."""

from __future__ import annotations

from collections import Counter

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from perf.campaigns.campaign import Campaign, plan_cells
from perf.campaigns.files import load, names
from perf.systems.peers import make_system

CAMPAIGNS = {name: found for name in names() if isinstance(found := load(name), Campaign)}
BIG = CAMPAIGNS["put-get"]


@pytest.mark.parametrize("campaign", CAMPAIGNS.values(), ids=lambda campaign: campaign.name)
def test_cells_of_every_system_are_the_same(campaign: Campaign) -> None:
    kinds = [
        Counter(evolve(cell, system="") for cell in plan_cells(campaign, 1, 0) if cell.system == system)
        for system in campaign.systems
    ]
    assert all(kind == kinds[0] for kind in kinds)
    clients = sum(client != "cli" or load.suits_commands for client in campaign.clients for load in campaign.loads)
    factors = clients * len(campaign.encodings)
    primers = len(campaign.encodings) * (campaign.primer is not None)
    assert kinds[0].total() == factors * (campaign.repetitions + campaign.warmups) + primers


@pytest.mark.parametrize("campaign", CAMPAIGNS.values(), ids=lambda campaign: campaign.name)
def test_campaign_can_be_done(campaign: Campaign) -> None:
    assert all(make_system(system).label == system for system in campaign.systems)
    for encoding in campaign.encodings:
        assert 1 <= encoding.needed <= encoding.total <= 256
        assert encoding.happy <= min(encoding.total, campaign.servers)
    assert all(0 <= load.length <= load.size and 1 <= load.concurrency <= load.count for load in campaign.loads)
    assert campaign.duration


def test_ranges_start_at_places_of_their_own() -> None:
    campaign = CAMPAIGNS["ranges"]
    places = {cell.place for cell in plan_cells(campaign, 1, 0) if not cell.warmup}
    assert len(places) == len(campaign.loads) * campaign.repetitions
    assert all(0 <= place < 1 for place in places)


@given(seed=st.integers(0, 2**32), run=st.integers(0, 20))
def test_cells_start_with_the_warmups(seed: int, run: int) -> None:
    warm = [cell.warmup for cell in plan_cells(BIG, seed, run)]
    assert warm == sorted(warm, reverse=True)
    assert warm.count(True) == BIG.warmups * len(BIG.systems) * len(BIG.loads)


def test_cells_begin_with_the_primer_where_there_is_one() -> None:
    campaign = CAMPAIGNS["k-sweep"]
    cells = plan_cells(campaign, 1, 0)
    count = len(campaign.systems) * len(campaign.encodings)
    assert {(cell.load, cell.warmup) for cell in cells[:count]} == {(campaign.primer, True)}
    assert not any(cell.warmup for cell in cells[count:])


def test_cells_with_the_same_seed_and_run_are_the_same() -> None:
    assert plan_cells(BIG, 3, 2) == plan_cells(BIG, 3, 2)


def test_cells_of_other_runs_or_seeds_come_in_another_order() -> None:
    orders = {tuple(map(str, plan_cells(BIG, seed, run))) for seed in range(4) for run in range(4)}
    assert len(orders) == 16


def test_cells_are_interleaved_not_grouped_by_system() -> None:
    systems = [cell.system for cell in plan_cells(BIG, 3, 0) if not cell.warmup]
    assert systems != sorted(systems)
    assert systems != sorted(systems, reverse=True)
