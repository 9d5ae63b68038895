"""What a campaign is: the loads, the factors, how often, and in which order. perf.campaigns.catalogue has them by name. Pure."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Literal

from attrs import frozen

KIB = 2**10
MB = 10**6

Scenario = Literal["put-get", "range", "alacrity", "overwrite", "mkdir", "add-each", "add-batch", "list", "idle"]
Format = Literal["chk", "sdmf", "mdmf"]


@frozen(kw_only=True)
class Encoding:
    """How files are encoded. segment_size: bytes of the largest segment, None for the usual 1 MiB."""

    needed: int = 3
    happy: int = 7
    total: int = 10
    segment_size: int | None = None


@frozen(kw_only=True)
class Load:
    """What is asked of a client at once.

    scenario: `put-get` puts new files and gets them back; `range` reads at a random place of a file that this client
    put earlier in the run; `alacrity` the same of a file that nobody has read yet; `overwrite` changes bytes in place.
    `mkdir` makes `count` empty directories one after the other; `add-each` and `add-batch` link `count` children to a
    new directory, each by itself or all at once; `list` lists one of `count` children. `idle` asks nothing for
    `seconds`. size: bytes of each file. length: bytes of a range. count: files, children or directories;
    concurrency: how many files at a time. sparse: files of holes behind a random beginning, where the disk is slow.
    """

    scenario: Scenario = "put-get"
    size: int = 0
    length: int = 0
    count: int = 1
    concurrency: int = 1
    format: Format = "chk"
    seconds: float = 0.0
    sparse: bool = False

    @property
    def suits_commands(self) -> bool:
        """Whether one command does it; all else is asked of warm clients and gateways only."""
        return self.scenario == "put-get" and self.format == "chk" and self.count == 1


def whole_files(*sizes: int, format: Format = "chk") -> tuple[Load, ...]:
    """Single files of these sizes, put and got."""
    return tuple(Load(size=size, format=format) for size in sizes)


@frozen(kw_only=True)
class Campaign:
    """What one `python -m perf run` does.

    duration: roughly, on two cores. systems: labels as perf.campaigns.labels reads them.
    clients: `warm`, `gateway`, `cli`. Each system does each load with each client and encoding. runs: each with fresh grids.
    repetitions: of every cell within a run, beside the warm-ups. primer: a load that every client does once at the
    beginning of a run as a warm-up, where the loads themselves would take too long for that.
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
    primer: Load | None = None
    servers: int = 10

    @property
    def is_aa(self) -> bool:
        """Whether a system is compared with its equal."""
        return len(self.systems) == 2 and len({system.partition("#")[0] for system in self.systems}) == 1


@frozen(kw_only=True)
class Cell:
    """One load that one system does once. place: where a range starts, as a fraction of where it may."""

    system: str
    client: str
    load: Load
    encoding: Encoding
    place: float
    warmup: bool


def plan_cells(campaign: Campaign, seed: int, run: int) -> Sequence[Cell]:
    """The cells of one run in the order to do them: the warm-ups, then all others, each part in a seeded random order.

    Every system gets the same cells, and neighbours in time are of any system: what drifts, drifts for all.
    """
    draw = random.Random(f"{seed}/{run}")
    cells: list[Cell] = []
    primers = (campaign.primer,) if campaign.primer is not None else ()
    parts = (
        (True, primers, 1),
        (True, campaign.loads, campaign.warmups),
        (False, campaign.loads, campaign.repetitions),
    )
    for warmup, loads, count in parts:
        part: list[Cell] = []
        for _ in range(count):
            for load in loads:
                place = draw.random()
                part += (
                    Cell(system=system, client=client, load=load, encoding=encoding, place=place, warmup=warmup)
                    for system in campaign.systems
                    for client in campaign.clients
                    if client != "cli" or load.suits_commands
                    for encoding in campaign.encodings
                )
        draw.shuffle(part)
        cells += part
    return cells
