"""Reduces a campaign to a smoke test: everything once, in under a minute; its numbers mean nothing. Pure."""

from __future__ import annotations

from attrs import evolve

from perf.campaigns.arrivals import Spread
from perf.campaigns.campaign import MB, Campaign, Encoding, Load
from perf.campaigns.labels import Label, parse_label, without_commit
from perf.network.site import Site

SERVERS = 4
SYSTEMS = 2
ENCODINGS = 2
LARGEST = MB
MOST_FILES = 6


def smoke(campaign: Campaign) -> Campaign:
    """One run of one repetition: at most two systems, two encodings and one site; small files, and each kind of load
    once.
    """
    loads = {
        (load.scenario, load.format, load.mode, load.cache, load.origin): _small(load)
        for load in reversed(campaign.loads)
    }
    return evolve(
        campaign,
        name=f"{campaign.name}-smoke",
        systems=_different(campaign.systems),
        loads=tuple(reversed(loads.values())),
        encodings=tuple(dict.fromkeys(_few(encoding) for encoding in _ends(campaign.encodings))),
        sites=_sites(campaign),
        runs=1,
        repetitions=1,
        warmups=0,
        primer=None,
        servers=min(SERVERS, campaign.servers),
    )


def _sites(campaign: Campaign) -> tuple[Site, ...]:
    """The first site, and those needed by loads restricted to one topology."""
    wanted = {load.topology for load in campaign.loads if load.topology}
    found = {site.topology: site for site in reversed(campaign.sites) if site.topology in wanted}
    return tuple(dict.fromkeys([campaign.sites[0], *reversed(found.values())]))


def _different(systems: tuple[str, ...]) -> tuple[str, ...]:
    """The first system and the same at an older commit, or the next of another kind, or both of two equals.

    All engine options together count as one kind.
    """
    labels = {system: parse_label(system) for system in systems}
    options = dict.fromkeys(
        option for label in labels.values() if label.is_grid for option in (*label.options, *_zfec(label))
    )
    engine = [one for one in options if one != "zfec"]
    if engine:
        return (systems[0], "+".join([labels[systems[0]].base, *options]))
    older = [one for one in systems if labels[one].commit and without_commit(one) == systems[0]]
    if older:
        return (systems[0], older[0])
    others = [system for system in systems[1:] if labels[system].base != labels[systems[0]].base]
    return (systems[0], *(others or systems[1:]))[:SYSTEMS]


def _zfec(label: Label) -> tuple[str, ...]:
    return ("zfec",) if label.codec == "zfec" else ()


def _ends(encodings: tuple[Encoding, ...]) -> list[Encoding]:
    return [encodings[0], encodings[-1]][:ENCODINGS]


def _few(encoding: Encoding) -> Encoding:
    return evolve(encoding, happy=min(encoding.happy, SERVERS))


def _small(load: Load) -> Load:
    size = min(load.size, LARGEST)
    count = min(load.count, MOST_FILES)
    spread = ""
    if load.spread:
        mean = min(Spread.of(load.spread).mean, LARGEST // 4)
        spread, size = f"{mean // 4} to {2 * mean}, mean {mean}", mean
    return evolve(
        load,
        spread=spread,
        warmups=None,
        size=size,
        length=min(load.length, size),
        count=count,
        concurrency=min(load.concurrency, count),
        seconds=min(load.seconds, 1.0),
    )
