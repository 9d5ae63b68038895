"""Raw samples on disk as JSON lines: a header with the environment, then one line per sample, never changed afterwards.

A failed operation is a sample too, without a time but with its error; nothing is dropped.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TextIO, TypeVar

from attrs import asdict, evolve, field, fields, frozen

from perf.records.beside import Gap, Left, SiteFound, SlowTransfer, Timeline
from perf.records.likeness import differences

VERSION = 1

_RENAMED = {"octets_out": "bytes_out", "octets_in": "bytes_in"}
"""Today's names for fields of early records."""

_ELSEWHERE = ("timeline", "status", "superseded")
"""Stored only in the lines of outliers, or known only from later lines."""

_ALWAYS = ("seconds", "error")
"""Fields written even if empty; others are omitted when unknown."""

WHOLE = "campaign"
BUDGET = "budget"
"""What a line `ended` says, instead of a key: the campaign is complete, or its time was used up. Older records have neither."""

Factor = str | int | float | bool


def _names(values: Iterable[str]) -> tuple[str, ...]:
    return tuple(values)


def _floats(values: Iterable[float]) -> tuple[float, ...]:
    return tuple(values)


def _integers(values: Iterable[int]) -> tuple[int, ...]:
    return tuple(values)


class RecordError(Exception):
    """The file is not a record of this version; the message says where."""


@frozen(kw_only=True)
class Header:
    """The subject of a record: the campaign, its seed, and the environment from perf.sampling.environment.

    floor: primitives' speed just before, in MB/s, from perf.sampling.floor; empty in older records. plan: the complete
    campaign, for resuming it; empty in older records.
    """

    campaign: str
    seed: int
    environment: Mapping[str, Any]
    systems: tuple[str, ...] = field(converter=_names)
    floor: Mapping[str, float] = field(factory=dict)
    plan: Mapping[str, Any] = field(factory=dict, repr=False)


@frozen(kw_only=True)
class Sample:
    """One timed operation.

    run, order: the run, and the position within it (from 0). system: its label. client: `warm`, `gateway` or `cli`.
    scenario: what was done. factors: its parameters. seconds: wall time, None if it failed (then error says why).
    first_byte_s: until the first byte of a file arrived, the median of several files. size: bytes of payload. count: of
    files. *_cpu_s: processor seconds of the client's and the servers' processes. *_peak_rss: bytes, the most that the
    client held during the operation, and that any one server held at any time in the run. client_idle_rss: what it held
    before its first request. server_*s: of each server. bytes_*, segments_*: carried by the client's connections, from
    perf.sampling.traffic. requests: sent by the client's engine. timeline: in the form of perf.sampling.timeline, not
    in records: those of outliers have lines of their own. load: the machine's load average at the start. key: of cell
    and environment, for resuming an interrupted campaign. *_user_s, *_system_s: the two parts of processor seconds.
    others_cpu_s: spent meanwhile by systems that should have been frozen. status: fetches its status page, for a system
    without timelines. pressure: resource -> fraction of the time in which some task of the machine waited for it.
    members: of each process, by name, from perf.sampling.sampler. series: the same over time. files: for each transfer
    its bytes, the scheduled, actual and final seconds, and its error. stored_*: what it left on the disks of all
    servers: files and allocated bytes. superseded: whether this work was cut short, and done anew later; such a sample does
    not count. None where not measured.
    """

    run: int
    order: int
    system: str
    client: str
    scenario: str
    factors: Mapping[str, Factor]
    size: int
    warmup: bool
    seconds: float | None
    first_byte_s: float | None = None
    count: int = 1
    error: str | None = None
    client_cpu_s: float | None = None
    client_idle_rss: int | None = None
    client_peak_rss: int | None = None
    server_cpu_s: float | None = None
    server_peak_rss: int | None = None
    server_cpus_s: tuple[float, ...] = field(default=(), converter=_floats)
    server_peaks_rss: tuple[int, ...] = field(default=(), converter=_integers)
    bytes_out: int | None = None
    bytes_in: int | None = None
    segments_out: int | None = None
    segments_in: int | None = None
    requests: int | None = None
    codec: str | None = None
    durability: str | None = None
    load: float | None = None
    timeline: str | None = field(default=None, repr=False)
    status: Callable[[], str] | None = field(default=None, repr=False)
    unix_time: float = 0.0
    key: str = ""
    client_user_s: float | None = None
    client_system_s: float | None = None
    server_user_s: float | None = None
    server_system_s: float | None = None
    others_cpu_s: float | None = None
    pressure: Mapping[str, float] = field(factory=dict)
    members: Mapping[str, Mapping[str, float | None]] = field(factory=dict, repr=False)
    series: Mapping[str, Any] | None = field(default=None, repr=False)
    files: Sequence[Sequence[Any]] = field(default=(), repr=False)
    stored_files: int | None = None
    stored_bytes: int | None = None
    superseded: bool = False


