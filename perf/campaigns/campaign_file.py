"""Campaigns as TOML files, with every factor validated before anything starts. Pure; perf.campaigns.files reads them.

Errors name the file, the line, and what is allowed.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast, get_args

from attrs import evolve, fields_dict

from perf.campaigns.arrivals import Spread
from perf.campaigns.campaign import FACTORS, Cache, Campaign, Encoding, Format, Load, Mode, Origin, Scenario
from perf.campaigns.encodings import ENCODING_WORDS, USUAL_HAPPY, parse_encoding
from perf.campaigns.labels import Codec, parse_label, toggled
from perf.campaigns.toml_file import (
    CampaignError,
    Key,
    TomlFile,
    flag,
    number,
    one_of,
    parse_chosen,
    parse_positive_size,
    parse_size,
    text,
)
from perf.network.site import MEDIA, TOPOLOGIES, Site

CLIENTS = ("warm", "gateway", "cli")


def _label(value: Any) -> str:  # noqa: ANN401 - TOML's
    parse_label(text(value))
    return str(value)


def parse_spread(value: Any) -> str:  # noqa: ANN401 - TOML's
    """Parse a distribution of sizes; ValueError."""
    Spread.of(text(value))
    return str(value)


_SIZES = Key(parse_size, 'bytes, as 1000, "64 KiB" or "1 MB"')
_SPREAD = Key(parse_spread, '"images", or "LEAST to MOST, mean MEAN" in bytes')
WORK: Mapping[str, Key] = {
    "operation": one_of(*get_args(Scenario)),
    "format": one_of(*get_args(Format)),
    "size": _SIZES,
    "sizes": _SPREAD,
    "length": _SIZES,
    "from": one_of(*get_args(Origin)),
    "count": number(1, 10**6),
    "concurrency": number(1, 1024),
    "mode": one_of(*(mode for mode in get_args(Mode) if mode)),
    "cache": one_of(*get_args(Cache)),
    "seconds": number(0, 86400, whole=False),
    "sparse": Key(flag, "true or false"),
}
"""Keys of a load; at the top of a file they are defaults for every [[work]]."""

OF_ONE: Mapping[str, Key] = {"topology": one_of(*TOPOLOGIES), "warmups": number(0, 1000, many=False)}
"""Campaign keys that a [[work]] may override: the topology to which it is restricted, and its warm-ups."""

ENGINE: Mapping[str, Key] = {
    "batched-reads": Key(flag, "true or false"),
    "hash-prefetch": Key(flag, "true or false"),
    "hedging": Key(flag, "true or false"),
    "window": _SIZES,
    "codec": one_of(*get_args(Codec)),
    "plain-reads": Key(flag, "true or false"),
}
"""Engine toggles: each setting makes another system of every Grid listed."""

NUMBERS: Mapping[str, Key] = {"k": number(1, 256), "N": number(1, 256), "happy": number(1, 256)}
"""Alternatives to `encoding`, one number each."""

TOP: Mapping[str, Key] = {
    "purpose": Key(text, "text", many=False),
    "duration": Key(text, "text", many=False),
    "systems": Key(_label, "labels of systems, as grid@http, tahoe@foolscap or rclone@versitygw+tuned"),
    "clients": one_of(*CLIENTS),
    "encoding": Key(parse_encoding, ENCODING_WORDS),
    **NUMBERS,
    **ENGINE,
    "segment": Key(parse_positive_size, 'bytes, 1 or more, as 1000, "64 KiB" or "1 MB"'),
    "topology": one_of(*TOPOLOGIES),
    "medium": one_of(*MEDIA),
    "server-cpu": number(0.01, 1, whole=False),
    "client-cpu": number(0.01, 1, whole=False),
    "aes": Key(flag, "true or false"),
    "node": Key(text, "a directory", many=False),
    "servers": number(1, 1000, many=False),
    "runs": number(1, 1000, many=False),
    "repetitions": number(1, 10**4, many=False),
    "warmups": number(0, 1000, many=False),
    "seed": number(0, 10**9, many=False),
    "budget": number(1, 10**5, whole=False, many=False),
    "freeze": Key(flag, "true or false", many=False),
}
"""Keys of the whole campaign."""

ELSEWHERE = {"existing": "a grid that exists", "machines": "the machines of a cluster"}
"""Topologies whose servers run where nobody can limit them, or choose their medium."""

TABLES = ("work", "primer")


def parse_campaign(content: str, name: str, path: str, changes: Mapping[str, Any] | None = None) -> Campaign:
    """Parse a campaign; CampaignError if it is invalid or impossible. changes: values to use for keys at the top."""
    return _File(content, name, path, TOP, changes).campaign()


class _File(TomlFile):
    """A campaign file for clients of grids."""

    def campaign(self) -> Campaign:
        """Parse the whole file."""
        works, top = self._raw.get("work"), {k: v for k, v in self._raw.items() if k not in TABLES}
        if not isinstance(works, list) or not works:
            raise CampaignError(f"{self._path}:1: there is no [[work]]; a campaign has at least one")
        values = {key: self._values(key, value, {**TOP, **WORK}) for key, value in top.items()}
        for key in ("purpose", "systems"):
            if key not in values:
                raise CampaignError(f"{self._path}:1: {key} is missing: {TOP[key].allowed}")
        defaults = {key: value for key, value in values.items() if key in WORK}
        known = {**WORK, **OF_ONE}
        loads = [
            load for index, work in enumerate(works) for load in self._loads(work, defaults, f"work {index}", known)
        ]
        for key in defaults:
            if not any(key in ("operation", *FACTORS[load.scenario]) for load in loads):
                raise CampaignError(
                    f"{self._path}:{self._line(key)}: no operation of this campaign uses {key}; leave it out"
                )
        single = {key: values[key][0] for key in TOP if key in values and not TOP[key].many}
        campaign = Campaign(
            name=self._name,
            loads=tuple(dict.fromkeys(loads)),
            primer=self._primer(),
            encodings=tuple(self._encodings(values)),
            sites=tuple(self._sites(values, loads)),
            systems=tuple(dict.fromkeys(self._systems(values))),
            clients=tuple(values.get("clients", ["warm"])),
            **{key: value for key, value in single.items() if key in fields_dict(Campaign)},
        )
        self._check(campaign)
        return campaign

    def _primer(self) -> Load | None:
        """The load of the table [primer], if there is one."""
        if "primer" not in self._raw:
            return None
        loads = list(self._loads(self._raw["primer"], {}, "primer", WORK))
        if len(loads) != 1:
            raise CampaignError(
                f"{self._path}:{self._line('', 'primer')}: [primer] is one load, without lists: not {len(loads)}"
            )
        return loads[0]

    def _loads(
        self,
        work: object,
        defaults: Mapping[str, list[Any]],
        table: str,
        known: Mapping[str, Key],
    ) -> Iterator[Load]:
        if not isinstance(work, dict):
            name = table.partition(" ")[0]
            line = max(self._line(name), self._line("", table))
            form = "one table, [primer]" if name == "primer" else "a table, [[work]]"
            raise CampaignError(f"{self._path}:{line}: {name} is {form}: it cannot be {work!r}")
        given = {key: self._values(key, value, known, table) for key, value in cast(Mapping[str, Any], work).items()}
        if "sizes" in given and "size" in given:
            raise CampaignError(f"{self._path}:{self._line('sizes', table)}: give size or sizes, not both")
        instead = {"size": "sizes", "sizes": "size"}
        usual = {key: value for key, value in defaults.items() if instead.get(key) not in given}
        for scenario in {**usual, **given}.get("operation", [Load().scenario]):
            # What stands at the top is for those operations that have it.
            fitting = {key: value for key, value in usual.items() if key in FACTORS[scenario]}
            values = {**fitting, **given, "operation": [scenario]}
            for chosen in itertools.product(*values.values()):
                yield self._load(dict(zip(values, chosen, strict=True)), table)

    def _load(self, values: Mapping[str, Any], table: str) -> Load:
        """The load with these values of keys; CampaignError if it is impossible."""
        names = {"operation": "scenario", "sizes": "spread", "from": "origin"}
        given = {names.get(key, key): value for key, value in values.items()}
        if "spread" in given:
            given["size"] = Spread.of(given["spread"]).mean
        load = Load(**given)
        if wrong := load.impossible:
            raise CampaignError(f"{self._path}:{self._line(wrong[0], table)}: {wrong[1]}")
        return load

    def _systems(self, values: Mapping[str, list[Any]]) -> Iterator[str]:
        """The systems, with each Grid repeated for every combination of engine toggles."""
        present = [key for key in ENGINE if key in values]
        for system in values["systems"]:
            if not parse_label(system).is_grid:
                yield system
                continue
            for chosen in itertools.product(*(values[key] for key in present)):
                label = system
                for key, value in zip(present, chosen, strict=True):
                    try:
                        label = toggled(label, key, value)
                    except ValueError as error:
                        raise CampaignError(f"{self._path}:{self._line(key)}: {error}") from None
                yield label
        if present and not any(parse_label(system).is_grid for system in values["systems"]):
            raise CampaignError(
                f"{self._path}:{self._line(present[0])}: {present[0]} is Grid's own, and no Grid is among the systems"
            )

    def _encodings(self, values: Mapping[str, list[Any]]) -> Iterator[Encoding]:
        named = [key for key in NUMBERS if key in values]
        if named and "encoding" in values:
            where = f"{self._path}:{self._line(named[0])}"
            raise CampaignError(f"{where}: give either encoding, or k, N and happy: {named[0]} says the same again")
        for encoding in values.get("encoding") or self._numbers(values, named):
            for segment in values.get("segment", [None]):
                yield evolve(encoding, segment_size=segment)

    def _numbers(self, values: Mapping[str, list[Any]], named: Sequence[str]) -> Iterator[Encoding]:
        usual = Encoding()
        for needed, total in itertools.product(values.get("k", [usual.needed]), values.get("N", [usual.total])):
            for happy in values.get("happy", [min(USUAL_HAPPY, total)]):
                if needed > total or happy > total:
                    where = f"{self._path}:{self._line(named[0])}"
                    raise CampaignError(f"{where}: k {needed} and happy {happy} cannot be more than N, {total}")
                yield Encoding(needed=needed, happy=happy, total=total)

    def _sites(self, values: Mapping[str, list[Any]], loads: Sequence[Load]) -> Iterator[Site]:
        names = {"topology": "topology", "medium": "medium", "server-cpu": "server_cpu", "client-cpu": "client_cpu"}
        names |= {"aes": "aes", "node": "node"}
        where = list(dict.fromkeys(load.topology for load in loads if load.topology))
        values = {"topology": where, **values} if where else values
        for topology in where:
            if topology not in values["topology"]:
                line = self._line("topology")
                raise CampaignError(f"{self._path}:{line}: a [[work]] is at {topology}, which is not among these")
        present = [key for key in names if key in values]
        for chosen in itertools.product(*(values[key] for key in present)):
            yield Site(**{names[key]: value for key, value in zip(present, chosen, strict=True)})

    def _check(self, campaign: Campaign) -> None:
        """Check constraints between keys."""
        if any(site.node for site in campaign.sites):
            for key in ("encoding", *NUMBERS, "segment"):
                if key in self._raw:
                    allowed = f"a grid that exists has its own encoding: leave {key} out"
                    raise CampaignError(f"{self._path}:{self._line(key)}: {allowed}")
        if wrong := _impossible(campaign):
            raise CampaignError(f"{self._path}:{self._line_of(wrong[0])}: {wrong[1]}")

    def _line_of(self, key: str) -> int:
        """The line of a key at the top, or in the first [[work]] that has it; for an encoding, of the key that says it."""
        if key == "encoding":
            return self._line(
                next((one for one in ("happy", "encoding", "N", "k", "servers") if one in self._raw), key)
            )
        tables = (f"work {index}" for index, work in enumerate(self._raw["work"]) if key in work)
        return self._line(key, "" if key in self._raw else next(tables, ""))


def check_chosen(campaign: Campaign) -> None:
    """CampaignError if a campaign is impossible after options of the command line changed it."""
    chosen: dict[str, Sequence[Any]] = {"systems": campaign.systems, "clients": campaign.clients}
    chosen |= {"runs": [campaign.runs], "repetitions": [campaign.repetitions]}
    chosen |= {"seconds": [load.seconds for load in campaign.loads], "size": [load.size for load in campaign.loads]}
    for key, values in chosen.items():
        for one in values:
            parse_chosen(key, one, {**TOP, **WORK})
    if wrong := _impossible(campaign):
        raise CampaignError(f"with these options, {wrong[1]}")


def _impossible(campaign: Campaign) -> tuple[str, str] | None:
    """The key that makes the campaign impossible, as campaign files name it, and why; None if it is possible."""
    return next(_problems(campaign), None)


def _problems(campaign: Campaign) -> Iterator[tuple[str, str]]:
    for load in _all_loads(campaign):
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


def _all_loads(campaign: Campaign) -> Sequence[Load]:
    return campaign.loads if campaign.primer is None else (*campaign.loads, campaign.primer)


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
    here = [load for load in _all_loads(campaign) if load.topology in ("", site.topology)]
    if any(load.cache == "cold" for load in here) and (site.topology in ELSEWHERE or site.medium == "tmpfs"):
        where = "on tmpfs, which is memory itself" if site.medium == "tmpfs" else f"of {ELSEWHERE[site.topology]}"
        yield "cache", f"nobody can evict the shares {where}: with {site}, cache is warm"
