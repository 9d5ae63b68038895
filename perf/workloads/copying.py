"""Many files by many clients: modes of concurrency with a line for each file, and how many streams suffice."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import cast

from perf.campaigns.arrivals import Mode, Schedule, schedule
from perf.campaigns.workload import IMAGES, Workload, parse_set
from perf.peers.boto3_peer import Boto3
from perf.peers.contract import Peer
from perf.peers.grids import GridPeer
from perf.records.record import Factor
from perf.workloads.files import image_sizes, make_files
from perf.workloads.rows import Table, blank
from perf.workloads.subjects import each_subject, empty_folder, take, take_many
from perf.workloads.verifying import digests, verified


def copy_modes(settings: Workload, work: Path, table: Table) -> None:
    """Use a command, or a request to a permanent process, per file; each mode up and down, with and without warm-up."""
    for run, peer in each_subject(settings, work, table):
        for name in settings.sets:
            sizes = sizes_of(name, settings.seed or 0)
            for mode in settings.modes:
                plan = schedule(
                    cast(Mode, mode), len(sizes), os.cpu_count() or 1, f"{settings.seed}/{run}", settings.span_s
                )
                for warm in ("no", "yes") if isinstance(peer, Boto3) else ("never",):
                    factors: dict[str, Factor] = {"mode": mode, "warm": warm}
                    if name == IMAGES:
                        factors["set"] = name
                    for _ in table.once(run, peer.label, {"files": name, **factors}):
                        if isinstance(peer, GridPeer) and peer.client == "cp":
                            _by_one_command(settings, work, table, (run, peer), plan, sizes, factors)
                        else:
                            up_and_down(settings, work, table, (run, peer), plan, sizes, factors)


def _by_one_command(
    settings: Workload,
    work: Path,
    table: Table,
    place: tuple[int, GridPeer],
    plan: Schedule,
    sizes: Sequence[int],
    factors: dict[str, Factor],
) -> None:
    """One `grid cp` for all files with this number of jobs; a command cannot start its files by the clock."""
    run, peer = place
    if plan.is_open:
        table.leave_out(peer.label, "one command starts all its files as soon as it can: it has no staccato")
        return
    words = ("--jobs", str(plan.workers)) if peer.kind == "grid" else ()
    name = "-".join([str(run), *map(str, factors.values())])
    sources, back = work / "sources", work / "back"
    paths = make_files(sources, sizes, f"{settings.seed}/{peer.label}/{name}")
    os.sync()
    try:
        put = take(table, blank(run, peer.label, "put", factors, sizes), peer, peer.copy_into, paths, name, *words)
        if put.seconds is not None:
            take(table, blank(run, peer.label, "get", factors, sizes), peer, peer.get_folder, name, back, *words)
            verified(table, digests(sources), digests(back))
    finally:
        empty_folder(sources)
        empty_folder(back)


def streams(settings: Workload, work: Path, table: Table) -> None:
    """Move the same files with 1, 2, 4, ... parallel jobs, to find how many suffice."""
    for run, peer in each_subject(settings, work, table):
        for name in settings.sets:
            sizes = sizes_of(name, settings.seed or 0)
            for jobs in settings.jobs:
                plan = Schedule(workers=jobs, due_s=(0.0,) * len(sizes))
                factors: dict[str, Factor] = {"concurrency": jobs}
                for _ in table.once(run, peer.label, {"files": name, **factors}):
                    up_and_down(settings, work, table, (run, peer), plan, sizes, factors)


def sizes_of(name: str, seed: int) -> list[int]:
    """The sizes of a set's files."""
    if name == IMAGES:
        return image_sizes(seed=seed)
    size, count = parse_set(name)
    return [size] * count


def up_and_down(
    settings: Workload,
    work: Path,
    table: Table,
    place: tuple[int, Peer],
    plan: Schedule,
    sizes: Sequence[int],
    factors: dict[str, Factor],
) -> None:
    """Put the files and get them back on a schedule, and compare them."""
    run, peer = place
    # Every set has names of its own, so whatever a slow system still does with those of the last one changes nothing.
    name = "-".join([str(run), f"{sum(sizes)}b", *map(str, factors.values())])
    sources, back = work / "sources", work / "back"
    paths = make_files(sources, sizes, f"{settings.seed}/{peer.label}/{name}")
    back.mkdir()
    os.sync()
    try:
        for operation in ("put", "get"):
            if isinstance(peer, Boto3) and factors.get("warm") == "no":
                peer.restart()
            elif isinstance(peer, Boto3) and operation == "get":
                peer.warm_up(f"{name}-0")
            sample = blank(run, peer.label, operation, factors, sizes)
            if operation == "put":
                take_many(table, sample, peer, plan, sizes, lambda index: peer.put(paths[index], f"{name}-{index}"))
            else:
                take_many(
                    table,
                    sample,
                    peer,
                    plan,
                    sizes,
                    lambda index: peer.get(f"{name}-{index}", back / paths[index].name),
                )
        verified(table, digests(sources), digests(back))
    finally:
        empty_folder(sources)
        empty_folder(back)
