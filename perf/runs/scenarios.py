"""The operations of one run: files put, got and read in parts, all verified. perf.runs.changes has the others.

Every returned byte is compared. Putting the file for range reads is not timed.
"""

from __future__ import annotations

import os
from collections import defaultdict, deque
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping
from pathlib import Path

from perf.campaigns.campaign import Cell, Encoding, Format
from perf.records.record import Sample
from perf.runs.changes import add_children, idle, list_children, make_directories
from perf.runs.sample import WrongBytesError, blank, digest_file, empty, evict, failed_before, make_file, take
from perf.sampling.usage import Usage
from perf.systems.contract import Fetch, System


class Stage:
    """The systems of one run and the files that its cells share."""

    def __init__(
        self,
        systems: Mapping[str, System],
        alone: Mapping[str, System],
        directory: Path,
        media: Collection[Path] = (),
    ) -> None:
        """alone: the systems as they are measured, with the others frozen.

        directory: exists and is empty, also after close. media: directories of shares that are elsewhere.
        """
        self._systems = systems
        self._alone = alone
        self._directory = directory
        self._media = media
        self._kept: dict[tuple[str, Encoding, int, Format], tuple[str, Path]] = {}
        self._child_caps: dict[str, str] = {}
        self._listed: dict[tuple[str, int], str] = {}
        self._idle: dict[Hashable, deque[Sample]] = defaultdict(deque)

    def play(self, cell: Cell) -> Iterator[Sample]:
        """Yield the samples of one cell in the order taken; the caller fills in run and order.

        If a put fails, its get is skipped.
        """
        system = self._alone[cell.system]
        files = self._directory / "cell"
        files.mkdir()
        try:
            match cell.load.scenario:
                case "put-get":
                    yield from _put_then_get(system, cell, files, self._chill)
                case "mkdir":
                    yield make_directories(system, cell)
                case "add-each" | "add-batch":
                    yield add_children(system, cell, lambda: self._child_cap(system, cell, files))
                case "list":
                    yield list_children(system, cell, self._listed, lambda: self._child_cap(system, cell, files))
                case "idle":
                    yield self._watched_idle(cell)
                case "overwrite":
                    yield self._overwrite(system, cell, files)
                case "range" | "alacrity":
                    yield self._read_range(system, cell, files)
        finally:
            empty(files)
            files.rmdir()

    def close(self) -> None:
        """Remove the kept files."""
        empty(self._directory)

    def _chill(self, cell: Cell) -> None:
        """Evict the files of this run, including shares, before measuring with a cold cache.

        Beside a medium's mount is what it keeps its files in, which is evicted after them.
        """
        if cell.load.cache == "cold":
            for medium in self._media:
                evict(medium)
                evict(medium.parent)
            evict(self._directory.parent)

    def _watched_idle(self, cell: Cell) -> Sample:
        """A sample of this idle cell. All systems are watched at once, and the others' samples wait for their own cells."""
        if not self._idle[_idle_key(cell, cell.system)]:
            for label, sample in idle(self._systems, cell).items():
                self._idle[_idle_key(cell, label)].append(sample)
        return self._idle[_idle_key(cell, cell.system)].popleft()

    def _read_range(self, system: System, cell: Cell, files: Path) -> Sample:
        load = cell.load
        offset = load.offset(cell.place)
        target = files / "target"
        nothing = blank(cell, load.scenario)
        try:
            cap, source = self._stored(system, cell, files)
        except Exception as error:  # noqa: BLE001 - whatever a system under test does wrong is a result
            return failed_before(nothing, error)

        def read() -> Usage:
            fetch = Fetch(cap=cap, target=target, offset=offset, length=load.length)
            usage = system.get(cell.client, cell.encoding, [fetch], 1)
            if target.read_bytes() != _bytes(source, offset, load.length):
                raise WrongBytesError("what came back is not what was put")
            return usage

        self._chill(cell)
        return take(system, nothing, read)

    def _overwrite(self, system: System, cell: Cell, files: Path) -> Sample:
        """Change a file put earlier in the run, then read it back with as many bytes before and after the change."""
        load = cell.load
        offset = int(cell.place * (load.size - load.length + 1))
        change, target = files / "change", files / "target"
        nothing = blank(cell, load.scenario)
        try:
            cap, source = self._stored(system, cell, files)
        except Exception as error:  # noqa: BLE001 - as above
            return failed_before(nothing, error)
        make_file(change, load.length)
        with source.open("r+b") as file:
            file.seek(offset)
            file.write(change.read_bytes())

        def overwrite() -> Usage:
            _, usage = system.ask(cell.encoding, lambda warm: warm.overwrite(cap, offset, change))
            start = max(0, offset - load.length)
            length = min(load.size, offset + 2 * load.length) - start
            system.get("warm", cell.encoding, [Fetch(cap=cap, target=target, offset=start, length=length)], 1)
            if target.read_bytes() != _bytes(source, start, length):
                raise WrongBytesError("what came back is not what was written")
            return usage

        sample = take(system, nothing, overwrite)
        if sample.error is not None:
            del self._kept[_key(cell)]  # Its contents are unknown now.
        return sample

    def _stored(self, system: System, cell: Cell, files: Path) -> tuple[str, Path]:
        """A file to read from: its capability and source. Alacrity gets a new one; other cells share one."""
        if cell.load.scenario == "alacrity":
            return _put_one(system, cell, files / "source")
        if _key(cell) not in self._kept:
            self._kept[_key(cell)] = _put_one(system, cell, self._directory / f"kept{cell.system}{len(self._kept)}")
        return self._kept[_key(cell)]

    def _child_cap(self, system: System, cell: Cell, files: Path) -> str:
        """The capability of a small file on the grid, to be linked under many names."""
        if cell.system not in self._child_caps:
            make_file(files / "child", 1000)
            (cap,), _ = system.put("warm", cell.encoding, [files / "child"], 1)
            self._child_caps[cell.system] = cap
        return self._child_caps[cell.system]


