"""Takes one sample, with the same care whatever is measured.

Excluded from the time: preparing the operation, comparing its results, flushing all dirty pages beforehand, so no
system waits for what another left behind, and touching memory, so none pays for a host that reclaims a virtual
machine's free memory. [docs/decisions/0071-touched-memory.md]
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from attrs import asdict, evolve

from perf.campaigns.campaign import Cell
from perf.campaigns.labels import parse_label
from perf.network.site import LOOPBACK
from perf.records.record import Factor, Sample
from perf.sampling.sampler import Spent
from perf.sampling.touched import touch_for
from perf.sampling.usage import Usage
from perf.systems.contract import System

PIECE = 1 << 20


class WrongBytesError(Exception):
    """The returned bytes differ from the stored ones."""


def blank(cell: Cell, scenario: str) -> Sample:
    """A sample of the cell, with the description of the operation but no results."""
    load, encoding = cell.load, cell.encoding
    factors: dict[str, Factor] = {"k": encoding.needed, "n": encoding.total}
    if load.size:
        factors["size"] = load.size
    if load.format != "chk":
        factors["format"] = load.format
    if encoding.segment_size is not None:
        factors["segment"] = encoding.segment_size
    if load.length:
        factors["length"] = load.length
    if load.origin != "random":
        factors["from"] = load.origin
    if cell.site != LOOPBACK:
        factors["site"] = str(cell.site)
    if load.count > 1:
        factors |= {"count": load.count, "concurrency": load.width(os.cpu_count() or 1)}
    if load.spread:
        factors["sizes"] = load.spread
    if load.mode:
        factors["mode"] = load.mode
    if load.cache != "warm":
        factors["cache"] = load.cache
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


def take(system: System, blank: Sample, operation: Callable[[], Usage]) -> Sample:
    """Carry out the operation; a failure is a sample too."""
    touch_for(blank.size)
    before = system.server_cpus_s()
    blank = evolve(blank, load=round(os.getloadavg()[0], 2), unix_time=time.time())
    try:
        usage = operation()
    except Exception as error:  # noqa: BLE001 - whatever a system under test does wrong is a result
        return evolve(blank, error=describe_error(error))
    after = system.server_cpus_s()
    return filled(blank, usage, [new - old for new, old in zip(after, before, strict=True)], system)


def filled(sample: Sample, usage: Usage, server_cpus_s: list[float], system: System) -> Sample:
    """The sample with its measurements."""
    label, peaks, traffic, trace = parse_label(system.label), system.server_peaks(), usage.traffic, usage.trace
    return evolve(
        sample,
        codec=label.codec,
        durability=label.durability,
        seconds=usage.seconds,
        first_byte_s=usage.first_byte_s,
        client_cpu_s=usage.client_cpu_s,
        client_idle_rss=usage.client_idle_rss,
        client_peak_rss=usage.client_peak_rss or None,
        server_cpu_s=sum(server_cpus_s) if server_cpus_s else None,
        server_peak_rss=max(peaks, default=None),
        server_cpus_s=tuple(round(value, 2) for value in server_cpus_s),
        server_peaks_rss=tuple(peaks),
        bytes_out=traffic.bytes_out if traffic is not None else None,
        bytes_in=traffic.bytes_in if traffic is not None else None,
        segments_out=traffic.segments_out if traffic is not None else None,
        segments_in=traffic.segments_in if traffic is not None else None,
        requests=trace.requests if trace is not None else None,
        timeline=trace.timeline if trace is not None else None,
        status=usage.status,
        **_watched(usage),
    )


def _watched(usage: Usage) -> dict[str, Any]:
    """The fields about each process. What a command used is known at its end; looks at it miss what came after the last."""
    watched = usage.watched
    if watched is None:
        return {}
    spent = dict(watched.spent)
    servers = [one for name, one in spent.items() if name.startswith("server")]
    client = spent.get("client", Spent())
    if usage.client_user_s is not None and usage.client_system_s is not None:
        client = evolve(client, user_s=round(usage.client_user_s, 4), system_s=round(usage.client_system_s, 4))
        spent["client"] = client
    return {
        "client_user_s": round(client.user_s, 4),
        "client_system_s": round(client.system_s, 4),
        "server_user_s": round(sum(one.user_s for one in servers), 2),
        "server_system_s": round(sum(one.system_s for one in servers), 2),
        "others_cpu_s": watched.others_cpu_s,
        "pressure": watched.pressure,
        "members": {name: asdict(one) for name, one in spent.items()},
        "series": asdict(watched.series),
    }


def failed_before(blank: Sample, error: Exception) -> Sample:
    """The sample of an operation that could not even begin."""
    return evolve(blank, error=f"before it began: {describe_error(error)}", unix_time=time.time())


def describe_error(error: Exception) -> str:
    """The error's type and message."""
    return f"{type(error).__name__}: {error}"[:500]


def make_file(path: Path, size: int, *, sparse: bool = False) -> bytes:
    """Write this many new random bytes; return their SHA-256.

    sparse: only the first bytes are random, the rest is a hole.
    """
    with path.open("wb") as file:
        for offset in range(0, min(size, PIECE) if sparse else size, PIECE):
            file.write(os.urandom(min(PIECE, size - offset)))
        file.truncate(size)
    return digest_file(path)


def digest_file(path: Path) -> bytes:
    """The SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").digest()


def evict(directory: Path) -> None:
    """Evict every file below the directory from the page cache, after writing it to the disk."""
    for path in directory.rglob("*"):
        with suppress(OSError):
            if path.is_file() and not path.is_symlink():
                descriptor = os.open(path, os.O_RDONLY)
                try:
                    os.fsync(descriptor)
                    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
                finally:
                    os.close(descriptor)


def empty(directory: Path) -> None:
    """Remove the directory's files."""
    for path in directory.iterdir():
        path.unlink()
