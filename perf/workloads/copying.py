"""Many files by many clients: modes of concurrency with a line for each file, and how many streams suffice."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial
from itertools import product
from pathlib import Path
from typing import cast

from attrs import evolve

from perf.campaigns.arrivals import Mode, Schedule, schedule
from perf.campaigns.workload import IMAGES, Workload, parse_set
from perf.peers.boto3_peer import Boto3
from perf.peers.contract import Peer
from perf.peers.grids import GridPeer
from perf.records.record import Factor
from perf.workloads.files import image_sizes, make_files
from perf.workloads.rows import Table, blank, describe
from perf.workloads.subjects import each_subject, empty_folder, shuffled, take, take_checked, take_many
from perf.workloads.verifying import expect_files


def copy_modes(settings: Workload, work: Path, table: Table) -> None:
    """Use a command, or a request to a permanent process, per file; each mode up and down, with and without warm-up."""
    for run, peer in each_subject(settings, work, table):
        levels = product(settings.sets, settings.modes, _warmth(settings, peer))
        for name, mode, warm in shuffled(settings, run, peer.label, levels):
            factors: dict[str, Factor] = {"mode": mode, "warm": warm}
            if name == IMAGES:
                factors["set"] = name
            for attempt in table.once(run, peer.label, {"files": name, **factors}):
                with attempt:
                    _in_mode(settings, work, table, (run, peer), name, factors)


def _warmth(settings: Workload, peer: Peer) -> Sequence[str]:
    """The levels of warm-up: one for a client that does not stay, or is not among those that the campaign names."""
    client = peer.client if isinstance(peer, Boto3 | GridPeer) else ""
    return ("no", "yes") if client in settings.warm_up else ("never",)


def _in_mode(
    settings: Workload, work: Path, table: Table, place: tuple[int, Peer], name: str, factors: dict[str, Factor]
) -> None:
    run, peer = place
    sizes, mode = sizes_of(name, settings.seed or 0), cast(Mode, factors["mode"])
    plan = schedule(mode, len(sizes), os.cpu_count() or 1, f"{settings.seed}/{run}", settings.span_s)
    if isinstance(peer, GridPeer) and peer.client == "cp":
        _by_one_command(settings, work, table, (run, peer), plan, sizes, factors)
    else:
        up_and_down(settings, work, table, place, plan, sizes, factors)


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
    try:
        put = take(table, blank(run, peer.label, "put", factors, sizes), peer, peer.copy_into, paths, name, *words)
        if put.seconds is not None:
            sample, check = blank(run, peer.label, "get", factors, sizes), partial(expect_files, sources, back)
            take_checked(table, sample, peer, check, peer.get_folder, name, back, *words)
    finally:
        empty_folder(sources)
        empty_folder(back)


def streams(settings: Workload, work: Path, table: Table) -> None:
    """Move the same files with 1, 2, 4, ... parallel jobs, to find how many suffice."""
    for run, peer in each_subject(settings, work, table):
        for name, jobs in shuffled(settings, run, peer.label, product(settings.sets, settings.jobs)):
            sizes = sizes_of(name, settings.seed or 0)
            plan = Schedule(workers=jobs, due_s=(0.0,) * len(sizes))
            factors: dict[str, Factor] = {"concurrency": jobs}
            for attempt in table.once(run, peer.label, {"files": name, **factors}):
                with attempt:
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
    try:
        for operation in ("put", "get"):
            sample = blank(run, peer.label, operation, factors, sizes)
            try:
                _make_ready(peer, operation, factors.get("warm"), f"{name}-0")
            except Exception as failure:  # noqa: BLE001 - whatever a system under test does wrong is a result
                table.add(evolve(sample, error=describe(failure)))
                continue
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
                    partial(expect_files, sources, back),
                )
    finally:
        empty_folder(sources)
        empty_folder(back)


def _make_ready(peer: Peer, operation: str, warm: Factor | None, name: str) -> None:
    """Start the client anew if it is not to be warm, or fetch a little of the file if it is; before gets, boto3 always."""
    if not isinstance(peer, Boto3 | GridPeer):
        return
    if warm == "no":
        peer.restart()
    elif operation == "get" and (warm == "yes" or isinstance(peer, Boto3)):
        peer.warm_up(name)
