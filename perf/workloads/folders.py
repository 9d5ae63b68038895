"""Whole folders: test sets of many sizes, tiny files in four ways, and options of transfer programs."""

from __future__ import annotations

import os
import tarfile
import time
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from attrs import evolve

from perf.campaigns.arrivals import Schedule
from perf.campaigns.workload import Workload, parse_set
from perf.peers.contract import Cost, Peer
from perf.records.record import Factor
from perf.workloads.files import make_files
from perf.workloads.rows import Table, blank
from perf.workloads.subjects import each_subject, empty_folder, take, take_many
from perf.workloads.verifying import digests, verified

COLD: dict[str, Factor] = {"cache": "cold"}


def size_count(settings: Workload, work: Path, table: Table) -> None:
    """Each set up and down by one command, as users would run it, from a cold cache where possible."""
    for run, peer in each_subject(settings, work, table):
        for name in settings.sets:
            for _ in table.once(run, peer.label, {"files": name}):
                folder_up_and_down(settings, work, table, (run, peer), name, COLD)


def folder_up_and_down(
    settings: Workload,
    work: Path,
    table: Table,
    place: tuple[int, Peer],
    files: str,
    factors: Mapping[str, Factor],
) -> None:
    """Put a set's files by one command, get them back by another, and compare them."""
    run, peer = place
    size, count = parse_set(files)
    sizes, name = [size] * count, f"set-{run}-{files}"
    sources, back = work / "sources", work / "back"
    make_files(sources, sizes, f"{settings.seed}/{peer.label}/{run}/{files}")
    try:
        forget_pages(sources)
        put = take(table, blank(run, peer.label, "put", factors, sizes), peer, peer.put_folder, sources, name)
        if put.seconds is None:
            return
        get = take(table, blank(run, peer.label, "get", factors, sizes), peer, peer.get_folder, name, back)
        if get.seconds is not None:
            verified(table, digests(sources), digests(back))
    finally:
        empty_folder(sources)
        empty_folder(back)


def tiny_files(settings: Workload, work: Path, table: Table) -> None:
    """The same files one by one, together, and as one archive: the cost per file and per byte."""
    for run, peer in each_subject(settings, work, table):
        for name in settings.sets:
            for _ in table.once(run, peer.label, {"files": name}):
                size, count = parse_set(name)
                paths = make_files(work / "sources", [size] * count, f"{settings.seed}/{peer.label}/{run}/{name}")
                try:
                    _tiny(work, table, (run, name), peer, paths)
                finally:
                    empty_folder(work / "sources")


def _tiny(work: Path, table: Table, place: tuple[int, str], peer: Peer, paths: Sequence[Path]) -> None:
    run, files = place
    sizes = [path.stat().st_size for path in paths]
    name = f"tiny-{run}-{files}"
    for way in ("together", "tar", "zip", "one-by-one"):
        forget_pages(paths[0].parent)
        if way == "one-by-one":
            some = paths[: max(10, min(100, len(paths)))]
            sample = blank(run, peer.label, "put", {"way": way}, sizes, parts=len(some))
            plan = Schedule(workers=1, due_s=(0.0,) * len(some))
            take_many(table, sample, peer, plan, sizes, lambda index: peer.put(paths[index], f"{name}-{index}"))
            continue
        sample = blank(run, peer.label, "put", {"way": way}, sizes)
        if way == "together":
            take(table, sample, peer, peer.put_folder, paths[0].parent, name)
        else:
            archive = work / f"archive.{way}"
            take(table, sample, peer, _put_packed, peer, paths, archive, f"{name}.{way}")
            archive.unlink(missing_ok=True)


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


def forget_pages(folder: Path) -> None:
    """Write a folder's files to the disk, and evict only them from the page cache."""
    for path in folder.iterdir():
        with path.open("rb") as file:
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
