"""What storing costs beyond moving bytes: repeated uploads, checks, repair, hashing first, and resuming."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import product
from pathlib import Path

from perf.campaigns.arrivals import Schedule
from perf.campaigns.workload import Workload, parse_set
from perf.peers.contract import PeerError
from perf.peers.grids import GridPeer
from perf.records.record import Factor
from perf.workloads.files import make_files
from perf.workloads.rows import Table, blank
from perf.workloads.subjects import each_subject, empty_folder, shuffled, take, take_checked, take_many
from perf.workloads.verifying import expect_file, expect_files

KEYS: Mapping[str, Sequence[str]] = {"convergent": (), "random": ("--no-convergence",)}
"""The options of `grid put` for each kind of key."""

ENDING_S = 60.0
PARTLY = 0.5
"""The fraction of a complete copy's time after which another is interrupted."""


def reverify(settings: Workload, work: Path, table: Table) -> None:
    """Upload a folder, upload it again, and check its files without reading them, with several numbers of jobs."""
    for run, peer in each_subject(settings, work, table):
        assert isinstance(peer, GridPeer)
        for files in shuffled(settings, run, peer.label, settings.sets):
            for attempt in table.once(run, peer.label, {"files": files}):
                with attempt:
                    _reverify(settings, work, table, (run, peer), files)


def _reverify(settings: Workload, work: Path, table: Table, place: tuple[int, GridPeer], files: str) -> None:
    run, peer = place
    size, count = parse_set(files)
    sizes, name = [size] * count, f"again-{run}-{files}"
    paths = make_files(work / "sources", sizes, f"{settings.seed}/{peer.label}/{run}/{files}")
    try:
        for operation in ("put", "put again"):
            sample, check = blank(run, peer.label, operation, {}, sizes), partial(_read_back, work, peer, name)
            take_checked(table, sample, peer, check, peer.copy_into, paths, name)
        names = [f"{name}/{path.name}" for path in paths]
        for jobs in shuffled(settings, run, peer.label, settings.jobs):
            plan = Schedule(workers=jobs, due_s=(0.0,) * count)
            sample = blank(run, peer.label, "check", {"concurrency": jobs}, sizes)
            take_many(table, sample, peer, plan, sizes, lambda index: peer.check(names[index]))
    finally:
        empty_folder(work / "sources")


def _read_back(work: Path, peer: GridPeer, name: str) -> None:
    """Get a folder, and compare it with the sources; WrongBytesError, PeerError."""
    try:
        peer.get_folder(name, work / "back")
        expect_files(work / "sources", work / "back")
    finally:
        empty_folder(work / "back")


def repair(settings: Workload, work: Path, table: Table) -> None:
    """Remove a file's shares from some servers, repair it with a command, and verify its bytes."""
    for run, peer in each_subject(settings, work, table):
        assert isinstance(peer, GridPeer)
        for files, lost in shuffled(settings, run, peer.label, product(settings.sets, settings.lost)):
            for attempt in table.once(run, peer.label, {"files": files, "lost": lost}):
                with attempt:
                    _repair(settings, work, table, (run, peer), files, lost)


def _repair(settings: Workload, work: Path, table: Table, place: tuple[int, GridPeer], files: str, lost: int) -> None:
    run, peer = place
    size, count = parse_set(files)
    sources, back = work / "sources", work / "back"
    factors: dict[str, Factor] = {"lost": lost}
    try:
        paths = make_files(sources, [size] * count, f"{settings.seed}/{peer.label}/{run}/{files}/{lost}")
        back.mkdir()
        for path in paths:
            name, before = f"repair-{run}-{files}-{lost}-{path.name}", peer.share_files()
            peer.put(path, name)
            placed = peer.share_files() - before
            for share in sorted(placed)[:lost]:
                share.unlink()
            check = partial(_expect_shares, peer, before, len(placed))
            take_checked(table, blank(run, peer.label, "repair", factors, [size]), peer, check, peer.repair, name)
            sample, check = blank(run, peer.label, "get", factors, [size]), partial(expect_file, path, back / path.name)
            take_checked(table, sample, peer, check, peer.get, name, back / path.name)
    finally:
        empty_folder(sources)
        empty_folder(back)


