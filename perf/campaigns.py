"""The campaigns by name: what is measured, with which factors, how often. Pure."""

from __future__ import annotations

import random
from collections.abc import Sequence

from attrs import frozen

MB = 10**6


@frozen(kw_only=True)
class Campaign:
    """What one `python -m perf run` does.

    systems: labels, `grid` or `tahoe`, told apart by what follows a `#`. clients: `warm`, `cli`. sizes: octets.
    runs: each with fresh grids. repetitions: of every cell within a run, beside the warm-ups.
    """

    name: str
    purpose: str
    systems: tuple[str, ...] = ("grid", "tahoe")
    clients: tuple[str, ...] = ("warm",)
    sizes: tuple[int, ...] = (1 * MB, 10 * MB, 100 * MB)
    runs: int = 5
    repetitions: int = 3
    warmups: int = 1
    needed: int = 3
    happy: int = 7
    total: int = 10
    servers: int = 10


@frozen(kw_only=True)
class Cell:
    """One file that one system puts and gets once."""

    system: str
    client: str
    size: int
    warmup: bool


CAMPAIGNS = {
    campaign.name: campaign
    for campaign in (
        Campaign(name="put-get", purpose="CHK put and get of 1, 10, 100 MB at 3-of-10, warm clients"),
        Campaign(
            name="put-get-cli",
            purpose="the same from the command line, from nothing running to the last octet",
            clients=("cli",),
            repetitions=2,
        ),
        Campaign(
            name="memory",
            purpose="the client's peak memory while it puts and gets 1 GB",
            systems=("grid",),
            sizes=(1000 * MB,),
            runs=1,
            repetitions=2,
            warmups=0,
        ),
        Campaign(
            name="smoke",
            purpose="that the harness and both clients work; its numbers mean nothing",
            systems=("grid",),
            clients=("warm", "cli"),
            sizes=(1000, 1 * MB),
            runs=1,
            repetitions=1,
            warmups=0,
            servers=4,
            needed=2,
            happy=3,
            total=4,
        ),
    )
}


def plan_cells(campaign: Campaign, seed: int, run: int) -> Sequence[Cell]:
    """The cells of one run in the order to do them: the warm-ups, then all others, each part in a seeded random order.

    Every system gets the same cells, and neighbours in time are of any system: what drifts, drifts for all.
    """
    draw = random.Random(f"{seed}/{run}")
    cells: list[Cell] = []
    for warmup, count in ((True, campaign.warmups), (False, campaign.repetitions)):
        part = [
            Cell(system=system, client=client, size=size, warmup=warmup)
            for _ in range(count)
            for system in campaign.systems
            for client in campaign.clients
            for size in campaign.sizes
        ]
        draw.shuffle(part)
        cells += part
    return cells
