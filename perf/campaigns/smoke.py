"""The smallest form of a campaign: everything that it does, once, in under a minute; its numbers mean nothing. Pure."""

from __future__ import annotations

from attrs import evolve

from perf.campaigns.campaign import MB, Campaign, Encoding, Load
from perf.campaigns.labels import parse_label

SERVERS = 4
SYSTEMS = 2
ENCODINGS = 2
LARGEST = MB
MOST_FILES = 6


def smoke(campaign: Campaign) -> Campaign:
    """One run of one repetition: at most two systems, two encodings, one site; small files, and each kind of load once."""
    loads = {(load.scenario, load.format, load.mode, load.cache): _small(load) for load in reversed(campaign.loads)}
    return evolve(
        campaign,
        name=f"{campaign.name}-smoke",
        systems=_different(campaign.systems),
        loads=tuple(reversed(loads.values())),
        encodings=tuple(dict.fromkeys(_few(encoding) for encoding in _ends(campaign.encodings))),
        sites=campaign.sites[:1],
        runs=1,
        repetitions=1,
        warmups=0,
        primer=None,
        servers=min(SERVERS, campaign.servers),
    )


def _different(systems: tuple[str, ...]) -> tuple[str, ...]:
    """The first, and the next that is of another kind; for equals, both."""
    others = [system for system in systems[1:] if parse_label(system).base != parse_label(systems[0]).base]
    return (systems[0], *(others or systems[1:]))[:SYSTEMS]


def _ends(encodings: tuple[Encoding, ...]) -> list[Encoding]:
    return [encodings[0], encodings[-1]][:ENCODINGS]


def _few(encoding: Encoding) -> Encoding:
    return evolve(encoding, happy=min(encoding.happy, SERVERS))


def _small(load: Load) -> Load:
    size = min(load.size, LARGEST)
    count = min(load.count, MOST_FILES)
    return evolve(
        load,
        size=size,
        length=min(load.length, size),
        count=count,
        concurrency=min(load.concurrency, count),
        seconds=min(load.seconds, 1.0),
    )
