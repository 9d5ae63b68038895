"""What makes a whole campaign impossible, although each of its values is allowed. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from perf.campaigns.campaign import Campaign
from perf.campaigns.labels import parse_label
from perf.network.site import Site

ELSEWHERE = {"existing": "a grid that exists", "machines": "the machines of a cluster"}
"""Topologies whose servers run where nobody can limit them, or choose their medium."""


def impossible(campaign: Campaign) -> tuple[str, str] | None:
    """The key that makes the campaign impossible, as campaign files name it, and why; None if it is possible."""
    return next(_problems(campaign), None)


def _problems(campaign: Campaign) -> Iterator[tuple[str, str]]:
    for load in (*campaign.loads, *([campaign.primer] if campaign.primer is not None else [])):
        if wrong := load.impossible:
            yield wrong
    for encoding in campaign.encodings:
        if encoding.happy > campaign.servers:
            yield "encoding", f"happy {encoding.happy} needs as many servers, and there are {campaign.servers}"
    for site in campaign.sites:
        yield from _problems_of_site(campaign, site)
    if any(site.node for site in campaign.sites):
        for system in campaign.systems:
            if not parse_label(system).is_guest:
                why = f"{system} cannot be a guest on a grid that exists: name a Grid without a commit"
                yield "systems", why
    switched = [one for one in campaign.systems if parse_label(one).is_grid and parse_label(one).options]
    if switched and "warm" not in campaign.clients:
        yield "clients", f"{switched[0]}: options of the engine reach the client warm only"
    if set(campaign.clients) == {"cli"} and not any(load.suits_commands for load in campaign.loads):
        why = "commands put and get single immutable files only; warm and gateway do all that is asked here"
        yield "clients", why


def _problems_of_site(campaign: Campaign, site: Site) -> Iterator[tuple[str, str]]:
    if (site.topology == "existing") != bool(site.node):
        yield "topology", 'topology = "existing" and node = "DIRECTORY" belong together'
    if site.topology in ELSEWHERE:
        limits = {
            "medium": site.medium,
            "server-cpu": site.server_cpu,
            "client-cpu": site.client_cpu,
            "aes": not site.aes,
        }
        for key in (key for key, value in limits.items() if value):
            why = f"{ELSEWHERE[site.topology]} cannot be changed: with the topology {site.topology}, leave {key} out"
            yield key, why
    here = [load for load in campaign.loads if load.topology in ("", site.topology)]
    if any(load.cache == "cold" for load in here) and (site.topology in ELSEWHERE or site.medium == "tmpfs"):
        where = "on tmpfs, which is memory itself" if site.medium == "tmpfs" else f"of {ELSEWHERE[site.topology]}"
        yield "cache", f"nobody can evict the shares {where}: with {site}, cache is warm"
