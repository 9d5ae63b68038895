"""What storing costs beyond moving bytes: repeated uploads, checks, repair, hashing first, and resuming."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

from perf.campaigns.arrivals import Schedule
from perf.campaigns.workload import Workload, parse_set
from perf.peers.commands import run_peer
from perf.peers.grids import GridPeer
from perf.workloads.files import make_files
from perf.workloads.rows import Table, blank
from perf.workloads.subjects import each_subject, empty_folder, take, take_many
from perf.workloads.verifying import digests, verified

PARTLY = 0.5
"""The fraction of a complete copy's time after which another is interrupted."""


def reverify(settings: Workload, work: Path, table: Table) -> None:
    """Upload a folder, upload it again, and check its files without reading them, with several numbers of jobs."""
    for run, peer in each_subject(settings, work, table):
        assert isinstance(peer, GridPeer)
        for files in settings.sets:
            for _ in table.once(run, peer.label, {"files": files}):
                _reverify(settings, work, table, (run, peer), files)


def _reverify(settings: Workload, work: Path, table: Table, place: tuple[int, GridPeer], files: str) -> None:
    run, peer = place
    size, count = parse_set(files)
    sizes, name = [size] * count, f"again-{run}-{files}"
    paths = make_files(work / "sources", sizes, f"{settings.seed}/{peer.label}/{run}/{files}")
    try:
        for operation in ("put", "put again"):
            take(table, blank(run, peer.label, operation, {}, sizes), peer, peer.copy_into, paths, name)
        names = [f"{name}/{path.name}" for path in paths]
        for jobs in settings.jobs:
            plan = Schedule(workers=jobs, due_s=(0.0,) * count)
            sample = blank(run, peer.label, "check", {"concurrency": jobs}, sizes)
            take_many(table, sample, peer, plan, sizes, lambda index: peer.check(names[index]))
    finally:
        empty_folder(work / "sources")


def repair(settings: Workload, work: Path, table: Table) -> None:
    """Remove a file's shares from some servers, repair it with a command, and verify its bytes."""
    for run, peer in each_subject(settings, work, table):
        assert isinstance(peer, GridPeer)
        for files in settings.sets:
            for lost in settings.lost:
                for _ in table.once(run, peer.label, {"files": files, "lost": lost}):
                    _repair(settings, work, table, (run, peer), files, lost)


def _repair(settings: Workload, work: Path, table: Table, place: tuple[int, GridPeer], files: str, lost: int) -> None:
    run, peer = place
    size, count = parse_set(files)
    sources, back = work / "sources", work / "back"
    paths = make_files(sources, [size] * count, f"{settings.seed}/{peer.label}/{run}/{files}/{lost}")
    back.mkdir()
    try:
        for path in paths:
            name, before = f"repair-{run}-{files}-{lost}-{path.name}", peer.share_files()
            peer.put(path, name)
            for share in sorted(peer.share_files() - before)[:lost]:
                share.unlink()
            take(table, blank(run, peer.label, "repair", {"lost": lost}, [size]), peer, peer.repair, name)
            take(table, blank(run, peer.label, "get", {"lost": lost}, [size]), peer, peer.get, name, back / path.name)
        verified(table, digests(sources), digests(back))
    finally:
        empty_folder(sources)
        empty_folder(back)


def hashing(settings: Workload, work: Path, table: Table) -> None:
    """Store a file with a convergent key, which takes a pass for its hash first, and with a random key."""
    for run, peer in each_subject(settings, work, table):
        assert isinstance(peer, GridPeer)
        for files in settings.sets:
            size, count = parse_set(files)
            for key, words in (("convergent", ()), ("random", ("--no-convergence",))):
                for _ in table.once(run, peer.label, {"files": files, "key": key}):
                    paths = make_files(work / "sources", [size] * count, f"{settings.seed}/{peer.label}/{run}/{key}")
                    try:
                        for path in paths:
                            sample = blank(run, peer.label, "put", {"key": key}, [size])
                            command = peer.command("put", *words, str(path))
                            take(table, sample, peer, run_peer, command, peer.environment())
                    finally:
                        empty_folder(work / "sources")


def chunking(settings: Workload, work: Path, table: Table) -> None:
    """Upload a folder in one copy, and in one that is interrupted and restarted; both must come back complete."""
    for run, peer in each_subject(settings, work, table):
        assert isinstance(peer, GridPeer)
        for files in settings.sets:
            for _ in table.once(run, peer.label, {"files": files}):
                whole_s = _copied(settings, work, table, (run, peer), files, None)
                _copied(settings, work, table, (run, peer), files, PARTLY * whole_s)


def _copied(
    settings: Workload, work: Path, table: Table, place: tuple[int, GridPeer], files: str, after_s: float | None
) -> float:
    """Seconds of the copy, which restarts after an interruption at after_s, if given."""
    run, peer = place
    size, count = parse_set(files)
    way, sizes = "whole" if after_s is None else "interrupted", [size] * count
    paths = make_files(work / "sources", sizes, f"{settings.seed}/{peer.label}/{run}/{way}")
    name, back = f"chunks-{run}-{files}-{way}", work / "back"
    try:
        if after_s is not None:
            _interrupt(peer, paths, name, after_s)
        sample = blank(run, peer.label, "put", {"way": way}, sizes)
        took = take(table, sample, peer, peer.copy_into, paths, name).seconds or 0.0
        take(table, blank(run, peer.label, "get", {"way": way}, sizes), peer, peer.get_folder, name, back)
        verified(table, digests(work / "sources"), digests(back))
        return took
    finally:
        empty_folder(work / "sources")
        empty_folder(back)


def _interrupt(peer: GridPeer, paths: list[Path], name: str, after_s: float) -> None:
    """Start the copy, and interrupt it as Ctrl-C does after some seconds."""
    peer.make_folder(name)
    process = subprocess.Popen(peer.copy_command(paths, name), env=peer.environment(), stderr=subprocess.PIPE)
    try:
        process.wait(after_s)
    except subprocess.TimeoutExpired:
        os.kill(process.pid, signal.SIGINT)
    process.communicate(timeout=60)