@frozen(kw_only=True)
class Resumed:
    """A record was continued from here on. environment: the one in which the later samples were taken. before: samples."""

    environment: Mapping[str, Any]
    before: int = 0


Line = TypeVar("Line", Header, Sample, Timeline, SlowTransfer, Gap, SiteFound, Left, Resumed)


@frozen
class Record:
    """A header, samples in the order they were taken, timelines of outliers, slow transfers within samples, and gaps.

    sites: also the differences of environments in which it was continued. ended: keys of completed work, as drivers of
    workloads report it; WHOLE and BUDGET.
    """

    header: Header
    samples: tuple[Sample, ...]
    timelines: tuple[Timeline, ...] = ()
    gaps: tuple[Gap, ...] = ()
    sites: tuple[SiteFound, ...] = ()
    left: tuple[Left, ...] = ()
    ended: frozenset[str] = frozenset()
    resumed: tuple[Resumed, ...] = ()
    transfers: tuple[SlowTransfer, ...] = ()

    @property
    def has_ended(self) -> bool:
        """Whether the campaign came to its end, with or without failures. False for older records, which do not say."""
        return bool(self.ended & {WHOLE, BUDGET})

    def measured(self) -> Iterable[Sample]:
        """The samples that count: no warm-ups, no failures, and nothing that was done anew."""
        return (one for one in self.samples if not one.warmup and not one.superseded and one.seconds is not None)

    def done_keys(self) -> set[str]:
        """The keys of cells whose samples are all here, and which need not be repeated."""
        if "driver" in self.header.plan:
            return set(self.ended)
        ended = {sample.key for sample in self.samples if sample.scenario != "put" or sample.seconds is None}
        return {sample.key for sample in self.samples if sample.key in ended}

    def next_orders(self) -> dict[int, int]:
        """The order of the next sample of each run that was begun."""
        orders: dict[int, int] = {}
        for sample in self.samples:
            orders[sample.run] = max(orders.get(sample.run, 0), sample.order + 1)
        return orders

    def begun_places(self) -> set[tuple[int, str]]:
        """Runs and sites that have samples. A site is named as in factors; the empty name is that of the plain machine."""
        return {(sample.run, str(sample.factors.get("site", ""))) for sample in self.samples}

    def failures(self) -> list[Sample]:
        """The operations that failed, including warm-ups, and were not done anew."""
        return [sample for sample in self.samples if sample.seconds is None and not sample.superseded]


class RecordWriter:
    """Appends to a new file; each line is handed to the system before the next operation starts."""

    def __init__(self, path: Path, header: Header | None) -> None:
        """FileExistsError rather than overwriting a record. header: None to continue an existing record."""
        path.parent.mkdir(parents=True, exist_ok=True)
        if header is None:
            _cut_off(path)
        self._file: TextIO = path.open("x" if header is not None else "a", encoding="utf-8")
        if header is not None:
            self._append({"record": VERSION, **asdict(header)})

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._file.close()

    def write(self, sample: Sample) -> None:
        """Append one sample, without its timeline."""
        line = {name: value for name, value in asdict(sample).items() if value is not None or name in _ALWAYS}
        if not sample.files:
            line.pop("files")
        for name in _ELSEWHERE:
            line.pop(name, None)
        self._append(line)

    def write_timeline(self, timeline: Timeline) -> None:
        """Append the timeline of a sample written earlier."""
        self._append({"timeline": asdict(timeline)})

    def write_transfer(self, transfer: SlowTransfer) -> None:
        """Append a slow transfer within a sample written earlier."""
        self._append({"transfer": asdict(transfer)})

    def write_site(self, site: SiteFound) -> None:
        """Append the measurements of a site."""
        self._append({"site": asdict(site)})

    def write_gap(self, gap: Gap) -> None:
        """Append a gap."""
        self._append({"gap": asdict(gap)})

    def write_left(self, left: Left) -> None:
        """Append something left on a user's grid."""
        self._append({"left": asdict(left)})

    def write_cut(self, gap: Gap) -> None:
        """Append what remains when the time is used up: a gap until a later campaign on this record is complete."""
        self._append({"cut": asdict(gap)})
        self.write_end(BUDGET)

    def write_resumed(self, resumed: Resumed) -> None:
        """Append that all later samples were taken after an interruption."""
        self._append({"resumed": {"environment": resumed.environment}})

    def write_end(self, key: str) -> None:
        """Append that the work with this key is complete, or WHOLE for the campaign."""
        self._append({"ended": key})

    def _append(self, line: Mapping[str, Any]) -> None:
        self._file.write(json.dumps(line, separators=(",", ":")) + "\n")
        self._file.flush()