def _expect_shares(peer: GridPeer, before: set[Path], count: int) -> None:
    """PeerError unless there are this many share files in addition to those before."""
    found = len(peer.share_files() - before)
    if found < count:
        raise PeerError(f"the repair left {found} of {count} shares")


def hashing(settings: Workload, work: Path, table: Table) -> None:
    """Store a file with a convergent key, which takes a pass for its hash first, and with a random key."""
    for run, peer in each_subject(settings, work, table):
        assert isinstance(peer, GridPeer)
        for files, key in shuffled(settings, run, peer.label, product(settings.sets, KEYS)):
            for attempt in table.once(run, peer.label, {"files": files, "key": key}):
                with attempt:
                    _hash(settings, work, table, (run, peer), files, key)


def _hash(settings: Workload, work: Path, table: Table, place: tuple[int, GridPeer], files: str, key: str) -> None:
    """Put files one after the other; each is read back."""
    run, peer = place
    size, count = parse_set(files)
    back = work / "one-back"
    try:
        for path in make_files(work / "sources", [size] * count, f"{settings.seed}/{peer.label}/{run}/{files}/{key}"):
            name = f"hashing-{run}-{files}-{key}-{path.name}"

            def check(path: Path = path, name: str = name) -> None:
                peer.get(name, back)
                expect_file(path, back)

            sample = blank(run, peer.label, "put", {"key": key}, [size])
            take_checked(table, sample, peer, check, peer.put, path, name, words=KEYS[key])
            back.unlink(missing_ok=True)
    finally:
        empty_folder(work / "sources")


def chunking(settings: Workload, work: Path, table: Table) -> None:
    """Upload a folder in one copy, and in one that is interrupted and restarted; both must come back complete."""
    for run, peer in each_subject(settings, work, table):
        assert isinstance(peer, GridPeer)
        for files in shuffled(settings, run, peer.label, settings.sets):
            for attempt in table.once(run, peer.label, {"files": files}):
                with attempt:
                    whole_s = _copied(settings, work, table, (run, peer), files, None)
                    if whole_s is not None:
                        _copied(settings, work, table, (run, peer), files, PARTLY * whole_s)


def _copied(
    settings: Workload, work: Path, table: Table, place: tuple[int, GridPeer], files: str, after_s: float | None
) -> float | None:
    """Seconds of the copy, which restarts after an interruption at after_s, if given; None if it failed."""
    run, peer = place
    size, count = parse_set(files)
    way, sizes = "whole" if after_s is None else "interrupted", [size] * count
    paths = make_files(work / "sources", sizes, f"{settings.seed}/{peer.label}/{run}/{way}")
    name, back = f"chunks-{run}-{files}-{way}", work / "back"
    try:
        if after_s is not None:
            _interrupt(peer, paths, name, after_s)
        sample = blank(run, peer.label, "put", {"way": way}, sizes)
        took = take(table, sample, peer, peer.copy_into, paths, name).seconds
        sample, check = (
            blank(run, peer.label, "get", {"way": way}, sizes),
            partial(expect_files, work / "sources", back),
        )
        take_checked(table, sample, peer, check, peer.get_folder, name, back)
        return took
    finally:
        empty_folder(work / "sources")
        empty_folder(back)


def _interrupt(peer: GridPeer, paths: list[Path], name: str, after_s: float) -> None:
    """Start the copy, and interrupt it as Ctrl-C does after some seconds; PeerError if it does not end then."""
    peer.make_folder(name)
    process = subprocess.Popen(peer.copy_command(paths, name), env=peer.environment(), stderr=subprocess.PIPE)
    try:
        process.wait(after_s)
    except subprocess.TimeoutExpired:
        os.kill(process.pid, signal.SIGINT)
    try:
        process.communicate(timeout=ENDING_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        raise PeerError(f"the interrupted copy did not end within {ENDING_S:.0f} s") from None
