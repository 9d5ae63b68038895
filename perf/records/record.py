"""Raw samples on disk: JSON lines, one header with the environment, then one line per sample, never changed after.

A failed operation is a sample too, with no time and with its error; nothing is dropped.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TextIO, TypeVar

from attrs import asdict, field, fields, frozen

VERSION = 1

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
    """What a record is of: campaign, its seed, and the environment as perf.sampling.environment saw it.

    floor: what primitives reached just before, in MB/s, as perf.sampling.floor measured them; empty in older records.
    """

    campaign: str
    seed: int
    environment: Mapping[str, Any]
    systems: tuple[str, ...] = field(converter=_names)
    floor: Mapping[str, float] = field(factory=dict)


@frozen(kw_only=True)
class Sample:
    """One operation, timed.

    run, order: which run, and when within it (from 0). system: its label. client: `warm`, `gateway` or `cli`. scenario: what was
    done. factors: what it was done with. seconds: wall time, None if it failed (then error says how). first_byte_s:
    until the first byte of a file was there, the median of several files. size: bytes of payload, count: in how many
    files. *_cpu_s: processor seconds of the client's, the servers' processes. *_peak_rss: bytes, the most that
    the client held during the operation, and any one server at any time in the run. client_idle_rss: what it held
    before it was ever asked. server_*s: of each server. bytes_*, segments_*: what the client's connections carried, as
    perf.sampling.traffic sees it. requests: that the client's engine sent. timeline: as perf.sampling.timeline writes it, not in records:
    those of outliers have lines of their own. load: the machine's load average when it began. None where not measured.
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
    unix_time: float = 0.0


@frozen(kw_only=True)
class Timeline:
    """The events of one operation that took long. median: seconds that its kind took usually.

    left_out: events in the middle that were not kept. events: as perf.sampling.timeline writes them.
    """

    run: int
    order: int
    median: float
    left_out: int
    events: Sequence[Sequence[Any]] = field(repr=False)


Line = TypeVar("Line", Header, Sample, Timeline)


@frozen
class Record:
    """A header and its samples, in the order in which they were taken, and the timelines of outliers."""

    header: Header
    samples: tuple[Sample, ...]
    timelines: tuple[Timeline, ...] = ()

    def measured(self) -> Iterable[Sample]:
        """The samples that count: no warm-ups, no failures."""
        return (sample for sample in self.samples if not sample.warmup and sample.seconds is not None)

    def failures(self) -> list[Sample]:
        """The operations that failed, warm-ups included."""
        return [sample for sample in self.samples if sample.seconds is None]


class RecordWriter:
    """Appends to a new file; every line is on its way to the disk before the next operation starts."""

    def __init__(self, path: Path, header: Header) -> None:
        """FileExistsError rather than to write over a record."""
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file: TextIO = path.open("x", encoding="utf-8")
        self._append({"record": VERSION, **asdict(header)})

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._file.close()

    def write(self, sample: Sample) -> None:
        """Append one sample, without its timeline."""
        line = asdict(sample)
        del line["timeline"]
        self._append(line)

    def write_timeline(self, timeline: Timeline) -> None:
        """Append the timeline of a sample that was written before."""
        self._append({"timeline": asdict(timeline)})

    def _append(self, line: Mapping[str, Any]) -> None:
        self._file.write(json.dumps(line, separators=(",", ":")) + "\n")
        self._file.flush()


def read_record(path: Path) -> Record:
    """The record in the file; RecordError if it is none. A last line cut short by a crash is left out."""
    lines = path.read_text(encoding="utf-8").split("\n")
    head = _parse_line(lines[0], path, 1)
    if head.pop("record", None) != VERSION:
        raise RecordError(f"{path}: line 1 is not the header of a record of version {VERSION}")
    samples: list[Sample] = []
    timelines: list[Timeline] = []
    for number, line in _bodies(lines):
        values = _parse_line(line, path, number)
        if isinstance(values.get("timeline"), dict):
            timelines.append(_make(Timeline, values["timeline"], path, number))
        else:
            samples.append(_make(Sample, values, path, number))
    return Record(_make(Header, head, path, 1), tuple(samples), tuple(timelines))


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
    try:
        return kind(**{name: value for name, value in values.items() if name in known})
    except TypeError as error:
        raise RecordError(f"{path}: line {number}: {error}") from None
