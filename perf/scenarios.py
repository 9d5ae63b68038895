"""What is timed: puts of files of new random octets, gets of them, ranges of them; all checked octet for octet.

Not timed: making files, comparing results, and writing all that is dirty to the disk before each operation, so that no
system waits for what another left behind. Nor the put of a file that ranges are read from.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from attrs import evolve

from perf.campaigns import Cell, Encoding
from perf.records import Factor, Sample
from perf.systems.processes import Fetch, System
from perf.usage import Usage

PIECE = 1 << 20


class WrongOctetsError(Exception):
    """What came back is not what was put."""


class Stage:
    """The systems of one run and the files that its cells share."""

    def __init__(self, systems: Mapping[str, System], directory: Path) -> None:
        """directory: exists, is empty, and is empty again after close."""
        self._systems = systems
        self._directory = directory
        self._kept: dict[tuple[str, Encoding, int], tuple[str, Path]] = {}

    def play(self, cell: Cell) -> Iterator[Sample]:
        """The samples of one cell, in the order taken; run and order are the caller's to fill in.

        A put that fails has no get after it.
        """
        system = self._systems[cell.system]
        files = self._directory / "cell"
        files.mkdir()
        try:
            if cell.load.scenario == "put-get":
                yield from _put_then_get(system, cell, files)
            else:
                yield self._read_range(system, cell, files)
        finally:
            _empty(files)
            files.rmdir()

    def close(self) -> None:
        """Remove what was kept."""
        _empty(self._directory)

    def _read_range(self, system: System, cell: Cell, files: Path) -> Sample:
        load = cell.load
        offset = int(cell.place * (load.size - load.length + 1))
        blank = _blank(cell, load.scenario)
        target = files / "target"
        try:
            cap, source = self._stored(system, cell, files)
        except Exception as error:  # noqa: BLE001 - whatever a system under test does wrong is a result
            return evolve(blank, error=f"before the read: {_describe(error)}", unix_time=time.time())

        def read() -> Usage:
            fetch = Fetch(cap=cap, target=target, offset=offset, length=load.length)
            usage = system.get(cell.client, cell.encoding, [fetch], 1)
            with source.open("rb") as file:
                file.seek(offset)
                if target.read_bytes() != file.read(load.length):
                    raise WrongOctetsError("what came back is not what was put")
            return usage

        return _sample(system, blank, read)

    def _stored(self, system: System, cell: Cell, files: Path) -> tuple[str, Path]:
        """A file to read from: its cap and its source. For alacrity a new one, else that of all cells alike."""
        if cell.load.scenario == "alacrity":
            return _put_one(system, cell, files / "source")
        key = (cell.system, cell.encoding, cell.load.size)
        if key not in self._kept:
            self._kept[key] = _put_one(system, cell, self._directory / f"kept{len(self._kept)}")
        return self._kept[key]


def make_file(path: Path, size: int) -> bytes:
    """Write that many octets which no file had before, and their SHA-256."""
    digest = hashlib.sha256()
    with path.open("wb") as file:
        for offset in range(0, size, PIECE):
            piece = os.urandom(min(PIECE, size - offset))
            digest.update(piece)
            file.write(piece)
    return digest.digest()


def digest_file(path: Path) -> bytes:
    """The SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").digest()


def _put_then_get(system: System, cell: Cell, files: Path) -> Iterator[Sample]:
    load = cell.load
    sources = [files / f"source{index}" for index in range(load.count)]
    targets = [files / f"target{index}" for index in range(load.count)]
    digests = [make_file(source, load.size) for source in sources]
    caps: list[str] = []

    def put() -> Usage:
        found, usage = system.put(cell.client, cell.encoding, sources, load.concurrency)
        caps.extend(found)
        return usage

    def get() -> Usage:
        fetches = [Fetch(cap=cap, target=target) for cap, target in zip(caps, targets, strict=True)]
        usage = system.get(cell.client, cell.encoding, fetches, load.concurrency)
        if [digest_file(target) for target in targets] != digests:
            raise WrongOctetsError("what came back is not what was put")
        return usage

    yield _sample(system, _blank(cell, "put"), put)
    if caps:
        yield _sample(system, _blank(cell, "get"), get)


def _put_one(system: System, cell: Cell, source: Path) -> tuple[str, Path]:
    make_file(source, cell.load.size)
    (cap,), _ = system.put(cell.client, cell.encoding, [source], 1)
    return cap, source


def _blank(cell: Cell, scenario: str) -> Sample:
    load, encoding = cell.load, cell.encoding
    factors: dict[str, Factor] = {"k": encoding.needed, "n": encoding.total, "size": load.size}
    if encoding.segment_size is not None:
        factors["segment"] = encoding.segment_size
    if load.length:
        factors["length"] = load.length
    if load.count > 1:
        factors |= {"count": load.count, "concurrency": load.concurrency}
    return Sample(
        run=0,
        order=0,
        system=cell.system,
        client=cell.client,
        scenario=scenario,
        factors=factors,
        size=load.length or load.size * load.count,
        count=load.count,
        warmup=cell.warmup,
        seconds=None,
    )


def _sample(system: System, blank: Sample, operation: Callable[[], Usage]) -> Sample:
    os.sync()
    used = system.server_cpu_s()
    now = time.time()
    try:
        usage = operation()
    except Exception as error:  # noqa: BLE001 - whatever a system under test does wrong is a result
        return evolve(blank, error=_describe(error), unix_time=now)
    return evolve(
        blank,
        seconds=usage.seconds,
        first_byte_s=usage.first_byte_s,
        client_cpu_s=usage.client_cpu_s,
        client_idle_rss=usage.client_idle_rss,
        client_peak_rss=usage.client_peak_rss,
        server_cpu_s=system.server_cpu_s() - used,
        server_peak_rss=system.server_peak_rss(),
        unix_time=now,
    )


def _describe(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"[:500]


def _empty(directory: Path) -> None:
    for path in directory.iterdir():
        path.unlink()
