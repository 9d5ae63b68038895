"""What workloads are done with: peers and grids, started one at a time, so that nothing else runs while one is measured."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import ParamSpec

from attrs import evolve

from perf.campaigns.arrivals import Schedule
from perf.campaigns.workload import Workload
from perf.peers.catalogue import make_peer
from perf.peers.contract import Cost, Peer, PeerError
from perf.peers.grids import GridPeer
from perf.peers.programs import MissingPeerError
from perf.records.record import Sample
from perf.workloads.modes import run_schedule, summarize
from perf.workloads.rows import Meter, Table, blank, with_transfers

P = ParamSpec("P")


def make_subject(text: str, servers: int = 10) -> Peer:
    """A peer by its label, or a grid by its label with `/cli` or `/gateway`; ValueError."""
    label, mark, client = text.partition("/")
    if not mark:
        return make_peer(text)
    if client == "cli":
        return GridPeer(label, "cli", servers)
    if client == "gateway":
        return GridPeer(label, "gateway", servers)
    raise ValueError(f"{text}: the client of a grid is `cli` or `gateway`")


def each_subject(settings: Workload, work: Path, table: Table) -> Iterator[tuple[int, Peer]]:
    """Run and subject, started: all of them in each run, in a seeded random order. A missing peer is a gap that says why."""
    for run in range(settings.runs):
        labels = list(settings.systems)
        random.Random(f"{settings.seed}/{run}").shuffle(labels)
        for number, label in enumerate(labels):
            for _ in table.once(run, label, {"driver": settings.driver}):
                peer = make_subject(label, settings.servers)
                if started(peer, work / f"run{run}-{number}", run, table):
                    yield run, peer
                peer.stop()


def started(peer: Peer, root: Path, run: int, table: Table) -> bool:
    """Start it, to be stopped at the latest when the table's stack ends; False, with a gap or a failure in the table, if it cannot be."""
    table.stack.callback(peer.stop)
    try:
        peer.start(root)
    except MissingPeerError as error:
        table.leave_out(peer.label, str(error))
        return False
    except (PeerError, RuntimeError, TimeoutError) as error:
        table.add(evolve(blank(run, peer.label, "start", {}, []), error=f"{type(error).__name__}: {error}"[:500]))
        return False
    return True


def take(
    table: Table, sample: Sample, peer: Peer, operation: Callable[P, Cost], *arguments: P.args, **named: P.kwargs
) -> Sample:
    """Measure one operation, which gets the arguments, and add its sample; one that fails as well."""
    with Meter(peer) as meter:
        cost, error = None, ""
        try:
            cost = operation(*arguments, **named)
        except Exception as failure:  # noqa: BLE001 - whatever a system under test does wrong is a result
            error = f"{type(failure).__name__}: {failure}"[:500]
    if cost is None:
        sample = evolve(sample, error=error)
    else:
        sample = meter.fill(evolve(sample, seconds=cost.seconds), [cost])
    table.add(sample)
    return sample


def take_many(
    table: Table, sample: Sample, peer: Peer, plan: Schedule, sizes: Sequence[int], operation: Callable[[int], Cost]
) -> Sample:
    """Measure transfers on a schedule, and add one sample for all, with a line for each."""
    costs: list[Cost] = []
    with Meter(peer) as meter:
        transfers = run_schedule(plan, lambda index: costs.append(operation(index)))
    sample = with_transfers(meter.fill(sample, costs), sizes, transfers)
    failed = [one.error for one in transfers if one.error]
    if failed:
        sample = evolve(sample, error=f"{len(failed)} of {len(transfers)} failed: {failed[0]}")
    else:
        sample = evolve(sample, seconds=round(summarize(transfers)[3], 6))
    table.add(sample)
    return sample


def empty_folder(path: Path) -> None:
    """Remove a folder if it is there."""
    shutil.rmtree(path, ignore_errors=True)
