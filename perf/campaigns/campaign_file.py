"""Campaigns as TOML files: every factor, checked before anything starts. Pure; perf.campaigns.library reads the files.

Errors name the file, the line, and what is allowed.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping
from typing import Any, get_args

from attrs import fields_dict

from perf.campaigns.campaign import Cache, Campaign, Encoding, Format, Load, Mode, Scenario
from perf.campaigns.labels import parse_label
from perf.campaigns.toml_file import CampaignError, Key, TomlFile, flag, number, one_of, parse_size, text
from perf.network.site import MEDIA, TOPOLOGIES, Site

CLIENTS = ("warm", "gateway", "cli")
_ENCODING = re.compile(r"(\d+)-of-(\d+)(?: happy (\d+))?")
USUAL_HAPPY = 7


def _parse_encoding(value: Any) -> Encoding:  # noqa: ANN401 - TOML's
    found = _ENCODING.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        raise ValueError
    needed, total = int(found[1]), int(found[2])
    happy = int(found[3]) if found[3] else min(USUAL_HAPPY, total)
    if not 1 <= needed <= total <= 256 or not 1 <= happy <= total:
        raise ValueError
    return Encoding(needed=needed, happy=happy, total=total)


def _label(value: Any) -> str:  # noqa: ANN401 - TOML's
    parse_label(text(value))
    return str(value)


_SIZES = Key(parse_size, 'bytes, as 1000, "64 KiB" or "1 MB"')
WORK: Mapping[str, Key] = {
    "operation": one_of(*get_args(Scenario)),
    "format": one_of(*get_args(Format)),
    "size": _SIZES,
    "length": _SIZES,
    "count": number(1, 10**6),
    "concurrency": number(1, 1024),
    "mode": one_of(*(mode for mode in get_args(Mode) if mode)),
    "cache": one_of(*get_args(Cache)),
    "seconds": number(0, 86400, whole=False),
    "sparse": Key(flag, "true or false"),
}
"""Keys of what is done; at the top of a file they are defaults for every [[work]]."""

TOP: Mapping[str, Key] = {
    "purpose": Key(text, "text", many=False),
    "duration": Key(text, "text", many=False),
    "systems": Key(_label, "labels of systems, as grid@http, tahoe@foolscap or rclone@versitygw+tuned"),
    "clients": one_of(*CLIENTS),
    "encoding": Key(_parse_encoding, '"K-of-N" or "K-of-N happy H" with 1 <= K <= N <= 256 and H <= N'),
    "segment": _SIZES,
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

TABLES = ("work", "primer")


def parse_campaign(content: str, name: str, path: str) -> Campaign:
    """The campaign in the text of a file; CampaignError if it is none, or cannot be carried out."""
    return _File(content, name, path, TOP).campaign()


class _File(TomlFile):
    """A file that drives clients of grids."""

    def campaign(self) -> Campaign:
        """All of it."""
        works, top = self._raw.get("work"), {k: v for k, v in self._raw.items() if k not in TABLES}
        if not isinstance(works, list) or not works:
            raise CampaignError(f"{self._path}:1: there is no [[work]]; a campaign has at least one")
        values = {key: self._values(key, value, {**TOP, **WORK}) for key, value in top.items()}
        for key in ("purpose", "systems"):
            if key not in values:
                raise CampaignError(f"{self._path}:1: {key} is missing: {TOP[key].allowed}")
        defaults = {key: value for key, value in values.items() if key in WORK}
        loads = [load for index, work in enumerate(works) for load in self._loads(work, defaults, f"work {index}")]
        primer = self._raw.get("primer")
        single = {key: values[key][0] for key in TOP if key in values and not TOP[key].many}
        campaign = Campaign(
            name=self._name,
            loads=tuple(dict.fromkeys(loads)),
            primer=next(self._loads(primer, {}, "primer")) if primer is not None else None,
            encodings=tuple(self._encodings(values)),
            sites=tuple(self._sites(values)),
            systems=tuple(values["systems"]),
            clients=tuple(values.get("clients", ["warm"])),
            **{key: value for key, value in single.items() if key in fields_dict(Campaign)},
        )
        self._check(campaign)
        return campaign

    def _loads(self, work: Mapping[str, Any], defaults: Mapping[str, list[Any]], table: str) -> Iterator[Load]:
        values = {**defaults, **{key: self._values(key, value, WORK, table) for key, value in work.items()}}
        names = {key: "scenario" if key == "operation" else key for key in values}
        for chosen in itertools.product(*values.values()):
            load = Load(**{names[key]: value for key, value in zip(values, chosen, strict=True)})
            if wrong := load.impossible:
                raise CampaignError(f"{self._path}:{self._line(wrong[0], table)}: {wrong[1]}")
            yield load

    def _encodings(self, values: Mapping[str, list[Any]]) -> Iterator[Encoding]:
        for encoding in values.get("encoding", [Encoding()]):
            for segment in values.get("segment", [None]):
                yield Encoding(needed=encoding.needed, happy=encoding.happy, total=encoding.total, segment_size=segment)

    def _sites(self, values: Mapping[str, list[Any]]) -> Iterator[Site]:
        names = {"topology": "topology", "medium": "medium", "server-cpu": "server_cpu", "client-cpu": "client_cpu"}
        names |= {"aes": "aes", "node": "node"}
        present = [key for key in names if key in values]
        for chosen in itertools.product(*(values[key] for key in present)):
            yield Site(**{names[key]: value for key, value in zip(present, chosen, strict=True)})

    def _check(self, campaign: Campaign) -> None:
        """What no single key tells."""
        for encoding in campaign.encodings:
            if encoding.happy > campaign.servers:
                allowed = f"happy {encoding.happy} needs as many servers, and there are {campaign.servers}"
                raise CampaignError(f"{self._path}:{self._line('encoding')}: {allowed}")
        for site in campaign.sites:
            if (site.topology == "existing") != bool(site.node):
                allowed = 'topology = "existing" and node = "DIRECTORY" belong together'
                raise CampaignError(f"{self._path}:{self._line('topology')}: {allowed}")
        if set(campaign.clients) == {"cli"} and not any(load.suits_commands for load in campaign.loads):
            allowed = "commands put and get single immutable files only; warm and gateway do all that is asked here"
            raise CampaignError(f"{self._path}:{self._line('clients')}: {allowed}")
