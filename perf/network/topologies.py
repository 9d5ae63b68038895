"""Topologies by the names that campaigns use, and what this machine can make of them."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import evolve

from perf.network.contract import Ability, Loopback, NetworkError, Topology
from perf.network.doctor import facts
from perf.network.media import OnMedium
from perf.network.processors import Limits, Slowed
from perf.network.site import TOPOLOGIES, Site
from perf.network.spokes import SPOKES

SLOW_PART = 0.25
"""Of a core, for `slow-server` and `slow-client` where a site names no other part."""

_ON_LOOPBACK = ("loopback", "existing", "slow-server", "slow-client")


def make_topology(site: Site, servers: int, *, urgent: bool = True) -> Topology:
    """The topology of a site for that many storage nodes, not entered.

    Entering it raises NetworkError where this machine lacks something, and so does a topology that is not made here. urgent:
    let an emulated line run before all other processes.
    """
    made = _network(site, servers, urgent=urgent)
    limits = Limits(
        server=site.server_cpu or (SLOW_PART if site.topology == "slow-server" else 0.0),
        client=site.client_cpu or (SLOW_PART if site.topology == "slow-client" else 0.0),
        aes=site.aes,
    )
    if limits != Limits():
        made = Slowed(limits, made, servers=servers)
    return OnMedium(site.medium, made) if site.medium else made


def abilities() -> Sequence[Ability]:
    """What this machine can and cannot do."""
    loopback = Ability(name="loopback", available=True, found="all processes on this machine")
    return [loopback, *(fact.ability() for fact in facts())]


def _network(site: Site, servers: int, *, urgent: bool) -> Topology:
    if site.topology in _ON_LOOPBACK:
        return Loopback()
    if site.topology == "machines":
        raise NetworkError("`machines` has its hosts on other machines: perf.runs.machines begins a run there")
    if site.topology not in SPOKES:
        raise NetworkError(f"there is no topology {site.topology!r}; there are {', '.join(TOPOLOGIES)}")
    kind, spokes = SPOKES[site.topology]
    # Servers of the atlas share hosts, two on each; elsewhere each has its own.
    hosts = spokes.servers if site.topology == "atlas" else servers
    return kind(site.topology, evolve(spokes, servers=hosts), urgent=urgent)
