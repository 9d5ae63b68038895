"""Campaigns carried out by a driver, with the same files for grids and peers; validated before anything starts.

Pure.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from typing import Any, cast, get_args

from attrs import field, fields, frozen

from perf.campaigns.arrivals import Mode
from perf.campaigns.drivers import TAKES, wrong_key
from perf.campaigns.encodings import ENCODING_WORDS, parse_encoding
from perf.campaigns.labels import BASES, parse_label
from perf.campaigns.toml_file import CampaignError, Key, TomlFile, flag, number, one_of, parse_chosen, text
from perf.network.site import MEDIA, TOPOLOGIES, Site

UNITS = {"k": 10**3, "m": 10**6, "g": 10**9, "b": 1}
GRID_CLIENTS = ("cli", "gateway", "links", "library", "cp", "transfer", "transfer-pack")
"""`cli`: a command per file. `cp`: one `grid cp` for all. `gateway`, `library`: a permanent process. `links`: a gateway that
stores each file in one directory, one after the other."""

_PLACE_FIELDS = ("topology", "medium", "server_cpu", "client_cpu", "aes")
DRIVERS = tuple(TAKES)
IMAGES = "images"
"""A set of files with the published sizes of a hundred images."""


def _strings(values: Iterable[str]) -> tuple[str, ...]:
    return tuple(values)


def _parts(values: Iterable[float]) -> tuple[float, ...]:
    return tuple(values)


def _flags(values: Iterable[bool]) -> tuple[bool, ...]:
    return tuple(values)


def _integers(values: Iterable[int]) -> tuple[int, ...]:
    return tuple(values)


@frozen(kw_only=True)
class Workload:
    """What a driver of perf.workloads does.

    systems: labels of peers, or of grids followed by `/cli` or `/gateway`. runs: each starts everything anew. sets:
    files as `SIZE_COUNT`, such as `100k_1000`. jobs: numbers of parallel jobs to try in turn. modes: of concurrency.
    span_s: seconds within which staccato starts all its transfers. chunks: options of `transfer-modes`, in MB. ciphers:
    empty for all that ssh knows. servers: storage nodes of each grid. encoding: of grids, as in campaigns; 3-of-10 by
    default. warmups: files put and got by each system in advance. clients, nodes: of `scale`. lost: shares that
    `repair` must recreate. keys: in the listing of `doors`. slow_clients: at each door.
    warm_up: clients that `copy-modes` measures both without and after a warm-up.
    """

    name: str
    driver: str
    purpose: str
    duration: str = "not known"
    systems: tuple[str, ...] = field(default=(), converter=_strings)
    runs: int = 1
    seed: int | None = None
    servers: int = 10
    sets: tuple[str, ...] = field(default=(), converter=_strings)
    jobs: tuple[int, ...] = field(default=(), converter=_integers)
    modes: tuple[str, ...] = field(default=(), converter=_strings)
    span_s: float | None = None
    chunks: tuple[int, ...] = field(default=(), converter=_integers)
    ciphers: tuple[str, ...] = field(default=(), converter=_strings)
    encoding: tuple[str, ...] = field(default=(), converter=_strings)
    topology: tuple[str, ...] = field(default=("loopback",), converter=_strings)
    medium: tuple[str, ...] = field(default=("",), converter=_strings)
    server_cpu: tuple[float, ...] = field(default=(0.0,), converter=_parts)
    client_cpu: tuple[float, ...] = field(default=(0.0,), converter=_parts)
    aes: tuple[bool, ...] = field(default=(True,), converter=_flags)
    warmups: int = 0
    clients: tuple[int, ...] = field(default=(), converter=_integers)
    nodes: tuple[int, ...] = field(default=(), converter=_integers)
    lost: tuple[int, ...] = field(default=(), converter=_integers)
    keys: int = 0
    slow_clients: int = 0
    warm_up: tuple[str, ...] = field(default=("boto3",), converter=_strings)

    @property
    def sites(self) -> list[Site]:
        """Where everything is done, one after the other within a run."""
        places = itertools.product(self.topology, self.medium, self.server_cpu, self.client_cpu, self.aes)
        return [
            Site(topology=topology, medium=medium, server_cpu=server, client_cpu=client, aes=aes)
            for topology, medium, server, client, aes in places
        ]


def parse_set(value: str) -> tuple[int, int]:
    """The size in bytes and the count of `100k_1000`; ValueError."""
    size, mark, count = value.partition("_")
    if not mark or not size[:-1].isdigit() or size[-1] not in UNITS or not count.isdigit() or not int(count):
        raise ValueError("SIZE_COUNT, such as 10k_1000, 100m_10 or 1g_4")
    return int(size[:-1]) * UNITS[size[-1]], int(count)


def _set(value: Any) -> str:  # noqa: ANN401 - TOML's
    if text(value) != IMAGES:
        parse_set(value)
    return str(value)


def _subject(value: Any) -> str:  # noqa: ANN401 - TOML's
    base, mark, client = text(value).partition("/")
    label = parse_label(base)
    if (label.base in BASES) != bool(mark) or (mark and client not in GRID_CLIENTS):
        raise ValueError(f"a grid has a client behind its label, as in {BASES[1]}/{GRID_CLIENTS[0]}; a peer has none")
    if client == "library" and not label.is_grid:
        raise ValueError(
            f"the client library is Grid's own; {base} has {GRID_CLIENTS[0]}, {GRID_CLIENTS[1]} and {GRID_CLIENTS[3]}"
        )
    if client.startswith("transfer") and not label.is_grid:
        raise ValueError(
            f"`grid transfer` is Grid's own; {base} has {GRID_CLIENTS[0]}, {GRID_CLIENTS[1]} and {GRID_CLIENTS[3]}"
        )
    if label.is_grid and label.options and client != "library":
        raise ValueError(f"options of the engine reach the client library only, as in {base}/library")
    return str(value)


def _encoding(value: Any) -> str:  # noqa: ANN401 - TOML's
    parse_encoding(value)
    return str(value)


KEYS: Mapping[str, Key] = {
    "driver": one_of(*DRIVERS, many=False),
    "purpose": Key(text, "text", many=False),
    "duration": Key(text, "text", many=False),
    "systems": Key(
        _subject, "peers such as rclone@versitygw, and grids such as grid@http/cli or tahoe@foolscap/gateway"
    ),
    "runs": number(1, 1000, many=False),
    "seed": number(0, 10**9, many=False),
    "servers": number(1, 1000, many=False),
    "encoding": Key(_encoding, ENCODING_WORDS),
    "topology": one_of(*(name for name in TOPOLOGIES if name not in ("existing", "machines"))),
    "medium": one_of(*MEDIA),
    "server-cpu": number(0.01, 1, whole=False),
    "client-cpu": number(0.01, 1, whole=False),
    "aes": Key(flag, "true or false"),
    "warmups": number(0, 1000, many=False),
    "sets": Key(_set, 'SIZE_COUNT, such as "100k_1000", or "images"'),
    "jobs": number(1, 1024),
    "modes": one_of(*get_args(Mode)),
    "span_s": number(0, 86400, whole=False, many=False),
    "chunks": number(1, 5000),
    "ciphers": Key(text, "a name of `ssh -Q cipher`"),
    "clients": number(1, 256),
    "nodes": number(1, 1000),
    "lost": number(1, 255),
    "keys": number(1, 10**6, many=False),
    "slow-clients": number(1, 1000, many=False),
    "warm-up": one_of("boto3", "library", "gateway"),
}
"""Keys of a file; a [smoke] table overrides some of them."""


def parse_workload(
    content: str, name: str, path: str, *, smoke: bool = False, changes: Mapping[str, Any] | None = None
) -> Workload:
    """Parse a workload; CampaignError if it is invalid. smoke: apply the [smoke] table. changes: values to use for keys."""
    return _File(content, name, path, {}, changes).workload(smoke=smoke)


def workload_from(plan: Mapping[str, Any]) -> Workload:
    """The workload from the values in a record, as attrs.asdict wrote them."""
    return Workload(**{name: plan[name] for name in (one.name for one in fields(Workload)) if name in plan})


class _File(TomlFile):
    """A file with a driver."""

    def workload(self, *, smoke: bool) -> Workload:
        """Parse the whole file."""
        smaller = self._raw.get("smoke", {})
        if not isinstance(smaller, dict):
            raise CampaignError(f"{self._path}:{self._line('smoke')}: smoke is a table: [smoke]")
        values = self._part({key: value for key, value in self._raw.items() if key != "smoke"}, "")
        small = self._part(cast(Mapping[str, Any], smaller), "smoke")
        for key in ("driver", "purpose"):
            if key not in values:
                raise CampaignError(f"{self._path}:1: {key} is missing: {KEYS[key].allowed}")
        whole = Workload(name=self._name, **values)
        self._check(whole, values, "")
        first = {key: value[:1] for key, value in values.items() if key in _PLACE_FIELDS}
        fewer = {**values, **first, "encoding": (), "runs": 1, **small}
        smallest = Workload(name=f"{self._name}-smoke", **fewer)
        self._check(smallest, {**values, **small}, "smoke")
        return smallest if smoke else whole

    def _part(self, raw: Mapping[str, Any], table: str) -> dict[str, Any]:
        if "budget" in raw:
            where = f"{self._path}:{self._line('budget', table)}"
            raise CampaignError(f"{where}: a workload has no budget; `perf tour --minutes` bounds many of them")
        found = {key: self._values(key, value, KEYS, table) for key, value in raw.items()}
        return {key.replace("-", "_"): value if KEYS[key].many else value[0] for key, value in found.items()}

    def _check(self, workload: Workload, values: Mapping[str, Any], table: str) -> None:
        """Check constraints between keys. values: by field, of the file, and of the table that replaces some."""
        keys = {_KEY_OF.get(name, name): value for name, value in values.items()}
        if wrong := wrong_key(workload.driver, keys) or wrong_value(workload):
            raise CampaignError(f"{self._path}:{self._line(wrong[0], table)}: {wrong[1]}")


def wrong_value(workload: Workload) -> tuple[str, str] | None:
    """The key whose value makes a workload impossible, and why; None if it is possible."""
    takes = TAKES[workload.driver]
    for system in workload.systems:
        if not takes.measures(system):
            return "systems", f"the driver {workload.driver} cannot measure {system}; it measures {takes.measured}"
    if IMAGES in workload.sets and not takes.images:
        return "sets", f"the driver {workload.driver} has files of one size: sets are SIZE_COUNT, such as 100k_1000"
    for encoding in workload.encoding:
        if parse_encoding(encoding).happy > workload.servers:
            return "encoding", f"{encoding} needs more servers than there are, {workload.servers}"
    return None


def check_chosen(workload: Workload) -> None:
    """CampaignError if a workload is impossible after options of the command line changed it."""
    for key, value in (("systems", workload.systems), ("runs", [workload.runs])):
        for one in value:
            parse_chosen(key, one, KEYS)
    if wrong := wrong_value(workload):
        raise CampaignError(f"with these options, {wrong[1]}")


_KEY_OF = {key.replace("-", "_"): key for key in KEYS if "-" in key}