def read_record(path: Path) -> Record:
    """Read a record; RecordError if it is missing or invalid. A last line truncated by a crash is ignored."""
    lines = _text(path).split("\n")
    head = _parse_line(lines[0], path, 1)
    if head.pop("record", None) != VERSION:
        raise RecordError(f"{path}: line 1 is not the header of a record of version {VERSION}")
    samples: list[Sample] = []
    timelines: list[Timeline] = []
    transfers: list[SlowTransfer] = []
    gaps: list[Gap] = []
    sites: list[SiteFound] = []
    left: list[Left] = []
    ended: set[str] = set()
    resumed: list[Resumed] = []
    cut: list[Gap] = []
    for number, line in _bodies(lines):
        values = _parse_line(line, path, number)
        if isinstance(values.get("timeline"), dict):
            timelines.append(_make(Timeline, values["timeline"], path, number))
        elif isinstance(values.get("transfer"), dict):
            transfers.append(_make(SlowTransfer, values["transfer"], path, number))
        elif isinstance(values.get("gap"), dict):
            gaps.append(_make(Gap, values["gap"], path, number))
        elif isinstance(values.get("site"), dict):
            sites.append(_make(SiteFound, values["site"], path, number))
        elif isinstance(values.get("left"), dict):
            left.append(_make(Left, values["left"], path, number))
        elif isinstance(values.get("cut"), dict):
            cut = [_make(Gap, values["cut"], path, number)]
        elif isinstance(values.get("resumed"), dict):
            resumed.append(evolve(_make(Resumed, values["resumed"], path, number), before=len(samples)))
        elif isinstance(values.get("ended"), str):
            ended.add(values["ended"])
        else:
            samples.append(_make(Sample, values, path, number))
    header = _make(Header, head, path, 1)
    return Record(
        header,
        tuple(_last_attempts(samples, resumed)),
        tuple(timelines),
        tuple(dict.fromkeys([*gaps, *([] if WHOLE in ended else cut)])),
        (*sites, *_elsewhere(header, samples, resumed)),
        tuple(left),
        frozenset(ended),
        tuple(resumed),
        tuple(transfers),
    )


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise RecordError(f"{path}: {error.strerror}, so this record cannot be read") from None
    except UnicodeDecodeError:
        raise RecordError(f"{path}: this is no text in UTF-8, so no record") from None


def _last_attempts(samples: Sequence[Sample], resumed: Sequence[Resumed]) -> Iterable[Sample]:
    """The samples; those of work that was cut short count only from its last attempt on. Warm-ups never count."""
    starts = [one.before for one in resumed]
    attempts = [bisect_right(starts, index) for index in range(len(samples))]
    last = {one.key: attempt for one, attempt in zip(samples, attempts, strict=True) if one.key and not one.warmup}
    for one, attempt in zip(samples, attempts, strict=True):
        yield evolve(one, superseded=True) if not one.warmup and attempt < last.get(one.key, 0) else one


def _elsewhere(header: Header, samples: Sequence[Sample], resumed: Sequence[Resumed]) -> Iterable[SiteFound]:
    """The first run after each continuation in another environment, with what differs from the header's."""
    for one in resumed:
        changed = differences(header.environment, one.environment, software=True)
        if changed and one.before < len(samples):
            found = {name: f"{new} instead of {old}" for name, (old, new) in changed.items()}
            site = f"and all after sample {one.before}, in another environment than the record's first line says"
            yield SiteFound(run=samples[one.before].run, site=site, found=found)


def _cut_off(path: Path) -> None:
    """Remove a truncated last line."""
    with path.open("r+b") as file:
        file.truncate(file.read().rfind(b"\n") + 1)


def _bodies(lines: list[str]) -> Iterable[tuple[int, str]]:
    return ((number, line) for number, line in enumerate(lines[:-1], 1) if number > 1)


def _parse_line(line: str, path: Path, number: int) -> dict[str, Any]:
    try:
        value = json.loads(line)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise RecordError(f"{path}: line {number} is not a JSON object")
    return value


def _make(kind: type[Line], values: dict[str, Any], path: Path, number: int) -> Line:
    known = {attribute.name for attribute in fields(kind)}
    values = {_RENAMED.get(name, name): value for name, value in values.items()}
    try:
        return kind(**{name: value for name, value in values.items() if name in known})
    except TypeError as error:
        raise RecordError(f"{path}: line {number}: {error}") from None
