"""The campaigns by name: what is measured, with which factors, how often. Pure."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Literal

from attrs import frozen

KIB = 2**10
MB = 10**6

Scenario = Literal["put-get", "range", "alacrity"]


@frozen(kw_only=True)
class Encoding:
    """How files are encoded. segment_size: octets of the largest segment, None for the usual 1 MiB."""

    needed: int = 3
    happy: int = 7
    total: int = 10
    segment_size: int | None = None


@frozen(kw_only=True)
class Load:
    """What is asked of a client at once.

    scenario: `put-get` puts new files and gets them back; `range` reads at a random place of a file that this client
    put earlier in the run; `alacrity` the same of a file that nobody has read yet. size: octets of each file. length:
    octets of a range. count: files; concurrency: how many of them at a time.
    """

    scenario: Scenario = "put-get"
    size: int
    length: int = 0
    count: int = 1
    concurrency: int = 1


def whole_files(*sizes: int) -> tuple[Load, ...]:
    """Single files of these sizes, put and got."""
    return tuple(Load(size=size) for size in sizes)


@frozen(kw_only=True)
class Campaign:
    """What one `python -m perf run` does.

    duration: roughly, on two cores. systems: labels as perf.runner knows them, told apart by what follows a `#`.
    clients: `warm`, `cli`. Each system does each load with each client and encoding. runs: each with fresh grids.
    repetitions: of every cell within a run, beside the warm-ups.
    """

    name: str
    purpose: str
    duration: str
    systems: tuple[str, ...] = ("grid", "tahoe")
    clients: tuple[str, ...] = ("warm",)
    loads: tuple[Load, ...]
    encodings: tuple[Encoding, ...] = (Encoding(),)
    runs: int = 5
    repetitions: int = 3
    warmups: int = 1
    servers: int = 10


@frozen(kw_only=True)
class Cell:
    """One load that one system does once. place: where a range starts, as a fraction of where it may."""

    system: str
    client: str
    load: Load
    encoding: Encoding
    place: float
    warmup: bool


ALL_SYSTEMS = ("grid@foolscap", "grid@http", "grid@http-plain", "tahoe@foolscap", "tahoe@http")

CAMPAIGNS = {
    campaign.name: campaign
    for campaign in (
        Campaign(
            name="put-get",
            purpose="CHK put and get of 1, 10, 100 MB at 3-of-10, warm clients",
            duration="5 min",
            loads=whole_files(1 * MB, 10 * MB, 100 * MB),
        ),
        Campaign(
            name="put-get-cli",
            purpose="the same from the command line, from nothing running to the last octet",
            duration="6 min",
            clients=("cli",),
            loads=whole_files(1 * MB, 10 * MB, 100 * MB),
            repetitions=2,
        ),
        Campaign(
            name="transports",
            purpose="CHK put and get of 100 MB over every transport",
            duration="12 min",
            systems=ALL_SYSTEMS,
            loads=whole_files(100 * MB),
        ),
        Campaign(
            name="ranges",
            purpose="1 B, 64 KiB, 1 MB and 10 MB of 100 MB, and one random octet of a file never read before",
            duration="15 min",
            systems=ALL_SYSTEMS,
            loads=(
                *(Load(scenario="range", size=100 * MB, length=length) for length in (1, 64 * KIB, 1 * MB, 10 * MB)),
                Load(scenario="alacrity", size=100 * MB, length=1),
            ),
        ),
        Campaign(
            name="small-files",
            purpose="200 files of 1 KiB 16 at a time, 100 files of 1 MB 4 at a time",
            duration="20 min",
            systems=ALL_SYSTEMS,
            loads=(Load(size=KIB, count=200, concurrency=16), Load(size=1 * MB, count=100, concurrency=4)),
            runs=4,
            repetitions=2,
        ),
        Campaign(
            name="k-sweep",
            purpose="CHK put and get of 100 MB at 3-of-6, 3-of-10, 10-of-20, 30-of-60, 60-of-120",
            duration="20 min",
            systems=("grid@foolscap", "grid@http", "tahoe@foolscap"),
            loads=whole_files(100 * MB),
            encodings=(
                Encoding(needed=3, happy=6, total=6),
                *(Encoding(needed=needed, total=total) for needed, total in ((3, 10), (10, 20), (30, 60), (60, 120))),
            ),
            runs=4,
            repetitions=1,
        ),
        Campaign(
            name="segments",
            purpose="CHK put and get of 100 MB with segments of 128 KiB, 1 MiB and 4 MiB",
            duration="12 min",
            systems=("grid@foolscap", "grid@http", "tahoe@foolscap"),
            loads=whole_files(100 * MB),
            encodings=tuple(Encoding(segment_size=kib * KIB) for kib in (128, 1024, 4096)),
            runs=4,
            repetitions=1,
        ),
        Campaign(
            name="memory",
            purpose="the client's peak memory while it puts and gets 1 GB",
            duration="2 min",
            systems=("grid",),
            loads=whole_files(1000 * MB),
            runs=1,
            repetitions=2,
            warmups=0,
        ),
        Campaign(
            name="smoke",
            purpose="that the harness and both clients work; its numbers mean nothing",
            duration="under 30 s",
            systems=("grid",),
            clients=("warm", "cli"),
            loads=whole_files(1000, 1 * MB),
            encodings=(Encoding(needed=2, happy=3, total=4),),
            runs=1,
            repetitions=1,
            warmups=0,
            servers=4,
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
        part: list[Cell] = []
        for _ in range(count):
            for load in campaign.loads:
                place = draw.random()
                part += (
                    Cell(system=system, client=client, load=load, encoding=encoding, place=place, warmup=warmup)
                    for system in campaign.systems
                    for client in campaign.clients
                    for encoding in campaign.encodings
                )
        draw.shuffle(part)
        cells += part
    return cells
