"""Whole folders: test sets of many sizes, tiny files in four ways, and options of transfer programs."""

from __future__ import annotations

import random
import tarfile
import time
import zipfile
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from attrs import evolve

from perf.campaigns.arrivals import Schedule
from perf.campaigns.workload import Workload, parse_set
from perf.peers.contract import Cost, Peer
from perf.records.record import Factor
from perf.workloads.files import evict, make_files
from perf.workloads.rows import Table, blank
from perf.workloads.subjects import each_subject, empty_folder, shuffled, take, take_checked, take_many
from perf.workloads.verifying import WrongBytesError, expect_file, expect_files

ALONE = "one-by-one"
WAYS = ("together", "tar", "zip", ALONE)


def size_count(settings: Workload, work: Path, table: Table) -> None:
    """Each set up and down by one command, as users would run it, from a cold cache where possible."""
    for run, peer in each_subject(settings, work, table):
        for name in shuffled(settings, run, peer.label, settings.sets):
            for attempt in table.once(run, peer.label, {"files": name}):
                with attempt:
                    folder_up_and_down(settings, work, table, (run, peer), name, {}, evicts=True)


def folder_up_and_down(
    settings: Workload,
    work: Path,
    table: Table,
    place: tuple[int, Peer],
    files: str,
    factors: Mapping[str, Factor],
    *,
    evicts: bool = False,
) -> None:
    """Put a set's files by one command, get them back by another, and compare them.

    evicts: evict the files before the put, and what the servers hold before the get. The samples say whether that worked,
    so whether the cache was cold: it does not where servers cannot be reached, and in a file system in memory.
    """
    run, peer = place
    size, count = parse_set(files)
    sizes, name = [size] * count, f"set-{run}-{files}"
    sources, back = work / "sources", work / "back"
    make_files(sources, sizes, f"{settings.seed}/{peer.label}/{run}/{files}")
    try:
        cold = evict([sources])
        sample = blank(run, peer.label, "put", {**factors, **(_cache(cold) if evicts else {})}, sizes)
        if take(table, sample, peer, peer.put_folder, sources, name).seconds is None:
            return
        cache = _cache(evict(_stores(peer))) if evicts else {}
        sample = blank(run, peer.label, "get", {**factors, **cache}, sizes)
        take_checked(table, sample, peer, partial(expect_files, sources, back), peer.get_folder, name, back)
    finally:
        empty_folder(sources)
        empty_folder(back)


def _stores(peer: Peer) -> Sequence[Path]:
    """The folders with what was stored; none if servers have media of their own, behind which there is another cache."""
    return [] if any(host.directory for host in peer.placement.servers) else peer.store_folders


def _cache(cold: bool) -> dict[str, Factor]:
    return {"cache": "cold" if cold else "warm"}


def tiny_files(settings: Workload, work: Path, table: Table) -> None:
    """The same files one by one, together, and as one archive: the cost per file and per byte."""
    for run, peer in each_subject(settings, work, table):
        for name in shuffled(settings, run, peer.label, settings.sets):
            for attempt in table.once(run, peer.label, {"files": name}):
                with attempt:
                    _tiny_set(settings, work, table, (run, peer), name)


def _tiny_set(settings: Workload, work: Path, table: Table, place: tuple[int, Peer], files: str) -> None:
    """Put a set in each way. Each has other bytes: some peers store equal bytes once."""
    run, peer = place
    size, count = parse_set(files)
    for way in shuffled(settings, run, f"{peer.label}/{files}", WAYS):
        seed = f"{settings.seed}/{peer.label}/{run}/{files}/{way}"
        try:
            paths = make_files(work / "sources", [size] * count, seed)
            probe = random.Random(seed).randrange(_alone(count) if way == ALONE else count)
            _tiny(work, table, place, paths, f"tiny-{run}-{files}", way, probe)
        finally:
            empty_folder(work / "sources")


def _alone(count: int) -> int:
    """How many of the files are put one by one."""
    return min(count, max(10, min(100, count)))


def _tiny(
    work: Path, table: Table, place: tuple[int, Peer], paths: Sequence[Path], name: str, way: str, probe: int
) -> None:
    """Put the files in one way. Of what was put, one file is read back, the one with the index `probe`, or the archive."""
    run, peer = place
    sizes, back = [path.stat().st_size for path in paths], work / "one-back"
    sample = blank(run, peer.label, "put", {"way": way}, sizes)
    evict([paths[0].parent])
    if way == ALONE:
        count = _alone(len(paths))
        sample = blank(run, peer.label, "put", {"way": way}, sizes, parts=count)
        check = partial(_read_back, paths[probe], back, partial(peer.get, f"{name}-{probe}", back))
        plan = Schedule(workers=1, due_s=(0.0,) * count)
        take_many(table, sample, peer, plan, sizes, lambda index: peer.put(paths[index], f"{name}-{index}"), check)
    elif way == "together":
        check = partial(_read_back, paths[probe], back, partial(peer.get_one_of, name, paths[probe].name, back))
        take_checked(table, sample, peer, check, peer.put_folder, paths[0].parent, name)
    else:
        archive = work / f"archive.{way}"
        check = partial(_read_back, archive, back, partial(peer.get, f"{name}.{way}", back))
        take_checked(table, sample, peer, check, _put_packed, peer, paths, archive, f"{name}.{way}")
        archive.unlink(missing_ok=True)


def _read_back(source: Path, back: Path, get: Callable[[], Cost]) -> None:
    """Get what was put as a file named `back`, and compare it; WrongBytesError."""
    try:
        get()
        if not back.exists():
            raise WrongBytesError(f"nothing came back of {source.name}")
        expect_file(source, back)
    finally:
        back.unlink(missing_ok=True)


def _put_packed(peer: Peer, paths: Sequence[Path], archive: Path, name: str) -> Cost:
    """Create and store the archive; both count."""
    started = time.perf_counter()
    if archive.suffix == ".tar":
        with tarfile.open(archive, "w") as tar:
            for path in paths:
                tar.add(path, path.name)
    else:
        with zipfile.ZipFile(archive, "w", zipfile.ZIP_STORED) as packed:
            for path in paths:
                packed.write(path, path.name)
    cost = peer.put(archive, name)
    return evolve(cost, seconds=time.perf_counter() - started)
