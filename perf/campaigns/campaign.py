"""The definition of a campaign: loads, factors, repetitions and order. Files in this folder hold them. Pure."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from attrs import frozen

from perf.campaigns.arrivals import Spread
from perf.network.site import LOOPBACK, Site

KIB = 2**10
MB = 10**6

Scenario = Literal["put-get", "range", "alacrity", "overwrite", "mkdir", "add-each", "add-batch", "list", "idle"]
Format = Literal["chk", "sdmf", "mdmf"]
Mode = Literal["", "serial", "parallel", "saturation", "limited"]
Cache = Literal["warm", "cold"]
Origin = Literal["random", "start", "middle"]


_WHOLE = ("size", "sizes", "count", "concurrency", "format", "mode", "cache", "sparse")
_PART = ("size", "length", "format")
FACTORS: Mapping[Scenario, tuple[str, ...]] = {
    "put-get": _WHOLE,
    "range": (*_PART, "cache", "from"),
    "alacrity": (*_PART, "cache"),
    "overwrite": _PART,
    "mkdir": ("count",),
    "add-each": ("count",),
    "add-batch": ("count",),
    "list": ("count",),
    "idle": ("seconds",),
}
"""The factors of each operation, as campaign files name them; others would change nothing."""


@frozen(kw_only=True)
class Encoding:
    """How files are encoded. segment_size: bytes of the largest segment, None for the default of 1 MiB."""

    needed: int = 3
    happy: int = 7
    total: int = 10
    segment_size: int | None = None


@frozen(kw_only=True)
class Load:
    """One kind of work for a client.

    scenario: `put-get` puts new files and gets them back; `range` reads at a random place of a file that this client
    put earlier in the run; `alacrity` does the same with a file that nobody has read yet; `overwrite` changes bytes in
    place. `mkdir` makes `count` empty directories one after the other; `add-each` and `add-batch` link `count` children
    to a new directory, one by one or all at once; `list` lists one of `count` children. `idle` does nothing for
    `seconds`. size: bytes of each file. length: bytes of a range. count: files, children or directories; concurrency:
    files at a time. sparse: files with a random beginning and a hole, for slow disks. mode: `serial` one after the
    other; `parallel` and `saturation` all files at once; `limited` one per core of the client; empty: `concurrency`
    counts. cache: `cold` evicts sources and shares first. spread: the distribution of sizes, as perf.campaigns.arrivals
    parses it; size is then its mean. origin: where a range begins, as far as its length permits. topology: restricts the load to one topology; empty for all. warmups: None for the
    campaign's number.
    """

    scenario: Scenario = "put-get"
    size: int = 0
    length: int = 0
    count: int = 1
    concurrency: int = 1
    format: Format = "chk"
    seconds: float = 0.0
    sparse: bool = False
    mode: Mode = ""
    cache: Cache = "warm"
    spread: str = ""
    topology: str = ""
    warmups: int | None = None
    origin: Origin = "random"

    def offset(self, place: float) -> int:
        """Where a range begins. place: the fraction of the possible offsets for one at random."""
        last = self.size - self.length
        return {"start": 0, "middle": min(self.size // 2, last), "random": int(place * (last + 1))}[self.origin]

    def sizes(self, seed: int) -> list[int]:
        """The size of each file in bytes."""
        return Spread.of(self.spread).sizes(self.count, seed) if self.spread else [self.size] * self.count

    def width(self, cores: int) -> int:
        """Files at a time on a client with this many cores."""
        match self.mode:
            case "serial":
                return 1
            case "parallel" | "saturation":
                return self.count
            case "limited":
                return min(self.count, cores)
            case _:
                return self.concurrency

    @property
    def impossible(self) -> tuple[str, str] | None:
        """The factor that makes the load impossible, as campaign files name it, and why; None if it is possible."""
        if wrong := self._unused():
            having = ", ".join(name for name, factors in FACTORS.items() if wrong in factors)
            return wrong, f"{self.scenario} has no {wrong}: leave it out, or take {having}"
        if "length" in FACTORS[self.scenario] and not 1 <= self.length <= self.size:
            return "length", f"{self.scenario} needs a length from 1 to the size, {self.size}"
        if self.scenario == "overwrite" and self.format == "chk":
            return "format", "overwrite needs format sdmf or mdmf: chk files never change"
        if self.scenario == "put-get" and not self.size:
            return "size", "put-get needs a size"
        if self.spread and not Spread.of(self.spread).suits(self.count):
            return "sizes", f"no {self.count} files have {self.spread}: give another count, 3 or more"
        if self.scenario == "idle" and not self.seconds:
            return "seconds", "idle needs seconds"
        if self.mode and self.count == 1:
            return "mode", "a mode needs a count of files, 2 or more"
        if self.mode and self.concurrency != 1:
            return "mode", "a mode sets the concurrency by itself: give one of the two"
        if self.concurrency > self.count:
            return "concurrency", f"there are only {self.count} files: concurrency cannot be {self.concurrency}"
        return None

    def _unused(self) -> str:
        """A factor that is set and changes nothing in this operation; empty if there is none."""
        usual = Load(scenario=self.scenario)
        for key in dict.fromkeys(key for factors in FACTORS.values() for key in factors):
            name = {"sizes": "spread", "from": "origin"}.get(key, key)
            if key not in FACTORS[self.scenario] and getattr(self, name) != getattr(usual, name):
                return key
        return ""

    @property
    def suits_commands(self) -> bool:
        """Whether a single command can do it; other loads go only to warm clients and gateways."""
        return self.scenario == "put-get" and self.format == "chk" and self.count == 1


def whole_files(*sizes: int, format: Format = "chk") -> tuple[Load, ...]:
    """Loads that put and get single files of these sizes."""
    return tuple(Load(size=size, format=format) for size in sizes)


@frozen(kw_only=True)
class Campaign:
    """What one `python -m perf run` does.

    duration: approximate, on two cores. systems: labels as in perf.campaigns.labels. clients: `warm`, `gateway`, `cli`.
    Each system does each load with each client and encoding. runs: each with fresh grids. repetitions: of every cell
    within a run, in addition to the warm-ups. primer: a load that each client does once at the beginning of a run as a
    warm-up, if the loads themselves would take too long for that. sites: where everything is done, one after the other
    within a run. seed: of the order; from the clock if not given. budget: minutes after which no further cell begins.
    freeze: whether all systems but the measured one are frozen.
    """

    name: str
    purpose: str
    duration: str = "not known"
    systems: tuple[str, ...] = ("grid", "tahoe")
    clients: tuple[str, ...] = ("warm",)
    loads: tuple[Load, ...]
    encodings: tuple[Encoding, ...] = (Encoding(),)
    runs: int = 5
    repetitions: int = 3
    warmups: int = 1
    primer: Load | None = None
    servers: int = 10
    sites: tuple[Site, ...] = (LOOPBACK,)
    seed: int | None = None
    budget: float | None = None
    freeze: bool = True

    @property
    def is_aa(self) -> bool:
        """Whether a system is compared with an identical one."""
        return len(self.systems) == 2 and len({system.partition("#")[0] for system in self.systems}) == 1


@frozen(kw_only=True)
class Cell:
    """One load done once by one system. place: where a range starts, as a fraction of the possible offsets."""

    system: str
    client: str
    load: Load
    encoding: Encoding
    place: float
    warmup: bool
    site: Site = LOOPBACK


def plan_cells(campaign: Campaign, seed: int, run: int, site: Site = LOOPBACK) -> Sequence[Cell]:
    """The cells of one run at one site, in order: first the warm-ups, then all others, each in a seeded random order.

    Every system gets the same cells, in mixed order, so any drift affects all of them.
    """
    draw = random.Random(f"{seed}/{run}" if site == LOOPBACK else f"{seed}/{run}/{site}")
    cells: list[Cell] = []
    primers = (campaign.primer,) if campaign.primer is not None else ()
    here = [load for load in campaign.loads if load.topology in ("", site.topology)]
    parts = (
        (True, [(load, 1) for load in primers]),
        (True, [(load, campaign.warmups if load.warmups is None else load.warmups) for load in here]),
        (False, [(load, campaign.repetitions) for load in here]),
    )
    for warmup, loads in parts:
        part: list[Cell] = []
        for number in range(max((count for _, count in loads), default=0)):
            for load in (load for load, count in loads if number < count):
                place = draw.random()
                part += (
                    Cell(
                        system=system,
                        client=client,
                        load=load,
                        encoding=encoding,
                        place=place,
                        warmup=warmup,
                        site=site,
                    )
                    for system in campaign.systems
                    for client in campaign.clients
                    if client != "cli" or load.suits_commands
                    for encoding in campaign.encodings
                )
        draw.shuffle(part)
        cells += part
    return cells


def campaign_from(plan: Mapping[str, Any]) -> Campaign:
    """The campaign from the values in a record, as attrs.asdict wrote them."""
    primer = plan.get("primer")
    return Campaign(
        **{
            **plan,
            "systems": tuple(plan["systems"]),
            "clients": tuple(plan["clients"]),
            "loads": tuple(Load(**load) for load in plan["loads"]),
            "encodings": tuple(Encoding(**encoding) for encoding in plan["encodings"]),
            "sites": tuple(Site(**site) for site in plan["sites"]),
            "primer": Load(**primer) if primer is not None else None,
        }
    )
