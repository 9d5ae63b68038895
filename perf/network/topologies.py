"""Topologies by their names in campaigns, and which of them this machine supports."""

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
"""Fraction of a core for `slow-server` and `slow-client` if the site gives none."""

_ON_LOOPBACK = ("loopback", "existing", "slow-server", "slow-client")


def make_topology(site: Site, servers: int, *, urgent: bool = True) -> Topology:
    """The topology of a site for this many storage nodes, not entered yet.

    Entering it raises NetworkError if this machine lacks something or the topology is not supported. urgent: run an
    emulated link at real-time priority.
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
    # In the atlas, two servers share each host; elsewhere each has its own.
    hosts = spokes.servers if site.topology == "atlas" else servers
    return kind(site.topology, evolve(spokes, servers=hosts), urgent=urgent)