def _put_then_get(system: System, cell: Cell, files: Path, chill: Callable[[Cell], None]) -> Iterator[Sample]:
    load, width = cell.load, cell.load.width(os.cpu_count() or 1)
    sources = [files / f"source{index}" for index in range(load.count)]
    targets = [files / f"target{index}" for index in range(load.count)]
    sizes = load.sizes(int(cell.place * 2**32))
    digests = [make_file(source, size, sparse=load.sparse) for source, size in zip(sources, sizes, strict=True)]
    caps: list[str] = []

    def put() -> Usage:
        found, usage = system.put(cell.client, cell.encoding, sources, width, load.format)
        caps.extend(found)
        return usage

    def get() -> Usage:
        fetches = [Fetch(cap=cap, target=target) for cap, target in zip(caps, targets, strict=True)]
        usage = system.get(cell.client, cell.encoding, fetches, width)
        if [digest_file(target) for target in targets] != digests:
            raise WrongBytesError("what came back is not what was put")
        return usage

    chill(cell)
    yield take(system, blank(cell, "put"), put)
    if caps:
        chill(cell)
        yield take(system, blank(cell, "get"), get)


def _put_one(system: System, cell: Cell, source: Path) -> tuple[str, Path]:
    make_file(source, cell.load.size)
    (cap,), _ = system.put(cell.client, cell.encoding, [source], 1, cell.load.format)
    return cap, source


def _idle_key(cell: Cell, label: str) -> Hashable:
    return label, cell.load, cell.encoding, cell.client, cell.warmup


def _key(cell: Cell) -> tuple[str, Encoding, int, Format]:
    return cell.system, cell.encoding, cell.load.size, cell.load.format


def _bytes(path: Path, offset: int, length: int) -> bytes:
    with path.open("rb") as file:
        file.seek(offset)
        return file.read(length)
