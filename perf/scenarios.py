"""What is timed: a put of a file of new random octets, then a get of the same file, checked octet for octet.

Not timed: making the file, comparing the result, and writing all that is dirty to the disk before each operation, so
that no system waits for what another left behind.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from attrs import evolve

from perf.campaigns import Campaign, Cell
from perf.records import Sample
from perf.systems.processes import System
from perf.usage import Usage

PIECE = 1 << 20


def put_then_get(system: System, cell: Cell, campaign: Campaign, directory: Path) -> Iterator[Sample]:
    """The sample of the put and, if that worked, the sample of the get; run and order are the caller's to fill in.

    directory: for the files of this cell, empty; emptied again.
    """
    source, target = directory / "source", directory / "target"
    digest = make_file(source, cell.size)
    caps: list[str] = []

    def put() -> Usage:
        cap, usage = system.put(cell.client, source)
        caps.append(cap)
        return usage

    def get() -> Usage:
        usage = system.get(cell.client, caps[0], target)
        if digest_file(target) != digest:
            raise ValueError("what came back is not what was put")
        return usage

    blank = Sample(
        run=0,
        order=0,
        system=cell.system,
        client=cell.client,
        scenario="put",
        factors={"k": campaign.needed, "n": campaign.total, "size": cell.size},
        size=cell.size,
        warmup=cell.warmup,
        seconds=None,
    )
    try:
        yield _sample(system, blank, put)
        if caps:
            yield _sample(system, evolve(blank, scenario="get"), get)
    finally:
        for path in directory.iterdir():
            path.unlink()


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


def _sample(system: System, blank: Sample, operation: Callable[[], Usage]) -> Sample:
    os.sync()
    used = system.server_cpu_s()
    now = time.time()
    try:
        usage = operation()
    except Exception as error:  # noqa: BLE001 - whatever a system under test does wrong is a result
        return evolve(blank, error=f"{type(error).__name__}: {error}"[:500], unix_time=now)
    return evolve(
        blank,
        seconds=usage.seconds,
        client_cpu_s=usage.client_cpu_s,
        client_idle_rss=usage.client_idle_rss,
        client_peak_rss=usage.client_peak_rss,
        server_cpu_s=system.server_cpu_s() - used,
        server_peak_rss=system.server_peak_rss(),
        unix_time=now,
    )
